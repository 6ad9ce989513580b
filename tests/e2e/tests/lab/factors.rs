//! Factors: planted costs of three factors and of a combination.

use e2e::{ATTEMPTS, Run, World, summary_of, weigh};
use serde_json::Value;

/// A lab with three factors of 5, 20 and 100 us. The first two cost 20 us more together.
fn lab(more: &str) -> World {
    World::of_lab(&format!(
        "question: What do log, TLS and auth cost?
load: {{rate: 100/s, duration: 1s, path: /}}
warmup: 100ms
rounds: 10
order: side-by-side
target: server
settings:
  log: {{off: 0, on: 5}}
  tls: {{off: 0, on: 20}}
  auth: {{off: 0, on: 100}}
systems:
  server:
    run: \"sh -c 'exec {} null-server --listen {{{{addr}}}} --delay=$((200 + {{{{log}}}} + {{{{tls}}}} + {{{{auth}}}} + {{{{log}}}} * {{{{tls}}}} / 5))us'\"
    ready: {{path: /}}
factors:
  log: [off, on]
  tls: [off, on]
  auth: [off, on]
{more}",
        weigh().display()
    ))
}

/// Tolerance for the host, which adds its own delays to a start.
const TOLERANCE_US: f64 = 10.0;

/// True if the interval of an effect reaches the planted one.
fn is_found(effect: &Value, planted: f64) -> bool {
    let figure = &effect["metrics"]["latency_us_typical"];
    let end = |key: &str| figure[key].as_f64();
    end("low").is_some_and(|low| low < planted + TOLERANCE_US)
        && end("high").is_some_and(|high| high > planted - TOLERANCE_US)
}

/// True if the interval excludes zero, and all planted effects are in theirs.
fn are_found(factors: &Value) -> bool {
    let effects = factors["effects"].as_array().expect("effects");
    let alone = factors["alone"].as_array().expect("costs alone");
    assert_eq!((effects.len(), alone.len()), (7, 3));
    // The first two have half of their interaction.
    let planted = [15.0, 30.0, 100.0, 20.0, 0.0, 0.0, 0.0];
    let mut of_effects = effects.iter().zip(planted);
    let mut of_alone = alone.iter().zip([5.0, 20.0, 100.0]);
    effects[2]["metrics"]["latency_us_typical"]["claim"] == "higher"
        && of_effects.all(|(effect, planted)| is_found(effect, planted))
        && of_alone.all(|(effect, planted)| is_found(effect, planted))
}

#[test]
fn planted_factors_are_found_with_their_interaction() {
    for _ in 0..ATTEMPTS {
        let run = lab("").run().ran();
        run.shows("Factors: the cost of each, and of combinations");
        run.shows("auth: off → on");
        run.shows("log × tls × auth");
        let summary = summary_of(&run.recording_folder());
        let names = summary["variants"].as_array().expect("variants");
        let names: Vec<&str> = names.iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names[0], "log off, tls off, auth off");
        assert_eq!(names[7], "log on, tls on, auth on");
        if are_found(&summary["factors"]) {
            judged::ran();
            return;
        }
    }
    judged::not_run(e2e::MACHINE_UNFIT);
}

#[test]
fn a_check_names_the_size_of_a_design_and_its_confounded_effects() {
    let checked = |world: &World| {
        let mut command = world.command("check");
        let output = command.arg("--files-only").output().expect("weigh starts");
        Run::of(output).exits_with(0)
    };
    let full = checked(&lab("baseline: {name: plain}\n"));
    full.shows(
        "8 variants are all combinations of log, tls, auth. Each effect uses the requests of all 8",
    );
    let half = checked(&lab("fraction: 1/2\n"));
    half.shows("4 variants are 1/2 of all combinations of log, tls, auth");
    half.shows("resolution 3: only these sums are known: log - 1/2 (tls × auth)");
}

#[test]
fn a_design_of_too_many_variants_is_refused_with_the_fraction_that_fits() {
    let run = lab("  a: [1, 2]\n  b: [1, 2]\n  c: [1, 2]\n").run();
    let run = run.exits_with(2);
    run.says("the factors have 64 combinations, and a lab has at most 32");
    run.says("write `fraction: 1/2`, which fits");
}
