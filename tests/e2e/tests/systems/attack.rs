//! `cargo xtask attack`: its report about a service, and the end of all its processes.

use std::process::{Command, Stdio};

use e2e::{PATIENCE, Run, planets, processes_mentioning, wait_until, xtask};
use rustix::process::{Pid, Signal, kill_process};

/// The attack command, on programs that are already built.
fn attack(words: &[&str]) -> Command {
    let planets = planets();
    let mut command = Command::new(xtask());
    command.args(["attack", "--service", "planets", "--programs"]);
    command.arg(planets.parent().expect("it lies in a folder"));
    command.args(words);
    command
}

/// The cells of the row of an attack.
fn row(table: &str, attack: &str) -> Vec<String> {
    let start = format!("| {attack} |");
    let line = table.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("no row of {attack} in {table}"));
    line.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The count of an observation in a text such as `opened: 612, closed by service: 3`.
fn count(seen: &str, what: &str) -> u64 {
    let mut parts = seen.split(", ").filter_map(|part| part.split_once(": "));
    let found = parts.find(|(name, _)| *name == what);
    found.and_then(|(_, times)| times.parse().ok()).unwrap_or(0)
}

#[test]
fn each_attack_is_carried_out_and_judged() {
    let words = ["--seconds", "1", "--attack", "load,slow-header"];
    let run = Run::of(attack(&words).output().expect("it starts"));
    let table = run.exits_with(0).answer();
    let load = row(&table, "load");
    let slow = row(&table, "slow-header");
    assert!(count(&load[8], "200") > 10, "{table}");
    // There are more sockets than the service has descriptors. The service holds or refuses them.
    assert!(count(&slow[8], "opened") > 512, "{table}");
    for cells in [load, slow] {
        assert!(cells[2].ends_with("ms"), "it was served before: {table}");
        for verdict in [&cells[4], &cells[7]] {
            assert!(["yes", "**no**"].contains(&verdict.as_str()), "{table}");
        }
        let memory: Vec<u64> = cells[5]
            .trim_end_matches(" MiB")
            .split(", ")
            .map(|number| number.parse().expect("a number"))
            .collect();
        assert!(memory[1] >= memory[0].max(1), "{table}");
    }
}

#[test]
fn an_attack_that_is_interrupted_leaves_nothing_behind() {
    let victim = planets().display().to_string();
    let mut command = attack(&["--seconds", "60", "--attack", "silent"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("the service runs", PATIENCE, || {
        !processes_mentioning(&victim).is_empty()
    });
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let mut ended = None;
    wait_until("it ends", PATIENCE, || {
        ended = child.try_wait().expect("it is a child");
        ended.is_some()
    });
    assert!(ended.is_some_and(|status| !status.success()));
    assert_eq!(processes_mentioning(&victim), [0; 0]);
}
