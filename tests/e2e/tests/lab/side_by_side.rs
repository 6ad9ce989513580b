//! Rounds side by side: all variants are up at once, and what the machine does to one it does to all.

use e2e::{ATTEMPTS, PATIENCE, Run, World, rounds_of, wait_until, weigh};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::null_servers::{is_found, lab};

const OPEN: &str = "{rate: 100/s, duration: 1s, path: /}";

#[test]
fn every_due_time_is_one_request_to_each_variant_at_once() {
    let run = lab(OPEN, "  - {name: again}\n  - {name: third}\n")
        .run()
        .ran();
    let recording = run.recording();
    assert_eq!(recording["measured"]["order"], "side-by-side");
    let (plain, again) = (
        rounds_of(&recording, "plain"),
        rounds_of(&recording, "again"),
    );
    assert_eq!((plain.len(), again.len()), (6, 6));
    for (one, other) in plain.iter().zip(&again) {
        assert_eq!(one["round"], other["round"]);
        assert_eq!(one["planned"], 100);
        assert_eq!(one["planned"], other["planned"]);
        assert_eq!(one["left_out"]["cycles"], 100);
        // They began within a moment, not one after the other.
        let began = |round: &Value| round["started_offset_us"].as_u64().expect("a time");
        assert!(
            began(one).abs_diff(began(other)) < 500_000,
            "round {}",
            one["round"]
        );
    }
    run.shows("all variants side by side");
}

#[test]
fn a_planted_delay_is_found_in_the_typical_latency() {
    let variants = "  - {name: later, with: {server.flag: --delay=300us}}\n";
    for _ in 0..ATTEMPTS {
        let run = lab(OPEN, variants).run().ran();
        if is_found(&run.recording_folder(), 150.0, 600.0) {
            run.shows("slower");
            judged::ran();
            return;
        }
    }
    judged::not_run(e2e::MACHINE_UNFIT);
}

#[test]
fn a_quick_run_starts_anew_what_starts_fast_and_names_what_it_keeps() {
    let weigh = weigh();
    let lab = |wait: &str| {
        World::of_lab(&format!(
            "question: What does a slow start cost?
load: {{rate: 100/s, duration: 5s, path: /}}
settle: {{connections: 1, within: 600ms}}
order: side-by-side
rounds: 12
target: server
systems:
  helper:
    run: sh -c \"sleep {wait}; exec '{weigh}' null-server --listen {{{{addr}}}}\"
    ready: {{path: /}}
  server:
    settings: {{flag: --seed=1}}
    run: \"'{weigh}' null-server --listen {{{{addr}}}} {{{{flag}}}}\"
    env: {{HELPER: '{{{{helper.url}}}}'}}
    ready: {{path: /}}
baseline: {{name: plain}}
variants:
  - {{name: again, with: {{server.flag: --seed=2}}}}
",
            weigh = weigh.display()
        ))
    };
    let slow = lab("1.2").run_with(&["--quick", "--rounds", "3"]).ran();
    let load = &slow.recording()["load"];
    // On a machine that is too busy to start anything fast, all are kept.
    if load["keeps_systems"] == true {
        return judged::not_run(e2e::MACHINE_UNFIT);
    }
    assert_eq!(load["kept_systems"], serde_json::json!(["helper"]));
    slow.shows("`helper` was started once, the other systems again in every round");
    let logs = |round: &str| {
        let folder = slow.recording_folder().join("logs/again").join(round);
        let files = std::fs::read_dir(folder).expect("logs of that round");
        let mut names: Vec<_> = files
            .map(|file| file.expect("a file").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(logs("proof"), ["helper.log", "server.log"]);
    assert_eq!(logs("round-2"), ["server.log"]);
    assert_eq!(logs("round-3"), ["server.log"]);
    assert_eq!(rounds_of(&slow.recording(), "again").len(), 3);
    judged::ran();
}

#[test]
fn a_variant_that_answers_wrongly_leaves_the_others_their_numbers() {
    let variants = "  - {name: liar, with: {server.flag: --wrong-every=50}}\n  - {name: again}\n";
    let run = lab(OPEN, variants).run().exits_with(3);
    run.no_number_for("liar").number_for("again");
}

#[test]
fn a_variant_that_stalls_shows_it_and_the_others_do_not() {
    let variants =
        "  - {name: stalls, with: {server.flag: --stall=300ms@500ms}}\n  - {name: again}\n";
    let recording = lab(OPEN, variants).run().recording();
    // From the recording: a machine that is too busy for a verdict shows the stall all the same.
    let longest_window_ms = |name: &str| -> u64 {
        let rounds = rounds_of(&recording, name);
        let windows = rounds
            .iter()
            .map(|round| &round["windows"]["latency_sum_ns"]);
        let sums = windows.filter_map(Value::as_array).flatten();
        sums.filter_map(Value::as_u64).max().expect("windows") / 1_000_000
    };
    // Thirty requests waited for up to 300 ms, in each round.
    let stalled_ms = longest_window_ms("stalls");
    assert!(stalled_ms > 1_000, "{stalled_ms} ms");
    // A server that waits uses no core, so its stall disturbs nobody and costs no other variant a cycle.
    let rounds = rounds_of(&recording, "again");
    let neighbors = rounds
        .iter()
        .map(|round| round["left_out"]["neighbor"].as_u64());
    let neighbors: Option<u64> = neighbors.sum();
    let neighbors = neighbors.expect("counted in each round");
    assert!(neighbors < 20, "{neighbors} cycles of `again`");
}

#[test]
fn what_cannot_be_measured_side_by_side_is_measured_in_turn_and_says_why() {
    let run: Run = lab(
        "{connections: 2, count: 100, path: /}",
        "  - {name: again}\n",
    )
    .run()
    .ran();
    let recording = run.recording();
    assert_eq!(recording["measured"]["order"], "in-turn");
    run.shows("in turn and not side by side");
}

#[test]
fn the_command_line_chooses_the_order() {
    let world = lab(OPEN, "  - {name: again}\n").rounds(1);
    let run = world
        .run_with(&["--order", "in-turn", "--rounds", "1"])
        .ran();
    assert_eq!(run.recording()["measured"]["order"], "in-turn");
}

#[test]
fn an_interrupt_keeps_the_rounds_that_were_measured() {
    let world = lab(OPEN, "  - {name: again}\n");
    let child = world.start();
    wait_until("the third round begins", PATIENCE, || {
        world.has_logged_round(3)
    });
    kill_process(Pid::from_child(&child), Signal::INT).expect("weigh is alive");
    let run = world.finish(child).exits_with(6);
    let recording = run.recording();
    assert_eq!(recording["interrupted"], true);
    for variant in ["plain", "again"] {
        let whole = rounds_of(&recording, variant)
            .into_iter()
            .filter(|round| round["interrupted"] == false);
        assert!(whole.count() >= 2, "{variant}");
    }
    let variants = recording["variants"].as_array().expect("variants");
    assert!(
        variants
            .iter()
            .all(|variant| variant["status"]["state"] == "measured"),
        "{}",
        recording["variants"]
    );
}

#[test]
fn a_system_that_crashes_beside_others_is_a_row_and_the_others_go_on() {
    World::new()
        .arrivals("rate: 100/s")
        .duration("500ms")
        .variant("fragile", "server.answer: crash, server.honest: 50")
        .variant("twin", "server.answer: ok")
        .run_with(&["--order", "side-by-side"])
        .exits_with(5)
        .row("fragile", &["exit code 9", "gives up"])
        .no_number_for("fragile")
        .number_for("twin");
}
