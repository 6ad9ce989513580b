//! Rounds that continue until an interval is narrow, and the message if it stays wide.

use std::fs;

use e2e::{Run, World, unwrapped, weigh_command};

fn twins() -> World {
    World::new().variant("twin", "server.answer: ok")
}

fn rounds_begun(run: &Run) -> usize {
    run.recording()["order"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_wide_wish_ends_with_the_pilot() {
    let run = twins().run_with(&["--until", "mean ±5000%"]).ran();
    assert_eq!(rounds_begun(&run), 8, "{}", run.talk());
    let until = &run.recording()["until"];
    assert_eq!(until["ended"], "reached", "{until}");
    assert_eq!(until["figure"], "latency_us_mean", "{until}");
    run.shows("until mean ±5000%: ");
}

#[test]
fn rounds_go_on_until_the_gates_are_decided() {
    let gate = "typical overhead < 50ms";
    let run = twins()
        .run_with(&["--until", "gates", "--gate", gate])
        .exits_with(0);
    // The first look is after six rounds, and this limit is far away.
    assert_eq!(rounds_begun(&run), 6, "{}", run.talk());
    let recording = run.recording();
    let decided = &recording["decided"];
    assert_eq!(decided["ended"], "reached", "{decided}");
    assert_eq!(decided["gates"][0], gate, "{decided}");
    run.shows("until the gates are decided: decided");
    run.shows("`typical overhead < 50ms` on `twin`: holds");
    let late = World::new().variant("late", "server.delay: 5000");
    let flags = ["--until", "gates", "--gate", "typical overhead < 1ms"];
    let run = late.run_with(&flags).exits_with(4);
    assert_eq!(run.recording()["decided"]["ended"], "reached");
    assert_eq!(rounds_begun(&run), 6, "{}", run.talk());
}

#[test]
fn a_wish_that_cannot_be_reached_ends_with_its_time_and_says_so() {
    let flags = ["--until", "mean +-0.0001%", "--max-time", "8s"];
    let run = twins().run_with(&flags).exits_with(7);
    assert_eq!(run.recording()["until"]["ended"], "max-time");
    run.shows("until mean ±0.0001%: NOT REACHED within 8 s");
    // The prediction belongs to the pilot, if there was time for one.
    let was_predicted = run.recording()["until"]["pilot"].is_object();
    assert_eq!(was_predicted, rounds_begun(&run) >= 8, "{}", run.talk());
    assert_eq!(
        unwrapped(&run.talk()).contains("after 8 rounds, mean: "),
        was_predicted && rounds_begun(&run) > 8
    );
}

#[test]
fn a_lab_file_may_say_it_too() {
    let world = twins();
    let text = fs::read_to_string(world.lab()).expect("the lab file was written");
    let path = world.path().join("until.yaml");
    fs::write(&path, format!("{text}until: p99 ±100000%\nmax-time: 1m\n")).expect("a lab file");
    let output = weigh_command()
        .args(["lab", "--out"])
        .arg(world.path().join("recordings"))
        .arg(&path)
        .output()
        .expect("weigh starts");
    let run = Run::of(output).ran();
    run.shows("until p99 ±100000%: ");
}

#[test]
fn a_wish_that_is_none_and_a_time_without_a_wish_are_refused_before_anything_starts() {
    for (flags, part) in [
        (&["--until", "p98 ±2%"][..], "`p98` is not a figure"),
        (&["--until", "p99 2%"], "expected `±`"),
        (&["--until", "gates"], "expected a gate for `until: gates`"),
        (&["--max-time", "5s"], "expected `until` with `--max-time`"),
    ] {
        let run = twins().run_with(flags).exits_with(2);
        run.says(part);
    }
}
