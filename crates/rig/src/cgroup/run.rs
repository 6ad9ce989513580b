//! The groups of a whole run: names, removal, and leftovers of dead runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::{Hierarchies, write};
use crate::outcome::Leftover;
use crate::{clock, processes};

const PREFIX: &str = "weighbridge-";

/// Time limit of a removal. A group cannot be removed before the kernel has released its last process.
const BURIAL: Duration = Duration::from_secs(2);

/// The name of the run of an owner and a keeper.
pub(crate) fn run_name(owner_pid: i32, owner_start: u64, keeper_pid: i32) -> String {
    format!("{PREFIX}{owner_pid}-{owner_start}-{keeper_pid}")
}

/// Parses a run's name: owner, start of the owner, keeper.
fn parse_run_name(name: &str) -> Option<(i32, u64, i32)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let owner = parts.next()?.parse().ok()?;
    let start = parts.next()?.parse().ok()?;
    let keeper = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((owner, start, keeper))
}

/// Kills every process in the run's groups. Returns the processes that it found.
pub(crate) fn kill_run(hierarchies: &Hierarchies, run: &str) -> Vec<i32> {
    let mut seen = Vec::new();
    for group in hierarchies.places().iter().map(|place| place.join(run)) {
        let _older_kernel = write(&group.join("cgroup.kill"), "1");
        seen.extend(members(&group));
    }
    // Older kernels have no `cgroup.kill`, and version 1 never has.
    for pid in &seen {
        processes::signal(*pid, Signal::KILL);
    }
    seen
}

/// Removes the groups of one system if they are empty.
pub(crate) fn remove_instance(hierarchies: &Hierarchies, instance: &Path) {
    for place in hierarchies.places() {
        let group = place.join(instance);
        clock::wait_until(BURIAL, || !group.exists() || fs::remove_dir(&group).is_ok());
    }
}

/// Removes the run's groups if they are empty.
pub(crate) fn remove_run(hierarchies: &Hierarchies, run: &str) {
    for group in hierarchies.places().iter().map(|place| place.join(run)) {
        remove_empty(&group);
    }
}

fn remove_empty(group: &Path) {
    // Children first: the kernel removes only groups without any.
    for child in children(group) {
        let _still_in_use = fs::remove_dir(child);
    }
    let _still_in_use = fs::remove_dir(group);
}

/// Removes empty groups of runs with a dead owner and a dead keeper. Returns the groups that are not empty.
pub(crate) fn leftovers(hierarchies: &Hierarchies) -> Vec<Leftover> {
    let mut found = Vec::new();
    for group in hierarchies.places().into_iter().flat_map(children) {
        let name = group.file_name().and_then(|name| name.to_str());
        let Some((owner, start, keeper)) = name.and_then(parse_run_name) else {
            continue;
        };
        // A living keeper of a dead owner is just cleaning up.
        if processes::is_alive(owner, start) || processes::read(keeper).is_some() {
            continue;
        }
        let pids = members(&group);
        if pids.is_empty() {
            remove_empty(&group);
        } else {
            found.push(Leftover {
                cgroup: group,
                pids,
            });
        }
    }
    found
}

/// The processes in a run's group.
fn members(group: &Path) -> Vec<i32> {
    let mut groups = children(group);
    groups.push(group.to_owned());
    groups
        .iter()
        .filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|line| line.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}

/// The groups directly below a group.
fn children(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_groups_of_dead_runs_go_full_ones_are_told_and_living_ones_stay() {
        let root = tempfile::tempdir().unwrap();
        let mounts = format!(
            "41 31 0:38 / {} rw - cgroup2 cgroup2 rw",
            root.path().display()
        );
        let hierarchies = Hierarchies::parse(&mounts, "0::/");
        let me = processes::read(processes::own_pid()).unwrap();
        // No process has this number, and this process started at another time.
        let unused_pid = i32::MAX;
        let living = root.path().join(run_name(me.pid, me.start, unused_pid));
        let clearing_up = root.path().join(run_name(unused_pid, 1, me.pid));
        let empty = root.path().join(run_name(me.pid, me.start + 1, unused_pid));
        let full = root.path().join(run_name(unused_pid, 1, unused_pid));
        let foreign = root.path().join("system.slice");
        for group in [&living, &clearing_up, &empty, &full, &foreign] {
            fs::create_dir_all(group.join("1-system")).unwrap();
        }
        fs::write(full.join("1-system/cgroup.procs"), "17\n18\n").unwrap();

        let found = leftovers(&hierarchies);
        assert_eq!(
            found,
            [Leftover {
                cgroup: full.clone(),
                pids: vec![17, 18],
            }]
        );
        assert!(!empty.exists());
        for group in [living, clearing_up, full, foreign] {
            assert!(group.join("1-system").exists(), "{}", group.display());
        }
    }

    #[test]
    fn a_run_name_tells_its_processes_and_other_names_do_not() {
        assert_eq!(parse_run_name(&run_name(12, 345, 67)), Some((12, 345, 67)));
        for other in ["weighbridge-12-345", "weighbridge-a-b-c", "system.slice"] {
            assert_eq!(parse_run_name(other), None, "{other}");
        }
    }
}
