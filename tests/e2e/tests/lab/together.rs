//! Variants that run at the same time: groups, shared systems, and variants that cannot run together.

use std::net::TcpListener;

use e2e::{ATTEMPTS, World, rounds_of, summary_of};
use serde_json::json;

use crate::null_servers::{self, NullServers};

/// Servers at 100 requests a second.
fn servers() -> NullServers {
    NullServers::under("{rate: 100/s, duration: 500ms, path: /}").warmup("300ms")
}

const TWO: &str = "  - {name: again}\n  - {name: third}\n";

#[test]
fn groups_that_the_lab_names_are_measured_one_after_the_other() {
    let servers = servers().key("groups: [[again], [third]]").variants(TWO);
    let run = servers.world().run().ran();
    let recording = run.recording();
    assert_eq!(recording["measured"]["order"], "side-by-side");
    assert_eq!(
        recording["measured"]["groups"],
        json!([["plain", "again"], ["plain", "third"]])
    );
    // The baseline is up in each group.
    assert_eq!(rounds_of(&recording, "plain").len(), 12);
    assert_eq!(rounds_of(&recording, "again").len(), 6);
    assert_eq!(rounds_of(&recording, "third").len(), 6);
    let summary = summary_of(&run.recording_folder());
    for row in summary["variants"].as_array().expect("variants") {
        assert_eq!(row["rounds"], 6, "{}", row["name"]);
    }
    run.shows_in_full(
        "measured in 2 groups, each with the baseline: again; third (chosen by the lab)",
    );
    for row in summary["variants"].as_array().expect("variants") {
        let overhead = &row["metrics"]["latency_us_p50"]["overhead"];
        if row["is_baseline"] == false && !overhead.is_null() {
            assert_eq!(overhead["rounds"], 6, "{overhead}");
        }
    }
}

#[test]
fn a_variant_that_burns_a_core_is_in_a_group_of_its_own() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > 4 {
        // Half a core does not crowd the other variants there.
        judged::not_run(e2e::MACHINE_UNFIT);
        return;
    }
    let variants = "  - {name: again}\n  - {name: burner, with: {server.flag: --burn=7ms}}\n";
    for attempt in 1..=ATTEMPTS {
        let run = servers().variants(variants).world().run().ran();
        let recording = run.recording();
        assert_eq!(
            recording["measured"]["groups"],
            json!([["plain", "again"], ["plain", "burner"]]),
            "{}",
            recording["measured"]
        );
        run.shows_in_full(
            "measured in 2 groups, each with the baseline: again; burner (since `burner` uses",
        );
        let summary = summary_of(&run.recording_folder());
        let overhead =
            |row: usize| &summary["variants"][row]["metrics"]["latency_us_p50"]["overhead"];
        // `None` if a check withholds the verdict because the machine was too busy.
        let low = overhead(2)["difference_low"].as_f64();
        let of_light = overhead(1)["difference"].as_f64();
        // The light variant is compared with its baseline as if the burner did not exist.
        if low.is_some_and(|low| low > 3_000.0) && of_light.is_some_and(|it| it.abs() < 300.0) {
            assert_eq!(overhead(2)["claim"], "higher");
            judged::ran();
            return;
        }
        eprintln!("attempt {attempt}: {of_light:?} us and from {low:?} us");
    }
    judged::not_run(e2e::MACHINE_UNFIT);
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    free.expect("a free port").port()
}

/// Runs a null server on the port in the first argument, and in parallel the command that follows.
const TWICE: &str = "\"$2\" null-server --listen \"127.0.0.1:$1\" & shift; exec \"$@\"\n";

/// A command that listens at its configured address, and always on this port.
fn twice(port: u16) -> String {
    format!("sh twice.sh {port} {}", null_servers::command())
}

#[test]
fn variants_on_one_fixed_port_are_measured_in_turn_which_says_why() {
    let port = free_port();
    let servers = NullServers::under("{rate: 100/s, duration: 100ms, path: /}")
        .warmup("20ms")
        .rounds(2)
        .command(format!("{} {{{{flag}}}}", twice(port)))
        .variants(TWO);
    let run = servers.world().file("twice.sh", TWICE).run().ran();
    let measured = &run.recording()["measured"];
    assert_eq!(measured["order"], "in-turn");
    let because = measured["because"].as_str().expect("a reason");
    assert!(
        because.contains(&format!(
            "listen on the same fixed address, 127.0.0.1:{port}"
        )),
        "{because}"
    );
    run.shows("in turn and not side by side: systems of");
    run.says("measured in turn, not side by side: systems of");
}

#[test]
fn variants_whose_memory_does_not_suffice_are_measured_in_turn() {
    let servers = servers().server_key("limits: {memory: 4000GiB}");
    let world = servers.variants(TWO).world();
    let run = world.run_with(&["--rounds", "1"]).ran();
    let measured = &run.recording()["measured"];
    assert_eq!(measured["order"], "in-turn");
    run.shows("may use 12288000 MiB of memory");
}

