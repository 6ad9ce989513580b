//! Planted faults. Each raises its own check and no other check.
//!
//! A busy machine has disturbances of its own. So a fault is planted up to four times, until its own check is
//! raised and no other check has failed. If the generator could not run each time, the machine gives no
//! evidence about the fault, and the test does not judge it.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::Duration;

use e2e::{
    ATTEMPTS, Hogs, MACHINE_CHECKS, MACHINE_UNFIT, PATIENCE, Run, Server, World, freeze,
    threads_of, wait_until,
};
use serde_json::Value;

/// Time that a process with a planted fault stands still.
const FROZEN: Duration = Duration::from_millis(300);

/// The checks of one variant, by name.
#[derive(Debug)]
struct Checks(BTreeMap<String, Value>);

impl Checks {
    fn of(summary: &Value, variant: usize) -> Checks {
        let checks = summary["variants"][variant]["checks"].as_array();
        let named = |check: &Value| {
            let name = check["name"].as_str().expect("a check has a name");
            (name.to_owned(), check.clone())
        };
        Checks(
            checks
                .expect("a row has checks")
                .iter()
                .map(named)
                .collect(),
        )
    }

    fn state(&self, name: &str) -> &str {
        let check = self.0.get(name);
        let state = check.and_then(|check| check["state"].as_str());
        state.unwrap_or("absent")
    }

    fn figure(&self, name: &str) -> f64 {
        self.0[name]["figure"].as_f64().expect("a figure")
    }

    /// Names of the failed checks, except these.
    fn failed_but(&self, own: &[&str]) -> Vec<&str> {
        let names = self.0.keys().map(String::as_str);
        names
            .filter(|name| !own.contains(name) && self.state(name) == "failed")
            .collect()
    }
}

/// The reason for an unexpected result of an attempt.
#[derive(Debug)]
struct Trouble {
    reason: String,
    /// True if the generator could not run for much of it, or the host gave the cores to other guests.
    is_machine_unfit: bool,
}

impl Trouble {
    fn of(checks: &Checks, reason: &str) -> Trouble {
        Trouble {
            reason: format!("{reason}: {checks:#?}"),
            is_machine_unfit: MACHINE_CHECKS
                .iter()
                .any(|name| checks.state(name) == "failed"),
        }
    }
}

/// Checks that each of these checks has this state.
fn raised(checks: &Checks, expected: &[(&str, &str)]) -> Result<(), Trouble> {
    match expected
        .iter()
        .find(|(name, state)| checks.state(name) != *state)
    {
        None => Ok(()),
        Some((name, state)) => Err(Trouble::of(checks, &format!("`{name}` is not {state}"))),
    }
}

/// Plants the fault until it is the only trouble.
#[track_caller]
fn only(plant: impl Fn() -> Result<(), Trouble>) {
    // Built before any program keeps a core busy.
    let _ = e2e::weigh();
    let mut troubles = Vec::new();
    for _ in 0..ATTEMPTS {
        match plant() {
            Ok(()) => {
                judged::ran();
                return;
            }
            Err(trouble) => troubles.push(trouble),
        }
    }
    let has_run = troubles.iter().find(|trouble| !trouble.is_machine_unfit);
    assert!(
        has_run.is_none(),
        "{}",
        has_run.map_or("", |one| &one.reason)
    );
    judged::not_run(MACHINE_UNFIT);
}

/// Checks that no check failed except these.
fn nothing_but(checks: &Checks, own: &[&str]) -> Result<(), Trouble> {
    match checks.failed_but(own) {
        none if none.is_empty() => Ok(()),
        failed => Err(Trouble::of(checks, &format!("{failed:?} failed too"))),
    }
}

