//! Counters of all CPUs. The difference of two readings shows the work of other programs between them.

use std::fs;
use std::time::Duration;

use model::Throttled;

use crate::cgroup::Hierarchies;
use crate::usage::throttled_in;

/// Counters of the machine since its boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time of the reading.
    pub at: std::time::Instant,
    /// Number of CPUs online.
    pub cpus: usize,
    /// Time that CPUs worked for any process of this machine, summed over CPUs. The kernel counts it in
    /// hundredths of a second.
    pub busy: Duration,
    /// Time that this machine had work for a CPU, but the host gave the CPU to other guests.
    pub steal: Duration,
    /// Throttling of the calling process's group by an external CPU limit (a container's, say). `None` if
    /// there is no limit or it cannot be seen.
    pub throttled: Option<Throttled>,
}

/// Reads the counters now. `None` without `/proc/stat`.
#[must_use]
pub fn moment() -> Option<Moment> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let (busy, steal) = times(&stat)?;
    // The lines `cpu0`, `cpu1`, … are CPUs, and the line `cpu ` is their sum.
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    Some(Moment {
        at: crate::clock::now(),
        cpus: stat.lines().filter(is_cpu).count().max(1),
        busy,
        steal,
        throttled: throttled_in(&Hierarchies::detect().own_groups()),
    })
}

/// Time since boot that cores were wanted while the host gave them to other guests, summed over cores.
/// Cheaper than [`moment`], for frequent readings.
#[must_use]
pub fn stolen() -> Option<Duration> {
    times(&fs::read_to_string("/proc/stat").ok()?).map(|(_, steal)| steal)
}

/// Sleeps for `length` and returns the share of all CPUs that was busy. It is the load of the machine before
/// anything of the run starts.
#[must_use]
pub fn busy_share_for(length: Duration) -> Option<f64> {
    let before = moment()?;
    crate::clock::wait_until(length, || false);
    let after = moment()?;
    let elapsed = after.at.duration_since(before.at).as_secs_f64();
    // Saturating, because the kernel does not guarantee that its counters never decrease.
    let busy = after.busy.saturating_sub(before.busy).as_secs_f64();
    let cpus = f64::from(u32::try_from(before.cpus).ok()?);
    (elapsed > 0.0).then(|| (busy / elapsed / cpus).min(1.0))
}

/// User, nice, system, irq and softirq, and steal, from the line for all CPUs (proc(5)).
fn times(stat: &str) -> Option<(Duration, Duration)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|number| number.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = *ticks.first_chunk()?;
    let per_second = rustix::param::clock_ticks_per_second();
    assert!(per_second > 0, "the kernel counts in parts of a second");
    // Guest time is left out, because the kernel counts it in user time as well.
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / per_second);
    Some((time(user + nice + system + irq + softirq), time(steal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_disks_are_not_busy() {
        let stat = "cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 0";
        let tick = 1000 / rustix::param::clock_ticks_per_second();
        let expected = (
            Duration::from_millis(31 * tick),
            Duration::from_millis(32 * tick),
        );
        assert_eq!(times(stat), Some(expected));
        assert_eq!(times("cpu  1 2 3"), None);
    }

    #[test]
    fn time_goes_forward_on_this_machine() {
        let before = moment().unwrap();
        let after = moment().unwrap();
        assert!(after.busy >= before.busy && after.steal >= before.steal);
        assert!((0.0..=1.0).contains(&busy_share_for(Duration::from_millis(20)).unwrap()));
    }
}
