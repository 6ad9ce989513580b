//! Which core systems run on: the same in all variants, where one core is all that they may use.

use std::fs;

use e2e::{World, rounds_of, weigh};
use serde_json::Value;

/// A lab of null servers at 100 requests a second, each of which writes down on which cores it may
/// run; `system` are further keys of the server, `more` further keys of the lab, and `flag` is the
/// baseline's.
fn lab(system: &str, more: &str, flag: &str) -> World {
    World::of_lab(&format!(
        "question: Where does it run?
load: {{rate: 100/s, duration: 300ms, path: /}}
warmup: 300ms
rounds: 3
target: server
{more}systems:
  server:
    settings: {{flag: {flag}, again: ''}}
{system}    run: >-
      sh -c \"grep Cpus_allowed_list /proc/self/status >> cores.txt;
      exec '{}' null-server --listen {{{{addr}}}} {{{{flag}}}} {{{{again}}}}\"
    ready: {{path: /}}
baseline: {{name: plain}}
variants:
  - {{name: again, with: {{server.again: --seed=2}}}}\n",
        weigh().display()
    ))
}

const ONE_CORE: &str = "    limits: {cpus: 1}\n";

/// Where the servers of all rounds were allowed to run, in the order of their starts. The first two
/// starts are those of the proof, which nothing is measured in.
fn cores_of_rounds(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.path().join("cores.txt")).expect("servers were started");
    let cores = text.lines().map(|line| line.rsplit('\t').next());
    let cores = cores.map(|cores| cores.expect("a list").to_owned());
    cores.skip(2).collect()
}

fn assert_nothing_placed(recording: &Value) {
    for round in recording["rounds"].as_array().expect("rounds") {
        assert!(round["cores"].is_null(), "{}", round["cores"]);
    }
}

fn has_two_cores() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

#[test]
fn systems_of_one_core_run_on_the_same_one_in_all_variants() {
    if !has_two_cores() {
        return judged::not_run("one core leaves nothing to choose");
    }
    let world = lab(ONE_CORE, "", "--burn=10us");
    let run = world.run().ran();
    let recording = run.recording();
    let core = recording["rounds"][0]["cores"]["server"].clone();
    assert!(core.is_u64(), "{core}");
    for variant in ["plain", "again"] {
        for round in rounds_of(&recording, variant) {
            assert_eq!(round["cores"]["server"], core, "{variant}");
        }
    }
    // What is recorded is what was done.
    let cores = cores_of_rounds(&world);
    assert_eq!(cores, vec![core.to_string(); 6]);
    run.shows("`server` ran on one core each, the same for all variants");
    judged::ran();
}

#[test]
fn a_lab_may_leave_all_to_the_scheduler() {
    for (system, more) in [(ONE_CORE, "placement: free\n"), ("", "")] {
        let world = lab(system, more, "--burn=10us");
        let run = world.run().ran();
        assert_nothing_placed(&run.recording());
        assert!(!run.text().contains("ran on one core each"), "{more}");
    }
}

#[test]
fn a_core_that_is_too_narrow_is_given_up_before_anything_is_measured() {
    if !has_two_cores() {
        return judged::not_run("one core leaves nothing to choose");
    }
    // Both use two fifths of a core: too much for one core, and not for two.
    let world = lab(ONE_CORE, "", "--burn=3900us");
    let run = world.run().ran();
    let recording = run.recording();
    assert_eq!(recording["measured"]["order"], "side-by-side");
    assert_eq!(rounds_of(&recording, "again").len(), 3);
    assert_nothing_placed(&recording);
    judged::ran();
}
