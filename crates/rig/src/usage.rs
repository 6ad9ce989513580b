//! What a system has used: CPU time, memory, throttling, context switches.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a whole system (every process it consists of) has used since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, user and system.
    pub cpu: Duration,
    /// The most memory that was resident, in bytes: the sum over living
    /// processes of the peak of each (`VmHWM`). See the module's notes.
    pub memory_peak: Option<u64>,
    /// Memory resident now, in bytes: the sum of `VmRSS`.
    pub memory_now: Option<u64>,
    /// The most memory the kernel charged to the system's cgroup, in bytes:
    /// with page cache and kernel memory. A memory limit acts on this number.
    pub memory_charged_peak: Option<u64>,
    /// How often the CPU limit stopped the system; `None` without a limit.
    pub throttled: Option<Throttled>,
    /// Context switches of the threads alive now, voluntary and not.
    pub context_switches: Option<u64>,
    /// Where `cpu` comes from.
    pub source: Source,
}

/// What a CPU limit did (`cpu.stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Enforcement periods in which the system was runnable.
    pub periods: u64,
    /// Periods in which it used up its share and was stopped.
    pub throttled: u64,
    /// Time it was stopped, summed over CPUs.
    pub throttled_time: Duration,
}

/// Where CPU time was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `cpu.stat` of a version 2 cgroup; microseconds.
    CgroupV2,
    /// `cpuacct.usage` of a version 1 cgroup; nanoseconds.
    CgroupV1,
    /// `/proc/PID/stat` of every process; hundredths of a second.
    Proc,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CgroupV2 => "cgroup v2",
            Self::CgroupV1 => "cgroup v1",
            Self::Proc => "/proc",
        })
    }
}
