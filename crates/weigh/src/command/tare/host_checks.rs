//! Checks of this machine for measuring, with remedies.
//!
//! [`Facts`] are read and [`examine`] judges them, so that tests can check every rule with facts of other
//! machines. If a machine does not show a fact, it is reported as not visible and never guessed.

use std::fs;

use rig::machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a check.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// The check found no problem.
    Ok,
    /// The machine may cause small differences.
    Weak,
    /// Do not measure on this machine before the problem is solved.
    Failed,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Weak => "weak",
            State::Failed => "failed",
        }
    }
}

/// A check of the machine, with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Finding {
    /// The name of the check.
    pub(crate) name: String,
    /// The result: ok, weak or failed.
    pub(crate) state: State,
    /// The observation with its figure, in words.
    pub(crate) found: String,
    /// The remedy, as an instruction. Absent if the user needs to change no setting.
    pub(crate) advice: Option<String>,
}

/// The input of the checks.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Read before the measurement of the null server.
    pub(super) machine: Machine,
    /// Time that the host gave to other guests meanwhile, as a share of all CPUs' time.
    pub(super) steal_share: Option<f64>,
    /// The p99 of the lateness, in microseconds.
    pub(super) lateness_us_p99: Option<f64>,
    /// Maximum delay of timers in processes started from here, in nanoseconds.
    pub(super) timer_slack_ns: Option<u64>,
    /// Swap in use, in bytes.
    pub(super) swap_used_bytes: Option<u64>,
    /// The value of `kernel.perf_event_paranoid`, if readable.
    pub(super) perf_paranoid: Option<i64>,
    pub(super) is_root: bool,
}

impl Facts {
    /// Reads the facts that `machine` lacks.
    pub(super) fn read(machine: Machine) -> Facts {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Facts {
            machine,
            steal_share: None,
            lateness_us_p99: None,
            timer_slack_ns: number("/proc/self/timerslack_ns"),
            swap_used_bytes: swap_used(&meminfo),
            perf_paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
            is_root: rustix::process::geteuid().is_root(),
        }
    }
}

fn number<N: std::str::FromStr>(path: &str) -> Option<N> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn swap_used(meminfo: &str) -> Option<u64> {
    let kib = |key: &str| -> Option<u64> {
        let rest = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let free = kib("SwapFree:")?;
    // Both lines are read at one moment, but the kernel does not guarantee that they agree.
    Some(kib("SwapTotal:")?.saturating_sub(free) * 1024)
}

/// Judges the facts, the most serious sources of noise first.
pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    vec![
        cores(facts.machine.cpus_allowed),
        load(&facts.machine),
        steal(facts.steal_share),
        lateness(facts.lateness_us_p99),
        slack(facts.timer_slack_ns),
        governor(facts.machine.governor.as_deref()),
        boost(facts.machine.boost),
        swap(facts.swap_used_bytes),
        huge_pages(facts.machine.transparent_huge_pages.as_deref()),
        cgroups(&facts.machine.cgroups),
        perf(facts.perf_paranoid, facts.is_root),
    ]
}

fn finding(name: &str, state: State, found: String, advice: &str) -> Finding {
    Finding {
        name: name.to_owned(),
        state,
        found,
        advice: (state != State::Ok).then(|| advice.to_owned()),
    }
}

/// A finding without a fact to judge.
fn not_visible(name: &str, found: &str) -> Finding {
    finding(name, State::Ok, found.to_owned(), "")
}

/// Ok up to `weak_beyond`, weak up to `failed_beyond`, and failed above.
fn grade(figure: f64, weak_beyond: f64, failed_beyond: f64) -> State {
    if figure > failed_beyond {
        State::Failed
    } else if figure > weak_beyond {
        State::Weak
    } else {
        State::Ok
    }
}

fn cores(allowed: usize) -> Finding {
    let state = match allowed {
        0 | 1 => State::Failed,
        2 | 3 => State::Weak,
        _ => State::Ok,
    };
    let advice = "generator and systems share the same cores. Use a machine with 4 or more, or give \
                  the container more";
    finding("cores", state, format!("{allowed} usable"), advice)
}

