//! Placement of systems on cores. If systems may use one core only, it is the same core in all variants.

use std::fs;

use e2e::{World, rounds_of};
use serde_json::Value;

use crate::null_servers::{self, NullServers};

/// Servers at 100 requests a second. Each server records the cores that it may run on.
fn servers() -> NullServers {
    let command = format!(
        "sh noted.sh {} {{{{flag}}}} {{{{again}}}}",
        null_servers::command()
    );
    NullServers::under("{rate: 100/s, duration: 300ms, path: /}")
        .warmup("300ms")
        .rounds(3)
        .settings("flag: --burn=10us, again: --seed=1")
        .command(command)
        .variants("  - {name: again, with: {server.again: --seed=2}}\n")
}

fn world(servers: NullServers) -> World {
    servers.world().file(
        "noted.sh",
        "grep Cpus_allowed_list /proc/self/status >> cores.txt\nexec \"$@\"\n",
    )
}

const ONE_CORE: &str = "limits: {cpus: 1}";

/// The allowed cores of the servers of all rounds, in the order of their starts. The first two starts belong
/// to the proof, and the proof measures no figures.
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
    let world = world(servers().server_key(ONE_CORE));
    let run = world.run().ran();
    let recording = run.recording();
    let core = recording["rounds"][0]["cores"]["server"].clone();
    assert!(core.is_u64(), "{core}");
    for variant in ["plain", "again"] {
        for round in rounds_of(&recording, variant) {
            assert_eq!(round["cores"]["server"], core, "{variant}");
        }
    }
    // The recording matches the actual placement.
    let cores = cores_of_rounds(&world);
    assert_eq!(cores, vec![core.to_string(); 6]);
    run.shows_in_full("Each process of `server` ran on one core, the same for all variants");
    judged::ran();
}

#[test]
fn a_lab_may_leave_all_to_the_scheduler() {
    let as_the_lab_says = servers().server_key(ONE_CORE).key("placement: free");
    for servers in [as_the_lab_says, servers()] {
        let run = world(servers).run().ran();
        assert_nothing_placed(&run.recording());
        assert!(!run.text().contains("ran on one core, the same"));
    }
}

#[test]
fn a_core_that_is_too_narrow_is_given_up_before_anything_is_measured() {
    if !has_two_cores() {
        return judged::not_run("one core leaves nothing to choose");
    }
    // Both use two fifths of a core. That is too much for one core, and not for two.
    let servers = servers().settings("flag: --burn=3900us, again: --seed=1");
    let run = world(servers.server_key(ONE_CORE)).run().ran();
    let recording = run.recording();
    assert_eq!(recording["measured"]["order"], "side-by-side");
    assert_eq!(rounds_of(&recording, "again").len(), 3);
    assert_nothing_placed(&recording);
    judged::ran();
}

#[test]
fn groups_that_the_lab_names_are_looked_at_one_by_one() {
    if !has_two_cores() {
        return judged::not_run("one core leaves nothing to choose");
    }
    // With `busy`, one core is not enough for the second group, but it is for the first.
    let servers = servers()
        .key("groups: [[again], [busy]]")
        .server_key(ONE_CORE)
        .variants(concat!(
            "  - {name: again, with: {server.again: --seed=2}}\n",
            "  - {name: busy, with: {server.flag: --burn=7500us}}\n",
        ));
    let recording = world(servers).run().ran().recording();
    let rounds = recording["rounds"].as_array().expect("rounds");
    // Three rounds of two groups, each a baseline and a variant.
    assert_eq!(rounds.len(), 12);
    for round in rounds {
        let is_placed = round["cores"]["server"].is_u64();
        assert_eq!(is_placed, round["group"] == 0, "{round}");
    }
    judged::ran();
}
