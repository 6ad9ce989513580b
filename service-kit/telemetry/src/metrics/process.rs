//! Resource usage of this process, from `/proc`. Without `/proc` these metrics are missing.

use std::fs;

use super::Scrape;

/// Writes memory and CPU time under the names that Prometheus clients use.
pub(super) fn tell(scrape: &mut Scrape<'_>) -> std::fmt::Result {
    if let Some(bytes) = resident_bytes() {
        let name = "process_resident_memory_bytes";
        scrape.gauge(name, "Memory that is resident now", (&[], bytes))?;
    }
    if let Some(seconds) = cpu_seconds() {
        let help = "CPU time of all threads, user and system";
        scrape.seconds("process_cpu_seconds", help, seconds)?;
    }
    Ok(())
}

/// Resident memory: field 2 of `/proc/self/statm`, which counts pages.
fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * u64::try_from(rustix::param::page_size()).ok()?)
}

/// CPU time: fields 14 and 15 of `/proc/self/stat`, which count clock ticks.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in field 2 may contain spaces, so fields are counted from its closing parenthesis.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut ticks = after_name.split(' ').skip(11).map(str::parse::<u32>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some((f64::from(user) + f64::from(system)) / f64::from(per_second))
}
