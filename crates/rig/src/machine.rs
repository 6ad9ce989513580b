//! Description of the machine, limited to properties that affect a measurement.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::cgroup::Hierarchies;

/// The machine and its condition. `None` if a property could not be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Model of the first CPU.
    pub cpu_model: Option<String>,
    /// CPUs that this process may run on.
    pub cpus_allowed: usize,
    /// Number of CPUs online.
    pub cpus_online: usize,
    /// Total memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Kernel name, release and architecture.
    pub kernel: String,
    /// Name and version of the distribution (`/etc/os-release`).
    pub os: Option<String>,
    /// Load average over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// True if the CPU may exceed its nominal frequency.
    pub boost: Option<bool>,
    /// True if cores run more than one thread each.
    pub smt: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Available versions of control groups: `v2`, `v1`, `v1 and v2`, `v1 and v2 without controllers`,
    /// `v2 without controllers` or `none`.
    pub cgroups: String,
    /// CPU time that the host gave to others since boot, in milliseconds, summed
    /// over all CPUs.
    pub steal_ms: Option<u64>,
    /// Signs of a virtual machine or container.
    pub virtualization: Option<String>,
}

/// The numbers of the cores that this process may run on, in rising order. Empty if the system does not
/// report them.
#[must_use]
pub fn cores_allowed() -> Vec<usize> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return Vec::new();
    };
    let cores = 0..rustix::thread::CpuSet::MAX_CPU;
    cores.filter(|core| allowed.is_set(*core)).collect()
}

/// Reads the properties of the machine now.
#[must_use]
pub fn snapshot() -> Machine {
    // If the file is missing, its values are unknown, as with every other file here.
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let uname = rustix::system::uname();
    let part = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Machine {
        cpu_model: colon_value(&cpuinfo, "model name"),
        cpus_allowed: std::thread::available_parallelism().map_or(1, usize::from),
        cpus_online: text("/sys/devices/system/cpu/online")
            .and_then(|list| count_of_list(&list))
            // Some containers hide `/sys`, but at least one CPU runs this code.
            .unwrap_or_else(|| cpuinfo.matches("processor\t").count().max(1)),
        memory_bytes: text("/proc/meminfo").and_then(|text| {
            let kib = colon_value(&text, "MemTotal")?;
            Some(kib.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
        }),
        kernel: format!(
            "{} {} {}",
            part(uname.sysname()),
            part(uname.release()),
            part(uname.machine())
        ),
        os: text("/etc/os-release").and_then(|text| os_name(&text)),
        load_average: text("/proc/loadavg").and_then(|text| load_average(&text)),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        boost: boost(),
        smt: text("/sys/devices/system/cpu/smt/active").map(|active| active == "1"),
        transparent_huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text)),
        cgroups: Hierarchies::detect().describe().to_owned(),
        steal_ms: text("/proc/stat").and_then(|text| steal_ms(&text)),
        virtualization: virtualization(&cpuinfo, &part(uname.release())),
    }
}

/// Memory in bytes that programs may still take without displacing other programs. It is the kernel's figure
/// for the machine, or less if this process's own group is limited (a container's limit, say). `None` if the
/// kernel does not report it.
#[must_use]
pub fn memory_available() -> Option<u64> {
    let meminfo = text("/proc/meminfo")?;
    let kib = colon_value(&meminfo, "MemAvailable")?;
    let of_machine = kib.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024;
    let of_group = Hierarchies::detect().own_groups().memory_left();
    Some(of_group.map_or(of_machine, |left| left.min(of_machine)))
}

fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The value of the first `key : value` line.
fn colon_value(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// Counts the numbers in a list such as `0-3,8`.
fn count_of_list(list: &str) -> Option<usize> {
    list.split(',')
        .map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
            // A reversed range is invalid, and must not give a huge number.
            (high + 1).checked_sub(low)
        })
        .sum()
}

fn os_name(os_release: &str) -> Option<String> {
    os_release.lines().find_map(|line| {
        let value = line.strip_prefix("PRETTY_NAME=")?;
        Some(value.trim_matches('"').to_owned())
    })
}

fn load_average(loadavg: &str) -> Option<[f64; 3]> {
    let mut numbers = loadavg.split(' ').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// AMD and other vendors have a file `boost`. Intel's driver reports the opposite, `no_turbo`.
fn boost() -> Option<bool> {
    text("/sys/devices/system/cpu/cpufreq/boost")
        .map(|boost| boost == "1")
        .or_else(|| {
            text("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|no_turbo| no_turbo == "0")
        })
}

/// The word in brackets of `always [madvise] never`.
fn chosen(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// The eighth number of the line for all CPUs (proc(5)), in clock ticks.
fn steal_ms(stat: &str) -> Option<u64> {
    let ticks: u64 = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_ascii_whitespace()
        .nth(7)?
        .parse()
        .ok()?;
    let per_second = rustix::param::clock_ticks_per_second();
    assert!(per_second > 0, "the kernel counts in parts of a second");
    Some(ticks * 1000 / per_second)
}

fn virtualization(cpuinfo: &str, release: &str) -> Option<String> {
    let mut signs = Vec::new();
    let is_guest = colon_value(cpuinfo, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if is_guest || Path::new("/sys/hypervisor/type").exists() {
        let name = text("/sys/hypervisor/type").or_else(|| text("/sys/class/dmi/id/sys_vendor"));
        signs.push(match name {
            Some(name) => format!("virtual machine ({name})"),
            None => "virtual machine".to_owned(),
        });
    }
    if release.to_ascii_lowercase().contains("microsoft") {
        signs.push("WSL".to_owned());
    }
    if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        signs.push("container".to_owned());
    }
    (!signs.is_empty()).then(|| signs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let machine = snapshot();
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
        assert!(machine.cpus_online >= 1 && machine.cpus_allowed >= 1);
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn files_of_other_machines_are_understood() {
        assert_eq!(count_of_list("0-3,8"), Some(5));
        assert_eq!(count_of_list("none"), None);
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        let stat = "cpu  1 2 3 4 5 6 7 50 9 10\ncpu0 0";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(steal_ms(stat), Some(50 * 1000 / ticks));
        let cpuinfo = "processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(colon_value(cpuinfo, "model name").as_deref(), Some("A: B"));
        assert!(virtualization(cpuinfo, "6.1").is_some());
        assert_eq!(load_average("0.5 1.25 2 1/99 7"), Some([0.5, 1.25, 2.0]));
    }
}