#[test]
fn a_pair_that_fills_the_core_it_is_pinned_to_is_measured_in_turn() {
    let variants = "  - {name: burner, with: {server.flag: --burn=8500us}}\n";
    let world = servers().server_key("pin: 0").variants(variants).world();
    let run = world.run_with(&["--rounds", "1"]).ran();
    let recording = run.recording();
    assert_eq!(recording["measured"]["order"], "in-turn");
    // Decided in the first round, and the round is not lost.
    assert_eq!(rounds_of(&recording, "burner").len(), 1);
    run.shows("`burner` and its baseline together would use");
}

/// A lab with servers that need a shared origin. This command runs the origin.
fn sharing(origin: &str) -> World {
    NullServers::under("{rate: 100/s, duration: 300ms, path: /}")
        .warmup("50ms")
        .rounds(3)
        .server_key("after: origin")
        .beside(&format!(
            "  origin:\n    shared: true\n    run: \"{origin}\"\n"
        ))
        .variants(TWO)
        .world()
}

#[test]
fn a_shared_system_starts_once_a_round_and_is_in_no_figure() {
    let run = sharing(&null_servers::command()).run().ran();
    let logs = run.recording_folder().join("logs");
    for round in 1..=3 {
        assert!(
            logs.join(format!("shared/round-{round}/origin.log"))
                .exists()
        );
        for variant in ["plain", "again", "third"] {
            let own = logs.join(format!("{variant}/round-{round}"));
            assert!(own.join("server.log").exists(), "{variant}");
            assert!(!own.join("origin.log").exists(), "{variant}");
        }
    }
    let recording = run.recording();
    for round in recording["rounds"].as_array().expect("rounds") {
        assert_eq!(round["systems"].as_array().map(Vec::len), Some(1));
        assert_eq!(round["systems"][0]["name"], "server");
        assert_eq!(round["shared"][0]["name"], "origin");
    }
    run.shows_in_full("All variants that ran together shared one `origin`");
}

#[test]
fn quick_starts_a_shared_system_once() {
    let world = sharing(&null_servers::command());
    let run = world.run_with(&["--quick"]).ran();
    let logs = run.recording_folder().join("logs/shared");
    let starts = std::fs::read_dir(logs).expect("logs of the shared system");
    assert_eq!(starts.count(), 1);
}

#[test]
fn a_fixed_port_of_a_shared_system_is_in_no_variants_way() {
    let world = sharing(&twice(free_port())).file("twice.sh", TWICE);
    let run = world.run_with(&["--rounds", "1"]).ran();
    let measured = &run.recording()["measured"];
    assert_eq!(measured["order"], "side-by-side", "{measured}");
}

#[test]
fn each_request_of_a_rotation_is_recorded_apart() {
    let load =
        "{rate: 100/s, duration: 400ms, requests: [{path: /often, weight: 3}, {path: /rarely}]}";
    let run = NullServers::under(load)
        .warmup("100ms")
        .variants("  - {name: again}\n")
        .world()
        .run()
        .ran();
    let recording = run.recording();
    for round in rounds_of(&recording, "again") {
        let planned: Vec<_> = round["requests"]
            .as_array()
            .expect("requests")
            .iter()
            .collect();
        assert_eq!(planned.len(), 2, "{round}");
        assert_eq!(
            [&planned[0]["planned"], &planned[1]["planned"]],
            [&json!(30), &json!(10)]
        );
    }
    // With one kind of request there is no second kind to compare.
    let one = servers()
        .variants("  - {name: again}\n")
        .world()
        .run()
        .ran();
    for round in rounds_of(&one.recording(), "again") {
        assert!(round.get("requests").is_none(), "{round}");
    }
}

#[test]
fn a_quick_run_leaves_out_what_the_lab_keeps_out_of_it_and_says_so() {
    let variants = "  - {name: again}\n  - {name: tuned, quick: off}\n";
    let quick = ["--quick", "--rounds", "1"];
    let run = servers().variants(variants).world().run_with(&quick).ran();
    let recording = run.recording();
    assert!(rounds_of(&recording, "tuned").is_empty());
    assert_eq!(rounds_of(&recording, "again").len(), 1);
    run.shows_in_full("`--quick` omits it");
    run.shows_in_full("--quick --variants 'tuned'` measures it");

    let asked = [&quick[..], &["--variants", "tuned"]].concat();
    let run = servers().variants(variants).world().run_with(&asked).ran();
    assert_eq!(rounds_of(&run.recording(), "tuned").len(), 1);
    let run = servers().variants(variants).world();
    let run = run.run_with(&["--rounds", "1"]).ran();
    assert_eq!(rounds_of(&run.recording(), "tuned").len(), 1);
}
