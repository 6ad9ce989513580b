//! Resource usage of a system: CPU time, memory, throttling, context switches, and time spent waiting for a
//! CPU.
//!
//! CPU time is a running total of every process that the system ever had. It comes from the system's cgroup.
//! A system without a cgroup is read from the process table, and there a shepherd inherits the time of each
//! process that ends (except children of a parent that ignores SIGCHLD).
//!
//! Memory is the resident set of the processes alive, from `/proc/PID/status`, on every machine. The cgroup's
//! own peak is `memory.peak`, and in version 1 `memory.max_usage_in_bytes`. It also contains page cache. The
//! program's own file and its logs and input files fill the page cache, and the kernel takes it back at no
//! cost to the system. The rig reports this peak separately, because limits act on it. Two things follow.
//! Pages that several processes share count once for each process. The sum of peaks that were reached at
//! different times is an upper bound. For one process both are exact.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use model::Throttled;
use serde::{Deserialize, Serialize};

use crate::cgroup::{Groups, read_key, read_number};
use crate::processes::{self, Process};

/// Resource usage of all processes of a system since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, user and system.
    pub cpu: Duration,
    /// The part of `cpu` in the kernel. The kernel divides the time by samples at its ticks, except in
    /// version 2 cgroups. `None` if it could not be read.
    #[serde(default)]
    pub cpu_kernel: Option<Duration>,
    /// Peak of the resident memory in bytes: the sum over living processes of the peak of each (`VmHWM`).
    /// Exact for one process. For several processes an upper bound, because shared pages count for each of
    /// them. `None` if no process is alive.
    pub memory_peak: Option<u64>,
    /// Memory resident now, in bytes: the sum of `VmRSS`.
    pub memory_now: Option<u64>,
    /// Peak of the memory that the kernel charged to the system's cgroup, in bytes, with page cache and
    /// kernel memory. A memory limit acts on this number.
    pub memory_charged_peak: Option<u64>,
    /// Number of times that the CPU limit stopped the system. `None` without a limit.
    pub throttled: Option<Throttled>,
    /// Context switches of the threads alive now.
    pub context_switches: Option<ContextSwitches>,
    /// Time that the threads alive now were ready to run while other threads had the cores, summed over
    /// threads. The source is `/proc/PID/task/TID/schedstat`, in nanoseconds. `None` if the kernel does not
    /// count it.
    pub waited_for_cpu: Option<Duration>,
    /// The source of `cpu`.
    pub source: UsageSource,
}

/// Number of times that threads left a CPU (`/proc/PID/task/TID/status`). Control groups do not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSwitches {
    /// The thread waited for an event.
    pub voluntary: u64,
    /// The scheduler ran another thread, although this thread could have continued.
    pub involuntary: u64,
}

/// The source of a CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// `cpu.stat` of a version 2 cgroup, in microseconds.
    CgroupV2,
    /// `cpuacct.usage` of a version 1 cgroup, in nanoseconds.
    CgroupV1,
    /// `/proc/PID/stat` of every process, in hundredths of a second.
    Proc,
    /// The processor-time clock of every process (clock_getcpuclockid(3)), in nanoseconds.
    Clock,
    /// The program's own metrics.
    Metrics,
}

impl fmt::Display for UsageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CgroupV2 => "cgroup v2",
            Self::CgroupV1 => "cgroup v1",
            Self::Proc => "/proc",
            Self::Clock => "clock of the process",
            Self::Metrics => "its own metrics",
        })
    }
}

/// CPU time with its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) total: Duration,
    /// The part in the kernel. `None` if it is unknown.
    pub(crate) kernel: Option<Duration>,
    pub(crate) source: UsageSource,
}

/// Reads the usage of the system that `shepherd` watches. `None` if the shepherd has ended.
pub(crate) fn read(groups: &Groups, shepherd: Process) -> Option<Usage> {
    // Compares the start too, because a later process may have the same id.
    let now = processes::read(shepherd.pid).filter(|now| now.start == shepherd.start)?;
    let tree = processes::descendants(shepherd.pid);
    // Without a group, the time of the living processes plus the time that the shepherd inherited from ended
    // ones.
    let cpu = cpu_of_cgroup(groups).unwrap_or_else(|| {
        let living: u64 = tree.iter().map(|p| p.own_ticks + p.waited_ticks).sum();
        let kernel: u64 = tree.iter().map(|p| p.kernel_ticks).sum();
        CpuTime {
            total: duration_of(living + now.waited_ticks),
            kernel: Some(duration_of(kernel + now.waited_kernel_ticks)),
            source: UsageSource::Proc,
        }
    });
    Some(of_tree(&tree, groups, cpu))
}

