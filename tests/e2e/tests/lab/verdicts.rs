//! Verdicts on variants that do their work, and on variants that do not.

use e2e::{MACHINE_UNFIT, Run, World};

#[test]
fn a_variant_that_answers_with_graphql_errors_gets_no_number() {
    World::new()
        .variant("liar", "server.answer: errors")
        .variant("twin", "server.answer: ok")
        .run()
        .exits_with(3)
        .row("liar", &["top-level `errors`"])
        .no_number_for("liar")
        .number_for("twin");
}

#[test]
fn a_variant_that_answers_a_different_body_gets_no_number() {
    World::new()
        .variant("stranger", "server.answer: other")
        .run()
        .exits_with(3)
        .row("stranger", &["the body differs from the baseline's body"])
        .no_number_for("stranger");
}

#[test]
fn a_variant_that_answers_with_another_status_gets_no_number() {
    World::new()
        .variant("tired", "server.answer: unavailable")
        .run()
        .exits_with(3)
        .row("tired", &["503"])
        .no_number_for("tired");
}

#[test]
fn a_variant_that_turns_wrong_under_load_gets_no_number() {
    // Honest for the proof and the first responses of the load, wrong after that.
    World::new()
        .variant("turncoat", "server.answer: errors, server.honest: 50")
        .run()
        .exits_with(3)
        .row("turncoat", &["answers were wrong"])
        .no_number_for("turncoat");
}

#[test]
fn a_variant_that_exits_at_start_is_a_row_with_its_last_words() {
    World::new()
        .variant("unlicensed", "server.answer: exit")
        .variant("twin", "server.answer: ok")
        .run()
        .exits_with(5)
        .row("unlicensed", &["exit code 7", "no license key was found"])
        .no_number_for("unlicensed")
        .number_for("twin");
}

#[test]
fn a_variant_that_crashes_under_load_is_a_row_with_its_last_words() {
    World::new()
        .variant("fragile", "server.answer: crash, server.honest: 50")
        .run()
        .exits_with(5)
        .row("fragile", &["exit code 9", "gives up"])
        .no_number_for("fragile");
}

#[test]
fn a_variant_whose_program_is_missing_is_a_row_that_names_it() {
    World::new()
        .variant("absent", "server.program: no-such-program")
        .run()
        .exits_with(5)
        .row("absent", &["no-such-program"])
        .no_number_for("absent");
}

#[test]
fn a_failing_baseline_leaves_no_number_at_all() {
    let world = World::new()
        .baseline("server.answer: errors")
        .variant("twin", "server.answer: ok");
    let run = world.run();
    run.shows(
        "No verdict: the baseline `honest` has no number: request `test`: expected a GraphQL",
    );
    run.shows("found a top-level `errors` member");
    run.exits_with(3)
        .row("honest", &["invalid: mismatched"])
        .row("twin", &["invalid: not measured"])
        .no_number_for("twin");
}

#[test]
fn the_same_server_twice_shows_no_difference() {
    // At 95 %, one run in twenty claims a difference by design. Three claims in five runs would happen by
    // chance in one of 860 cases. A tool that claims differences without a cause fails this quickly.
    let runs: Vec<Run> = (0..5)
        .map(|_| {
            let world = World::new().variant("twin", "server.answer: ok");
            world.rounds(8).run().ran()
        })
        .collect();
    let verdicts: Vec<String> = runs.iter().map(|run| run.verdict_of("twin")).collect();
    let claims = verdicts
        .iter()
        .filter(|verdict| *verdict == "slower" || *verdict == "faster")
        .count();
    assert!(claims <= 2, "{verdicts:?}");
    // A tool that never gives a verdict is no better. On a quiet machine all five runs have one.
    if runs.iter().all(Run::is_machine_unfit) {
        judged::not_run(MACHINE_UNFIT);
        return;
    }
    judged::ran();
    assert!(
        verdicts
            .iter()
            .any(|verdict| verdict == "no-difference-shown"),
        "{verdicts:?}"
    );
}

#[test]
fn a_planted_delay_is_found_with_its_size() {
    // On a busy machine the tails of both may hide two milliseconds, but not three times in a row.
    let weighed = || {
        World::new()
            .variant("slow", "server.delay: 2000")
            .believed()
    };
    let Some(mut run) = weighed() else { return };
    for _ in 0..2 {
        if run.verdict_of("slow") != "slower" {
            let Some(again) = weighed() else { return };
            run = again;
        }
    }
    assert_eq!(run.verdict_of("slow"), "slower", "{}", run.answer());
    let summary = run.json();
    let median = &summary["variants"][1]["metrics"]["latency_us_p50"];
    let difference = median["overhead"]["difference"].as_f64().expect("a number");
    // A sleeping server wakes up late, never early.
    assert!((1_900.0..20_000.0).contains(&difference), "{median:#}");
}

#[test]
fn five_rounds_never_claim_anything() {
    let five = World::new().variant("slow", "server.delay: 2000").rounds(5);
    let Some(run) = five.believed() else { return };
    assert_eq!(run.verdict_of("slow"), "too-few-rounds", "{}", run.answer());
    run.row("slow", &["not enough rounds"]);
}

#[test]
fn a_lab_without_a_variant_that_starts_ends_with_5() {
    let world = World::of_lab(
        "question: What does it cost?\nload: {rate: 50/s, duration: 500ms}\nrounds: 1\n\
         target: server\nsystems:\n  server: {run: 'no-such-program-here --port {{port}}'}\n\
         expect: {status: 200}\nbaseline: {name: a}\nvariants: [{name: b}]\n",
    );
    let run = world.run().exits_with(5);
    let run = run
        .row("a", &["program missing"])
        .row("b", &["not measured"]);
    run.shows("no-such-program-here");
}
