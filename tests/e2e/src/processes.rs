//! Who is running, and waiting for a condition.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Ids of live processes whose command line holds `needle`, this one excepted.
#[must_use]
pub fn processes_mentioning(needle: &str) -> Vec<u32> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .expect("Linux")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own && is_alive_and_mentions(*pid, needle))
        .collect()
}

fn is_alive_and_mentions(pid: u32, needle: &str) -> bool {
    // A zombie has an empty command line: it holds nothing any more.
    fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains(needle))
}

/// Looks every few milliseconds until `condition` holds.
///
/// # Panics
///
/// With `what`, when it does not within `limit`.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place in these tests that waits"
)]
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ids of the processes whose parent is `pid`.
#[must_use]
pub fn children_of(pid: u32) -> Vec<i32> {
    let own = |entry: fs::DirEntry| {
        let child: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in brackets may hold anything; what follows it is regular.
        let parent: u32 = stat
            .rsplit(')')
            .next()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        (parent == pid).then_some(child)
    };
    fs::read_dir("/proc")
        .expect("Linux")
        .flatten()
        .filter_map(own)
        .collect()
}

/// Cgroups made by a `weigh` that no longer lives. They are named
/// `weighbridge-PID-…`, with the id of the `weigh` that owns them.
#[must_use]
pub fn cgroups_of_dead_runs() -> Vec<PathBuf> {
    let hierarchies = fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten();
    let mut roots: Vec<PathBuf> = hierarchies.map(|entry| entry.path()).collect();
    roots.push(PathBuf::from("/sys/fs/cgroup"));
    roots
        .iter()
        .filter_map(|root| fs::read_dir(root).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| is_of_dead_run(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect()
}

fn is_of_dead_run(name: &str) -> bool {
    let owner = name
        .strip_prefix("weighbridge-")
        .and_then(|rest| rest.split('-').next());
    owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
}