fn load(machine: &Machine) -> Finding {
    let Some([minute, ..]) = machine.load_average else {
        return not_visible("load", "not visible");
    };
    // All online cores, including cores that are not allowed, because the load average covers the whole
    // machine.
    let per_core = minute / machine.cpus_online.max(1) as f64;
    let advice = "other programs are running. End them, or wait until they are done (`top` lists \
                  them)";
    finding(
        "load",
        grade(per_core, 0.25, 1.0),
        format!("{minute:.2} over the last minute, {per_core:.2} per core"),
        advice,
    )
}

fn steal(share: Option<f64>) -> Finding {
    let Some(share) = share else {
        return not_visible("steal", "not visible");
    };
    let advice = "the host gives this machine's cores to other guests. Use a dedicated machine or \
                  dedicated cores, and more rounds";
    finding(
        "steal",
        grade(share, 0.005, 0.05),
        format!("{:.1} % of the time", share * 100.0),
        advice,
    )
}

fn lateness(lateness_us_p99: Option<f64>) -> Finding {
    let Some(us) = lateness_us_p99 else {
        return not_visible("lateness", "not measured");
    };
    let advice = "sends leave late because this machine wakes threads late. End other programs, run \
                  weigh as root for real-time priority, pin the generator to its own core (--pin), \
                  or increase --spin";
    finding(
        "lateness",
        grade(us, 100.0, 1000.0),
        format!("99 % of the sends left within {us:.0} us of their due"),
        advice,
    )
}

fn slack(ns: Option<u64>) -> Finding {
    let Some(ns) = ns else {
        return not_visible("timer slack", "not visible");
    };
    // 50 us is the default of Linux. The generator sets its own value to the minimum.
    let state = if ns > 50_000 { State::Weak } else { State::Ok };
    let advice = "timers of systems started from here fire late. Start weigh from an ordinary \
                  shell";
    let us = ns as f64 / 1000.0;
    finding("timer slack", state, format!("{us:.0} us"), advice)
}

fn governor(governor: Option<&str>) -> Finding {
    let Some(governor) = governor else {
        return not_visible("governor", "not visible, the host or the firmware decides");
    };
    let state = if governor == "performance" {
        State::Ok
    } else {
        State::Weak
    };
    let advice = "cores slow down between requests. Run `cpupower frequency-set -g performance`";
    finding("governor", state, governor.to_owned(), advice)
}

fn boost(boost: Option<bool>) -> Finding {
    match boost {
        None => not_visible("boost", "not visible, the host or the firmware decides"),
        Some(false) => finding("boost", State::Ok, "off".to_owned(), ""),
        Some(true) => finding(
            "boost",
            State::Weak,
            "on".to_owned(),
            "the clock depends on heat and on the other cores. Write 0 to \
             /sys/devices/system/cpu/cpufreq/boost (Intel: 1 to intel_pstate/no_turbo)",
        ),
    }
}

fn swap(used_bytes: Option<u64>) -> Finding {
    let Some(bytes) = used_bytes else {
        return not_visible("swap", "not visible");
    };
    let mib = bytes / (1024 * 1024);
    let state = if mib > 0 { State::Weak } else { State::Ok };
    let advice = "swapped memory is read back during a measurement. Free some memory, then run \
                  `swapoff -a`";
    finding("swap", state, format!("{mib} MiB in use"), advice)
}

fn huge_pages(choice: Option<&str>) -> Finding {
    let Some(choice) = choice else {
        return not_visible("huge pages", "not visible");
    };
    let state = if choice == "always" {
        State::Weak
    } else {
        State::Ok
    };
    let advice = "memory peaks and pauses vary by chance. Write madvise to \
                  /sys/kernel/mm/transparent_hugepage/enabled";
    finding("huge pages", state, choice.to_owned(), advice)
}

fn cgroups(described: &str) -> Finding {
    let has_controllers = described == "v1" || described == "v2" || described.starts_with("v1 and");
    let state = if has_controllers {
        State::Ok
    } else {
        State::Weak
    };
    let advice = "limits cannot be enforced, and CPU time comes from /proc. Run as root, or \
                  delegate the cpu and memory controllers";
    finding("cgroups", state, described.to_owned(), advice)
}