/// Returns the usage of these processes and groups. The caller supplies the CPU time.
pub(crate) fn of_tree(tree: &[Process], groups: &Groups, cpu: CpuTime) -> Usage {
    let status: Vec<String> = tree
        .iter()
        .filter_map(|process| fs::read_to_string(format!("/proc/{}/status", process.pid)).ok())
        .collect();
    Usage {
        cpu: cpu.total,
        cpu_kernel: cpu.kernel,
        memory_peak: sum(status.iter().map(|text| status_kib(text, "VmHWM"))),
        memory_now: sum(status.iter().map(|text| status_kib(text, "VmRSS"))),
        memory_charged_peak: charged_peak(groups),
        throttled: throttled_in(groups),
        context_switches: over_threads(tree, context_switches, ContextSwitches::plus),
        waited_for_cpu: over_threads(tree, waited_for_cpu, |sum, waited| sum + waited),
        source: cpu.source,
    }
}

/// Processor time of groups, if the kernel counts it for them.
pub(crate) fn cpu_of_cgroup(groups: &Groups) -> Option<CpuTime> {
    let v2 = groups.v2.as_ref().and_then(|dir| {
        // Every version 2 group has the file, with or without the `cpu` controller.
        let file = dir.join("cpu.stat");
        let us = read_key(&file, "usage_usec")?;
        Some(CpuTime {
            total: Duration::from_micros(us),
            kernel: read_key(&file, "system_usec").map(Duration::from_micros),
            source: UsageSource::CgroupV2,
        })
    });
    v2.or_else(|| {
        let dir = groups.v1_cpuacct.as_ref()?;
        let ns = read_number(&dir.join("cpuacct.usage"))?;
        let kernel_ns = read_number(&dir.join("cpuacct.usage_sys"));
        Some(CpuTime {
            total: Duration::from_nanos(ns),
            kernel: kernel_ns.map(Duration::from_nanos),
            source: UsageSource::CgroupV1,
        })
    })
}

fn charged_peak(groups: &Groups) -> Option<u64> {
    let file = |dir: &Option<std::path::PathBuf>, name: &str| Some(dir.as_ref()?.join(name));
    [
        file(&groups.v2, "memory.peak"),
        file(&groups.v1_memory, "memory.max_usage_in_bytes"),
    ]
    .into_iter()
    .flatten()
    .find_map(|file| read_number(&file))
}

/// Reads the effect of the CPU limit on these groups.
pub(crate) fn throttled_in(groups: &Groups) -> Option<Throttled> {
    let stat = |dir: &Path, time: &str, to_duration: fn(u64) -> Duration| {
        let file = dir.join("cpu.stat");
        Some(Throttled {
            periods: read_key(&file, "nr_periods")?,
            throttled_periods: read_key(&file, "nr_throttled")?,
            throttled_time: to_duration(read_key(&file, time)?),
        })
    };
    let v2 = groups.v2.as_deref().and_then(|dir| {
        // The file exists with the controller even without a limit.
        dir.join("cpu.max").exists().then_some(())?;
        stat(dir, "throttled_usec", Duration::from_micros)
    });
    v2.or_else(|| {
        stat(
            groups.v1_cpu.as_deref()?,
            "throttled_time",
            Duration::from_nanos,
        )
    })
}

/// The sum of a figure over the threads alive. `of_thread` reads it from the thread's folder in `/proc`.
/// `None` if it could not be read for any thread.
fn over_threads<T>(
    tree: &[Process],
    of_thread: fn(&Path) -> Option<T>,
    plus: fn(T, T) -> T,
) -> Option<T> {
    let tasks = |process: &Process| fs::read_dir(format!("/proc/{}/task", process.pid)).ok();
    let threads = tree.iter().filter_map(tasks).flatten().flatten();
    threads
        .filter_map(|thread| of_thread(&thread.path()))
        .reduce(plus)
}

