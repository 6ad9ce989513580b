//! No process is left running, regardless of the way `weigh` ends.

use std::io::Read as _;
use std::process::{Child, Stdio};

use e2e::{PATIENCE, Run, World, processes_mentioning, wait_until, weigh_command};
use rustix::process::{Pid, Signal, kill_process};

/// A world that would run for minutes, with servers that leave daemons behind.
fn long_running() -> World {
    World::new()
        .variant("twin", "server.answer: ok")
        .duration("5s")
        .rounds(100)
        .leaves_daemons()
}

/// Waits until a round runs, with server and daemon.
fn wait_for_load(world: &World) {
    let marker = world.marker();
    wait_until("the server and its daemon run", PATIENCE, || {
        processes_mentioning(&marker).len() >= 2 && world.has_logged_round(1)
    });
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).expect("weigh is alive");
}

fn nothing_is_left(world: &World) {
    let marker = world.marker();
    wait_until("every process of the run is gone", PATIENCE, || {
        processes_mentioning(&marker).is_empty()
    });
    wait_until("every cgroup of the run is gone", PATIENCE, || {
        e2e::cgroups_of_dead_runs().is_empty()
    });
}

#[test]
fn killing_weigh_in_the_middle_of_a_round_leaves_nothing_running() {
    let world = long_running();
    let mut weigh = world.start();
    wait_for_load(&world);
    send(&weigh, Signal::KILL);
    weigh.wait().expect("weigh is dead");
    nothing_is_left(&world);
}

#[test]
fn killing_the_keeper_leaves_nothing_running_and_weigh_says_so() {
    let world = long_running();
    let weigh = world.start();
    wait_for_load(&world);
    let keeper = e2e::children_of(weigh.id());
    assert_eq!(keeper.len(), 1, "the keeper is weigh's only child");
    kill_process(
        Pid::from_raw(keeper[0]).expect("a process id"),
        Signal::KILL,
    )
    .expect("the keeper is alive");
    let run = world.finish(weigh);
    assert_ne!(run.status().code(), Some(0), "{}", run.talk());
    run.says("keeper");
    nothing_is_left(&world);
}

#[test]
fn an_interrupt_keeps_what_was_recorded_and_marks_it() {
    let world = long_running();
    let weigh = world.start();
    wait_for_load(&world);
    send(&weigh, Signal::INT);
    let run = world.finish(weigh).exits_with(6);
    assert_eq!(run.recording()["interrupted"], true);
    run.shows("interrupted");
    nothing_is_left(&world);
}

#[test]
fn systems_are_gone_after_a_run_that_went_well() {
    let world = World::new()
        .variant("twin", "server.answer: ok")
        .leaves_daemons();
    world.run().ran();
    nothing_is_left(&world);
}

#[test]
fn systems_are_gone_after_a_variant_failed() {
    let world = World::new()
        .variant("fragile", "server.answer: crash, server.honest: 50")
        .leaves_daemons();
    world.run().exits_with(5);
    nothing_is_left(&world);
}

#[test]
fn weigh_up_serves_until_it_is_interrupted() {
    let world = World::new()
        .variant("twin", "server.answer: ok")
        .leaves_daemons();
    let mut weigh = world
        .command("up")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("weigh starts");
    let marker = world.marker();
    wait_until("the server and its daemon run", PATIENCE, || {
        processes_mentioning(&marker).len() >= 2
    });
    let mut answer = [0; 64];
    let length = weigh
        .stdout
        .as_mut()
        .expect("piped")
        .read(&mut answer)
        .expect("weigh up says where the systems are");
    let line = String::from_utf8_lossy(&answer[..length]).into_owned();
    let url = line
        .split_whitespace()
        .nth(1)
        .expect("a name and an address");
    let loaded = weigh_command()
        .args(["load", url, "-n", "10", "-c", "1"])
        .output()
        .expect("weigh starts");
    Run::of(loaded).ran().shows("passed 10");
    send(&weigh, Signal::INT);
    assert_eq!(weigh.wait().expect("weigh ends").code(), Some(0));
    nothing_is_left(&world);
}