fn perf(paranoid: Option<i64>, is_root: bool) -> Finding {
    let Some(paranoid) = paranoid else {
        return not_visible("perf", "not visible");
    };
    // From 2 on, users without privileges cannot sample the kernel.
    let state = if is_root || paranoid <= 1 {
        State::Ok
    } else {
        State::Weak
    };
    let who = if is_root { ", as root" } else { "" };
    let advice = "profiles cannot include time in the kernel. Run `sysctl \
                  kernel.perf_event_paranoid=1`";
    let found = format!("kernel.perf_event_paranoid = {paranoid}{who}");
    finding("perf", state, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine without any finding.
    fn quiet() -> Facts {
        Facts {
            machine: Machine {
                cpus_allowed: 8,
                cpus_online: 8,
                load_average: Some([0.1, 0.1, 0.1]),
                governor: Some("performance".to_owned()),
                boost: Some(false),
                transparent_huge_pages: Some("madvise".to_owned()),
                cgroups: "v2".to_owned(),
                ..rig::machine::snapshot()
            },
            steal_share: Some(0.0),
            lateness_us_p99: Some(20.0),
            timer_slack_ns: Some(50_000),
            swap_used_bytes: Some(0),
            perf_paranoid: Some(2),
            is_root: true,
        }
    }

    /// The findings that are not ok, with their states.
    fn disturbed(change: impl FnOnce(&mut Facts)) -> Vec<(String, State)> {
        let mut facts = quiet();
        change(&mut facts);
        let findings = examine(&facts);
        for finding in &findings {
            assert_eq!(finding.advice.is_some(), finding.state != State::Ok);
        }
        findings
            .into_iter()
            .filter(|finding| finding.state != State::Ok)
            .map(|finding| (finding.name, finding.state))
            .collect()
    }

    /// A planted fault, with the check that must find it.
    type Fault = (&'static str, State, fn(&mut Facts));

    #[test]
    fn each_disturbance_raises_its_own_finding_and_no_other() {
        assert_eq!(disturbed(|_| {}), []);
        let faults: [Fault; 13] = [
            ("cores", State::Weak, |facts| facts.machine.cpus_allowed = 2),
            ("cores", State::Failed, |facts| {
                facts.machine.cpus_allowed = 1;
            }),
            ("load", State::Failed, |facts| {
                facts.machine.load_average = Some([9.0, 0.0, 0.0]);
            }),
            ("steal", State::Weak, |facts| facts.steal_share = Some(0.01)),
            ("lateness", State::Failed, |facts| {
                facts.lateness_us_p99 = Some(2000.0);
            }),
            ("timer slack", State::Weak, |facts| {
                facts.timer_slack_ns = Some(1_000_000);
            }),
            ("governor", State::Weak, |facts| {
                facts.machine.governor = Some("powersave".to_owned());
            }),
            ("boost", State::Weak, |facts| {
                facts.machine.boost = Some(true);
            }),
            ("swap", State::Weak, |facts| {
                facts.swap_used_bytes = Some(64 << 20);
            }),
            ("huge pages", State::Weak, |facts| {
                facts.machine.transparent_huge_pages = Some("always".to_owned());
            }),
            ("cgroups", State::Weak, |facts| {
                facts.machine.cgroups = "v2 without controllers".to_owned();
            }),
            ("cgroups", State::Weak, |facts| {
                facts.machine.cgroups = "none".to_owned();
            }),
            ("perf", State::Weak, |facts| facts.is_root = false),
        ];
        for (name, state, change) in faults {
            assert_eq!(disturbed(change), [(name.to_owned(), state)]);
        }
    }

    #[test]
    fn what_is_not_visible_is_not_held_against_a_machine() {
        let found = disturbed(|facts| {
            facts.machine.governor = None;
            facts.machine.boost = None;
            facts.steal_share = None;
            facts.swap_used_bytes = None;
        });
        assert_eq!(found, []);
    }

    #[test]
    fn swap_in_use_is_what_is_not_free() {
        let meminfo = "SwapTotal:  2048 kB\nSwapFree:   1024 kB\n";
        assert_eq!(swap_used(meminfo), Some(1024 * 1024));
        assert_eq!(swap_used(""), None);
    }
}