fn context_switches(thread: &Path) -> Option<ContextSwitches> {
    let text = fs::read_to_string(thread.join("status")).ok()?;
    Some(ContextSwitches {
        voluntary: status_number(&text, "voluntary_ctxt_switches")?,
        involuntary: status_number(&text, "nonvoluntary_ctxt_switches")?,
    })
}

fn waited_for_cpu(thread: &Path) -> Option<Duration> {
    schedstat_waited(&fs::read_to_string(thread.join("schedstat")).ok()?)
}

/// The second of the three numbers: nanoseconds on a run queue (Documentation/scheduler/sched-stats).
fn schedstat_waited(schedstat: &str) -> Option<Duration> {
    let waited_ns = schedstat.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited_ns))
}

impl ContextSwitches {
    fn plus(self, other: Self) -> Self {
        Self {
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }
}

/// A `Key:\tnumber` line of a status file.
fn status_number(status: &str, key: &str) -> Option<u64> {
    status.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let number = value.split_ascii_whitespace().next();
        (name == key).then(|| number?.parse().ok()).flatten()
    })
}

/// A number in KiB of a status file, converted to bytes.
fn status_kib(status: &str, key: &str) -> Option<u64> {
    Some(status_number(status, key)? * 1024)
}

/// The sum of the known values. `None` if all are unknown.
fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.flatten().reduce(|sum, value| sum + value)
}

/// The length of clock ticks.
pub(crate) fn duration_of(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second();
    assert!(per_second > 0, "the kernel counts in parts of a second");
    Duration::from_millis(ticks * 1000 / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_file_gives_its_numbers_and_a_key_is_not_taken_for_its_ending() {
        let status = "VmHWM:\t    2048 kB\nnonvoluntary_ctxt_switches:\t7\n\
                      voluntary_ctxt_switches:\t35\n";
        assert_eq!(status_kib(status, "VmHWM"), Some(2 << 20));
        assert_eq!(status_number(status, "voluntary_ctxt_switches"), Some(35));
        assert_eq!(status_number(status, "VmRSS"), None);
    }

    #[test]
    fn the_wait_is_the_second_number_of_schedstat() {
        let waited = schedstat_waited("4000100 2500 17\n");
        assert_eq!(waited, Some(Duration::from_nanos(2500)));
        assert_eq!(schedstat_waited(""), None);
    }

    #[test]
    fn nothing_known_is_not_zero() {
        assert_eq!(sum([None, None].into_iter()), None);
        assert_eq!(sum([None, Some(2), Some(3)].into_iter()), Some(5));
    }

    #[test]
    fn the_kernel_part_is_read_in_the_unit_of_each_version() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let v1 = Groups {
            v1_cpuacct: Some(dir.path().to_owned()),
            ..Groups::default()
        };
        write("cpuacct.usage", "9000\n");
        assert_eq!(cpu_of_cgroup(&v1).unwrap().kernel, None, "an older kernel");
        write("cpuacct.usage_sys", "4000\n");
        let found = cpu_of_cgroup(&v1).unwrap();
        assert_eq!(found.total, Duration::from_micros(9));
        assert_eq!(found.kernel, Some(Duration::from_micros(4)));
        write("cpu.stat", "usage_usec 9\nuser_usec 5\nsystem_usec 4\n");
        let v2 = Groups {
            v2: Some(dir.path().to_owned()),
            ..Groups::default()
        };
        assert_eq!(cpu_of_cgroup(&v2).unwrap().kernel, found.kernel);
    }

    #[test]
    fn throttling_is_read_in_the_unit_of_each_version() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(dir.path().join("cpu.stat"), text).unwrap();
        write("nr_periods 9\nnr_throttled 4\nthrottled_time 5000000\n");
        let v1 = Groups {
            v1_cpu: Some(dir.path().to_owned()),
            ..Groups::default()
        };
        let expected = Throttled {
            periods: 9,
            throttled_periods: 4,
            throttled_time: Duration::from_millis(5),
        };
        assert_eq!(throttled_in(&v1), Some(expected));
        write("usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5000\n");
        let v2 = Groups {
            v2: Some(dir.path().to_owned()),
            ..Groups::default()
        };
        assert_eq!(throttled_in(&v2), None, "no controller, no limit");
        fs::write(dir.path().join("cpu.max"), "max 100000").unwrap();
        assert_eq!(throttled_in(&v2), Some(expected));
    }
}
