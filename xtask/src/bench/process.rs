//! CPU time and memory of a process, from the kernel's counters.

use std::fs;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::clock::{now, pause};

/// Clock ticks of `/proc/PID/stat`: 100 a second on every Linux that Rust runs on.
const TICK_US: f64 = 10_000.0;

/// CPU time and memory of a process that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) cpu_us: f64,
    /// Peak of its resident memory, with the pages of its program file.
    pub(super) peak_kib: f64,
    /// The largest sample of its resident memory without pages of files.
    pub(super) own_kib: f64,
}

/// Waits for the end of `child`, and reads its usage before the kernel discards it.
pub(super) fn account(child: &mut Child, limit: Duration) -> anyhow::Result<Account> {
    let folder = format!("/proc/{}", child.id());
    let (mut peak_kib, mut own_kib): (f64, f64) = (0.0, 0.0);
    let mut cpu_us = None;
    wait_until(limit, || {
        // A process that has ended has no such lines, so the last peak counts.
        let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        peak_kib = peak_kib.max(kib_of(&status, "VmHWM:").unwrap_or(0.0));
        own_kib = own_kib.max(kib_of(&status, "RssAnon:").unwrap_or(0.0));
        let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
        let (is_over, us) = cpu_of(&stat).unwrap_or((false, 0.0));
        cpu_us = is_over.then_some(us);
        is_over
    });
    let Some(cpu_us) = cpu_us else {
        // A process that is too slow must not disturb the next run.
        let _ = child.kill();
        let _ = child.wait();
        bail!("it did not end within {limit:?}");
    };
    child.wait().context("a child can be waited for")?;
    Ok(Account {
        cpu_us,
        peak_kib,
        own_kib,
    })
}

/// A line of `/proc/PID/status` in KiB. `None` for a process that has ended.
fn kib_of(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// True if the process is a zombie, and its user and system time.
fn cpu_of(stat: &str) -> Option<(bool, f64)> {
    // The name in brackets may contain any character. The rest is regular.
    let words: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: f64 = words.get(11)?.parse::<f64>().ok()? + words.get(12)?.parse::<f64>().ok()?;
    Some((*words.first()? == "Z", ticks * TICK_US))
}

/// Polls until `condition` holds or `limit` is over.
pub(super) fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) {
    let end = now() + limit;
    while !condition() && now() < end {
        pause(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_read_whatever_a_process_calls_itself() {
        let stat = "7 (a) Z (b) Z 1 7 7 0 -1 4194304 9 0 0 0 120 30 0 0 20 0 1 0 5";
        assert_eq!(cpu_of(stat), Some((true, 1_500_000.0)));
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nRssAnon:\t     512 kB\n";
        assert_eq!(kib_of(status, "VmHWM:"), Some(2048.0));
        assert_eq!(kib_of(status, "RssAnon:"), Some(512.0));
        assert_eq!(cpu_of(""), None);
    }
}
