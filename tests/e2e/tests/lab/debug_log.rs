//! `-v` and `WEIGH_LOG`: a run that hangs logs the event that it waits for.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use e2e::{Run, World, weigh_command};
use rustix::process::{Pid, Signal, kill_process};

/// A lab with a single system, which runs and never listens.
fn never_ready() -> World {
    World::of_lab(
        "question: when is it ready?\n\
         load: {connections: 1, count: 1, path: /}\nrounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    run: sh -c 'sleep 600' {{addr}}\n    \
         ready: {path: /health, within: 60s}\n\
         baseline: {name: a}\nvariants: [{name: b}]\n",
    )
}

#[test]
fn a_system_that_is_not_ready_is_said_once_with_its_addresses_and_its_log() {
    let world = World::of_lab(
        "question: where does it listen?\n\
         load: {connections: 1, count: 1, path: /}\nrounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    settings: {command: sleep 600}\n    \
         run: sh -c 'echo asked for $1; {{command}}' - {{addr}}\n    \
         ready: {within: 300ms}\n\
         baseline: {name: deaf}\n\
         variants: [{name: b, with: {server.command: sleep 500}}]\n",
    );
    let output = world.command("check").output().expect("weigh starts");
    let run = Run::of(output).exits_with(5);
    run.shows("no connection to 127.0.0.1:");
    run.shows("It listens nowhere. Its last words: asked for 127.0.0.1:");
    assert_eq!(
        run.text().matches("was not ready").count(),
        1,
        "{}",
        run.text()
    );
    run.says("`deaf` has no number: not ready. The end of the log `");
    run.says("asked for 127.0.0.1:");
    let talk = run.talk();
    assert!(!talk.contains("was not ready"), "{talk}");
    // The log is still there, at the path that the message names.
    let path = talk.split("The end of the log `").nth(1).expect("a path");
    let path = path.split('`').next().expect("its end");
    let text = std::fs::read_to_string(world.path().join(path)).expect("the log is kept");
    assert!(text.starts_with("asked for "), "{text}");
    let folder = talk
        .split("these logs are kept in `")
        .nth(1)
        .expect("a folder");
    let folder = folder.split('`').next().expect("its end");
    std::fs::remove_dir_all(folder).expect("a folder");
}

#[test]
fn a_lab_that_waits_says_for_what_while_it_waits() {
    let world = never_ready();
    let mut command = world.command("lab");
    command
        .arg("-v")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut weigh = command.spawn().expect("weigh starts");
    let log = BufReader::new(weigh.stderr.take().expect("a pipe"));
    let mut lines = log.lines().map(|line| line.expect("text"));
    let mut seen = Vec::new();
    // Each line is read while weigh runs. The pipe ends with weigh.
    for words in [
        &["DEBUG rig", "starting the keeper"][..],
        &["DEBUG rig", "starting a process"],
        &[
            "DEBUG experiment",
            "waiting until it is ready",
            "url=\"http://127.0.0.1:",
            "/health",
        ],
        &["not ready yet", "attempt=1 ", "refused"],
        // An unchanged state is logged again.
        &["not ready yet", "refused"],
    ] {
        let found = lines.by_ref().find(|line| {
            seen.push(line.clone());
            words.iter().all(|word| line.contains(word))
        });
        assert!(found.is_some(), "no {words:?} in\n{}", seen.join("\n"));
    }
    kill_process(Pid::from_child(&weigh), Signal::INT).expect("weigh still waits");
    let rest: Vec<String> = lines.collect();
    assert_eq!(weigh.wait().expect("weigh ends").code(), Some(6));
    let is_stopped = rest.iter().any(|line| line.contains("stopping a process"));
    assert!(is_stopped, "{}", rest.join("\n"));
}

#[test]
fn nothing_is_logged_unless_asked_for_and_the_variable_asks_too() {
    let world = World::new().variant("twin", "server.answer: ok").rounds(1);
    let log = |name: &str, value: &str| {
        let mut command = world.command("check");
        let output = command.env(name, value).output().expect("weigh starts");
        Run::of(output).exits_with(0)
    };
    assert!(!log("NOTHING", "").talk().contains("DEBUG"));
    let traced = log("WEIGH_LOG", "rig=trace,weigh=off");
    traced.says("TRACE rig::link: to the keeper");
    for target in [" weigh::", " experiment::"] {
        assert!(!traced.talk().contains(target), "{}", traced.talk());
    }
}

#[test]
fn a_level_that_does_not_exist_is_refused() {
    let mut command = weigh_command();
    command.args(["check", "any"]).env("WEIGH_LOG", "rig=loud");
    let run = Run::of(command.output().expect("weigh starts")).exits_with(2);
    run.says("`WEIGH_LOG=rig=loud`: expected off, error, warn, info, debug or trace");
}
