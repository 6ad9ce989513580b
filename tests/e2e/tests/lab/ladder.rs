//! Ladders: variants that build on each other.

use e2e::{ATTEMPTS, Run, summary_of, weigh_command};
use serde_json::Value;

use crate::null_servers::lab;

/// True if the interval of a step contains the planted delay, and lies between these bounds.
fn is_found(step: &Value, least: f64, most: f64) -> bool {
    let overhead = &step["metrics"]["latency_us_typical"]["overhead"];
    let end = |key: &str| overhead[key].as_f64();
    end("difference_low").is_some_and(|low| low > least)
        && end("difference_high").is_some_and(|high| high < most)
}

#[test]
fn each_step_has_its_planted_delay_and_the_sum_is_direct() {
    let variants = "  - {name: proxy, with: {server.flag: --delay=400us}}
  - {name: log, with: {server.flag: --delay=600us}}
ladder: [plain, proxy, log]
";
    for _ in 0..ATTEMPTS {
        let run = lab("{rate: 100/s, duration: 1s, path: /}", variants)
            .run()
            .ran();
        run.shows("plain → proxy");
        run.shows("all steps");
        let ladder = &summary_of(&run.recording_folder())["ladder"];
        let steps = ladder["steps"].as_array().expect("steps");
        let found = is_found(&steps[0], 200.0, 700.0)
            && is_found(&steps[1], 50.0, 400.0)
            && is_found(&ladder["whole"], 400.0, 900.0);
        if found {
            judged::ran();
            return;
        }
    }
    judged::not_run(e2e::MACHINE_UNFIT);
}

#[test]
fn a_ladder_of_unknown_variants_is_refused() {
    let run = lab(
        "{rate: 100/s, duration: 1s, path: /}",
        "  - {name: proxy}\nladder: [plain, prxy, plain]\n",
    );
    let run = run.run().exits_with(2);
    run.says("there is no variant `prxy`");
    run.says("`plain` is in the ladder twice");
}

#[test]
fn a_variant_is_compared_with_the_variant_that_it_names() {
    let variants = "  - {name: proxy, with: {server.flag: --delay=400us}}
  - {name: log, against: proxy, with: {server.flag: --delay=600us}}
";
    for _ in 0..ATTEMPTS {
        let run = lab("{rate: 100/s, duration: 1s, path: /}", variants)
            .run()
            .ran();
        run.shows("log (against proxy)");
        let recording = run.recording_folder();
        let rows = &summary_of(&recording)["variants"];
        let found = is_found(&rows[1], 200.0, 700.0) && is_found(&rows[2], 50.0, 400.0);
        if !found {
            continue;
        }
        // The same rounds can be compared in another way.
        let report = |name: &str| {
            let mut command = weigh_command();
            command.arg("report").arg(&recording);
            command.args(["--format", "json", "--against", name]);
            Run::of(command.output().expect("weigh starts"))
        };
        let again = report("log").ran().answer();
        let again: Value = serde_json::from_str(&again).expect("an answer in JSON");
        let rows = &again["summary"]["variants"];
        assert_eq!([&rows[0]["name"], &rows[1]["baseline"]], ["log", "log"]);
        let plain = &rows[1]["metrics"]["latency_us_typical"]["overhead"];
        let high = plain["difference_high"].as_f64();
        assert!(high.is_some_and(|high| high < -400.0), "{rows}");
        let refused = report("lgo").exits_with(2);
        refused.says("The variants are `plain`, `proxy`, `log`");
        judged::ran();
        return;
    }
    judged::not_run(e2e::MACHINE_UNFIT);
}

#[test]
fn a_chain_of_comparisons_without_its_baseline_is_not_measured() {
    let variants = "  - {name: proxy}
  - {name: log, against: proxy}
proof: [{of: baseline, name: a wrong status, expect: {status: 418}}]
";
    let run = lab("{rate: 100/s, duration: 1s, path: /}", variants).run();
    run.shows("the baseline `plain` has no number");
    let rows = &summary_of(&run.recording_folder())["variants"];
    for row in rows.as_array().expect("rows") {
        assert_eq!(row["verdict"]["state"], "invalid", "{row}");
    }
}
