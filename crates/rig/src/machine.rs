//! What machine this is, as far as a measurement depends on it.

use serde::Serialize;

/// The machine and its condition; what could not be read is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Model of the first CPU.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub cpus_online: usize,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Kernel name, release and architecture.
    pub kernel: String,
    /// The distribution's name (`/etc/os-release`).
    pub os: Option<String>,
    /// Load average over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Whether the CPU may exceed its nominal frequency.
    pub boost: Option<bool>,
    /// Whether cores run two threads each.
    pub smt: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// `v2`, `v1`, `v1 and v2 without controllers` or `none`.
    pub cgroups: String,
    /// CPU time that the host gave to others since boot, over all CPUs.
    pub steal_ms: Option<u64>,
    /// Signs of a virtual machine or container.
    pub virtualization: Option<String>,
}

/// Looks at the machine now.
#[must_use]
pub fn snapshot() -> Machine {
    unimplemented!()
}
