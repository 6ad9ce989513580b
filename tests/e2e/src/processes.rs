//! Search for processes, and waiting for a condition.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::CpuSet;

/// Ids of live processes with `needle` in their command lines, except this process.
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
    // A zombie has an empty command line.
    fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains(needle))
}

/// Polls every few milliseconds until `condition` holds.
///
/// # Panics
///
/// With `what`, if it does not hold within `limit`.
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

/// Ids of the processes with the parent `pid`.
#[must_use]
pub fn children_of(pid: u32) -> Vec<i32> {
    let own = |entry: fs::DirEntry| {
        let child: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in brackets may contain any character. The rest is regular.
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

/// Cgroups of a `weigh` that no longer lives. They are named `weighbridge-PID-…`, with the process id of that
/// `weigh`.
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

/// Number of threads of a process. 0 if it has ended.
#[must_use]
pub fn threads_of(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Stops a process for `length`, then continues it.
///
/// # Panics
///
/// If the process has ended.
#[expect(
    clippy::disallowed_methods,
    reason = "standing still for so long is the fault that is planted"
)]
pub fn freeze(child: &Child, length: Duration) {
    judged::expect_alone();
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).expect("the process is alive");
    std::thread::sleep(length);
    kill_process(pid, Signal::CONT).expect("the process is alive");
}

/// Programs that keep one CPU busy. Dropping this ends them.
#[derive(Debug)]
pub struct Hogs {
    hogs: Vec<Child>,
    /// Number of the CPU that they keep busy.
    pub cpu: usize,
}

impl Hogs {
    /// Starts `count` processes on the last CPU that this process may use.
    ///
    /// # Panics
    ///
    /// If they do not start.
    #[must_use]
    pub fn start(count: usize) -> Hogs {
        judged::expect_alone();
        let allowed = rustix::thread::sched_getaffinity(None).expect("Linux tells");
        let cpu = (0..CpuSet::MAX_CPU)
            .rfind(|cpu| allowed.is_set(*cpu))
            .expect("at least one CPU");
        let mut only = CpuSet::new();
        only.set(cpu);
        let hogs: Vec<Child> = (0..count)
            .map(|_| {
                // In sessions of their own, because the kernel first shares a core among sessions.
                Command::new("setsid")
                    .args(["sh", "-c", "while :; do :; done"])
                    .stdin(Stdio::null())
                    .spawn()
                    .expect("there is a shell")
            })
            .collect();
        for hog in &hogs {
            rustix::thread::sched_setaffinity(Some(Pid::from_child(hog)), &only)
                .expect("a child can be pinned");
        }
        Hogs { hogs, cpu }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.hogs {
            // The hog must end with the test in any case.
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}
