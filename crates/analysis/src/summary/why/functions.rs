//! Functions and waits that differ most between two sampled systems.

use std::collections::{BTreeMap, BTreeSet};

use recording::{SampledSystem, WaitKind, float};
use serde::Serialize;

/// A difference of at most this many samples is chance.
const SAMPLES_MIN: f64 = 2.0;
/// Number of functions at the top.
const SHOWN: usize = 5;

/// The processor time of one function, without the functions that it calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionDifference {
    /// Name of the system.
    pub system: String,
    /// Name of the function.
    pub function: String,
    /// Microseconds per request in the variant.
    pub own_us: f64,
    /// Microseconds per request in the baseline.
    pub baseline_us: f64,
    /// `own_us` without `baseline_us`.
    pub difference_us: f64,
}

/// A system of the baseline and the same system of the variant.
pub(super) type Both<'a> = [Option<&'a SampledSystem>; 2];

/// The functions that differ most, over all systems.
pub(super) fn leading(
    baseline: &[&SampledSystem],
    own: &[&SampledSystem],
) -> Vec<FunctionDifference> {
    let systems = own.iter().chain(baseline).map(|it| it.system.as_str());
    let systems: BTreeSet<&str> = systems.collect();
    let find = |all: &[&SampledSystem], name: &str| {
        let found = all.iter().find(|it| it.system == name);
        found.map(|it| (own_times(it), us_per_sample(it)))
    };
    let mut all: Vec<FunctionDifference> = Vec::new();
    for system in systems {
        let (before, before_us) = find(baseline, system).unwrap_or_default();
        let (after, after_us) = find(own, system).unwrap_or_default();
        let least = before_us.max(after_us) * SAMPLES_MIN;
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let differences = names.into_iter().map(|function| {
            let own_us = after.get(function).copied().unwrap_or(0.0);
            let baseline_us = before.get(function).copied().unwrap_or(0.0);
            FunctionDifference {
                system: system.to_owned(),
                function: function.clone(),
                own_us,
                baseline_us,
                difference_us: own_us - baseline_us,
            }
        });
        all.extend(differences.filter(|it| it.difference_us.abs() > least));
    }
    let size = |it: &FunctionDifference| it.difference_us.abs();
    all.sort_by(|one, other| size(other).total_cmp(&size(one)));
    all.truncate(SHOWN);
    all
}

/// Microseconds per request that one sample stands for. 0 if the processor time is unknown.
fn us_per_sample(system: &SampledSystem) -> f64 {
    let samples: u64 = system.stacks.values().sum();
    system.cpu_us_per_request.unwrap_or(0.0) / float(samples.max(1))
}

/// Microseconds per request in each function itself. Empty if the processor time is unknown.
fn own_times(system: &SampledSystem) -> BTreeMap<String, f64> {
    let mut times: BTreeMap<String, f64> = BTreeMap::new();
    let samples: u64 = system.stacks.values().sum();
    let Some(us) = system.cpu_us_per_request.filter(|_| samples > 0) else {
        return times;
    };
    for (stack, count) in &system.stacks {
        let leaf = leaf(stack).to_owned();
        *times.entry(leaf).or_default() += us * float(*count) / float(samples);
    }
    times
}

fn leaf(stack: &str) -> &str {
    stack.rsplit(';').next().unwrap_or(stack)
}

/// The function with the largest difference of this sign.
pub(super) fn leading_function(both: Both<'_>, sign: f64) -> Option<String> {
    let of = |system: Option<&SampledSystem>| system.map(own_times).unwrap_or_default();
    largest(&of(both[0]), &of(both[1]), sign)
}

/// The system call with the largest difference of this sign.
pub(super) fn leading_wait(both: Both<'_>, wait: WaitKind, sign: f64) -> Option<String> {
    let of = |system: Option<&SampledSystem>| {
        let mut times: BTreeMap<String, f64> = BTreeMap::new();
        let waits = system.and_then(|it| it.waits.get(&wait));
        for (stack, us) in waits.into_iter().flatten() {
            *times.entry(leaf(stack).to_owned()).or_default() += us;
        }
        times
    };
    largest(&of(both[0]), &of(both[1]), sign)
}

/// The function of the program with the largest difference of this sign in blocked stacks that pass through
/// this function of the kernel.
pub(super) fn leading_waiter(both: Both<'_>, kernel: &str, sign: f64) -> Option<String> {
    let of = |system: Option<&SampledSystem>| {
        let mut times: BTreeMap<String, f64> = BTreeMap::new();
        let blocked = system.map(|it| &it.blocked);
        for (stack, us) in blocked.into_iter().flatten() {
            if let Some(function) = waiter(stack, kernel) {
                *times.entry(function).or_default() += us;
            }
        }
        times
    };
    largest(&of(both[0]), &of(both[1]), sign)
}

/// The last function outside of the kernel, without the wrappers of system calls that have no name or belong
/// to the C library. `None` if the stack does not pass through this function of the kernel.
fn waiter(stack: &str, kernel: &str) -> Option<String> {
    let is_kernel = |frame: &str| frame.ends_with("[kernel]");
    let frames: Vec<&str> = stack.split(';').collect();
    let mut passed = frames.iter().filter(|frame| is_kernel(frame));
    passed.find(|frame| frame.contains(kernel))?;
    // The first frame is the name of the thread.
    let program = frames.iter().skip(1).filter(|frame| !is_kernel(frame));
    let is_wrapper = |frame: &str| {
        frame.starts_with('[')
            || frame.contains("::arch::asm::syscall")
            || frame.contains("@GLIBC")
            || frame == "syscall"
            || frame == "__clone3"
    };
    let mut own = program.copied().filter(|frame| !is_wrapper(frame));
    own.next_back().map(str::to_owned)
}

fn largest(
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
    sign: f64,
) -> Option<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let difference = |name: &String| {
        let of = |times: &BTreeMap<String, f64>| times.get(name).copied().unwrap_or(0.0);
        (of(after) - of(before)) * sign.signum()
    };
    let positive = names.into_iter().filter(|name| difference(name) > 0.0);
    let largest = positive.max_by(|one, other| difference(one).total_cmp(&difference(other)));
    largest.cloned()
}