fn json(child: Child) -> Value {
    let output = child.wait_with_output().expect("weigh ends");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Waits until the load runs. The fixture then has a thread for each connection.
fn wait_for_load(server: &Server) {
    wait_until("the load is under way", PATIENCE, || {
        threads_of(server.process().id()) > 4
    });
}

/// 500 requests a second that take 20 ms each, so that ten are in flight.
const OPEN: [&str; 8] = ["-r", "500/s", "-z", "3s", "-c", "50", "-d", "{}"];

#[test]
fn a_generator_whose_core_others_take_is_starved() {
    only(|| {
        let server = Server::start(&[]);
        let hogs = Hogs::start(12);
        let cpu = hogs.cpu.to_string();
        let result = server.json(&["-c", "4", "-z", "2s", "-d", "{}", "--pin", &cpu]);
        let checks = Checks::of(&result["summary"], 0);
        raised(&checks, &[("generator-starved", "failed")])?;
        // Three other programs in a row can take more than the 10 ms that count as a pause.
        nothing_but(&checks, &["generator-starved", "generator-pauses"])
    });
}

#[test]
fn a_generator_that_stands_still_says_so_and_does_not_blame_the_server() {
    only(|| {
        let server = Server::start(&["--delay-us", "20000"]);
        let weigh = server.start_load(&OPEN);
        wait_for_load(&server);
        freeze(&weigh, FROZEN);
        let result = json(weigh);
        let checks = Checks::of(&result["summary"], 0);
        // The figure contains at least these 300 ms of 3 s, even on a disturbed machine.
        assert!(checks.figure("generator-pauses") > 0.08, "{checks:#?}");
        assert_eq!(checks.state("generator-pauses"), "failed", "{checks:#?}");
        raised(&checks, &[("target-stalls", "ok")])?;
        nothing_but(&checks, &["generator-pauses"])
    });
}

#[test]
fn a_server_that_stands_still_is_named_and_the_generator_is_not() {
    only(|| {
        let server = Server::start(&["--delay-us", "20000"]);
        let weigh = server.start_load(&OPEN);
        wait_for_load(&server);
        freeze(server.process(), FROZEN);
        let result = json(weigh);
        let checks = Checks::of(&result["summary"], 0);
        if checks.state("generator-pauses") == "ok" {
            // Any 300 ms contain two whole windows of 100 ms.
            assert!(checks.figure("target-stalls") > 0.05, "{checks:#?}");
        }
        raised(&checks, &[("target-stalls", "weak")])?;
        nothing_but(&checks, &["target-stalls"])
    });
}

/// The checks of a lab's first variant, with the run.
fn variant(world: &World) -> (Checks, Run) {
    let run = world.run();
    (Checks::of(&run.json(), 1), run)
}

#[test]
fn a_server_at_its_processor_limit_is_named() {
    only(|| {
        let world = World::new()
            .variant("twin", "server.answer: ok")
            .baseline("server.burn: 500")
            .limits("cpus: 0.2")
            .duration("600ms");
        let run = world.run_with(&[]).ran();
        let recording = run.recording();
        let limited = &recording["variants"][0]["systems"][0];
        if limited["limits_enforced"]["cpus"].is_null() {
            // Then the table shows it, as `a_limit_is_in_the_table_…` claims.
            judged::not_run("no limit of processor time can be enforced");
            return Ok(());
        }
        let checks = Checks::of(&run.json(), 0);
        raised(&checks, &[("throttling", "weak")])?;
        nothing_but(&checks, &["throttling"])
    });
}

#[test]
fn a_server_whose_core_others_take_is_starved() {
    only(|| {
        let hogs = Hogs::start(4);
        // More work than fits into one time slice, and the other programs have equally long slices.
        let world = World::new()
            .variant("twin", "server.answer: ok")
            .baseline("server.burn: 5000")
            // If the run had precedence over other programs, these hogs would not disturb it.
            .arrivals("rate: 20/s\n  precedence: off")
            .pin(hogs.cpu)
            .duration("500ms");
        let run = world.run_with(&[]).ran();
        let checks = Checks::of(&run.json(), 0);
        raised(&checks, &[("systems-starved", "weak")])?;
        nothing_but(
            &checks,
            &["generator-starved", "generator-pauses", "lateness"],
        )
    });
}

#[test]
fn a_server_that_slows_down_while_it_is_loaded_gets_no_number() {
    only(|| {
        let world = World::new()
            .variant("tired", "server.delay: 2000, server.slower: 30")
            .duration("900ms");
        let (checks, run) = variant(&world);
        let rounds = run.recording()["rounds"].take();
        let mut rounds = rounds.as_array().into_iter().flatten();
        let is_repeated = rounds.any(|round| round["disturbed"] == true);
        raised(&checks, &[("drift-within-rounds", "failed")]).map_err(|trouble| Trouble {
            // A repeated measurement runs on a server that hardly gets slower any more.
            is_machine_unfit: trouble.is_machine_unfit || is_repeated,
            ..trouble
        })?;
        run.shows("within a round");
        run.exits_with(7)
            .row("tired", &["not trusted: drift within"])
            .no_number_for("tired");
        nothing_but(&checks, &["drift-within-rounds"])
    });
}

#[test]
fn a_variant_that_does_not_do_its_work_fails_its_proof_and_no_check() {
    only(|| {
        let world = World::new().variant("turncoat", "server.answer: errors, server.honest: 50");
        let (checks, run) = variant(&world);
        run.exits_with(3)
            .row("turncoat", &["answers were wrong"])
            .no_number_for("turncoat");
        nothing_but(&checks, &[])
    });
}

#[test]
fn a_rate_that_cannot_be_reached_is_not_called_lateness_of_the_generator() {
    only(|| {
        // Four connections with 10 ms each carry 400 requests a second.
        let server = Server::start(&["--delay-us", "10000"]);
        let flags = ["-r", "2000/s", "-z", "1s", "-c", "4", "-d", "{}"];
        let flags = [flags.as_slice(), &["--timeout", "500ms"]].concat();
        let result = server.json(&flags);
        let checks = Checks::of(&result["summary"], 0);
        assert_eq!(checks.state("missed"), "failed", "{checks:#?}");
        assert_eq!(checks.state("rate"), "failed", "{checks:#?}");
        raised(&checks, &[("lateness", "ok")])?;
        nothing_but(&checks, &["missed", "rate"])
    });
}

#[test]
fn an_undisturbed_open_loop_keeps_its_law_of_arrivals() {
    for arrival in ["uniform", "poisson"] {
        only(|| {
            let server = Server::start(&[]);
            let flags = ["-r", "400/s", "-z", "2s", "-c", "50", "-d", "{}"];
            let flags = [flags.as_slice(), &["--arrival", arrival]].concat();
            let result = server.json(&flags);
            let checks = Checks::of(&result["summary"], 0);
            // A busy machine makes the check weak. Only a wrong law is far off.
            let is_far_off = checks.state("arrival-law") == "failed";
            match is_far_off || checks.state("arrival-law") == "absent" {
                true => raised(&checks, &[("arrival-law", "ok")]),
                false => Ok(()),
            }
        });
    }
}
