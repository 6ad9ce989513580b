//! Whether the machine left the run alone: limits, other guests, other programs.

use std::collections::BTreeMap;

use super::{Check, CheckName, CheckState, Limits, Watched, ratio};
use crate::digits;
use crate::float::float;
use crate::metric::sum;
use crate::recording::{Kind, RoundRecord, SystemUsage};
use model::{Order, Throttled, micros};

/// A limit that stops a system is the lab's own wish and shows in every figure; one around the whole
/// run stops the generator as well, and spoils them. Absent where nothing is limited.
pub(super) fn throttling(complete: &[&RoundRecord]) -> Option<Check> {
    let mut systems: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut around = (0, 0);
    let add = |sum: &mut (u64, u64), throttled: &Throttled| {
        sum.0 += throttled.throttled_periods;
        sum.1 += throttled.periods;
    };
    for round in complete {
        for usage in &round.systems {
            if let Some(throttled) = &usage.throttled {
                add(systems.entry(&usage.name).or_default(), throttled);
            }
        }
        if let Some(throttled) = round
            .machine
            .as_ref()
            .and_then(|use_| use_.throttled.as_ref())
        {
            add(&mut around, throttled);
        }
    }
    let share = |(stopped, periods): (u64, u64)| ratio(float(stopped), float(periods));
    // Before any system's own limit: what stops the generator spoils every figure.
    if share(around) > THROTTLED_WEAK {
        let text = format!(
            "a processor limit around weigh stopped everything in {} of the periods",
            digits::percent(share(around))
        );
        let limits = Limits::new(THROTTLED_WEAK, 0.2);
        return Some(limits.judge(CheckName::Throttling, share(around), text));
    }
    let (name, most) = systems
        .into_iter()
        .map(|(name, sum)| (name, share(sum)))
        // The one that was stopped most is named; the others were stopped less.
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    let text = if most > 0.0 {
        format!(
            "`{name}` was stopped by its processor limit in {} of the periods, so its latency \
             depends on the limit",
            digits::percent(most)
        )
    } else {
        "no processor limit stopped a system".to_owned()
    };
    Some(Limits::only_weak(THROTTLED_WEAK).judge(CheckName::Throttling, most, text))
}

const THROTTLED_WEAK: f64 = 0.01;

/// Processor time that other guests of the host took.
///
/// Of the time asked for, and a failure only where it is much of all the time there was: a virtual
/// machine with little to do waits a little for its core at every waking, which is a large share of
/// very little, and the same for baseline and variants.
pub(super) fn steal(complete: &[&RoundRecord]) -> Option<Check> {
    let (mut steal_us, mut wanted_us, mut all_us) = (0.0, 0.0, 0.0);
    for round in complete {
        let machine = round.machine.as_ref()?;
        steal_us += float(machine.steal_us);
        wanted_us += float(machine.busy_us + machine.steal_us);
        all_us += machine.cores_us();
    }
    let (share, of_all) = (ratio(steal_us, wanted_us), ratio(steal_us, all_us));
    let text = format!(
        "other guests of the host took {} of the requested processor time, {} of all processor time",
        digits::percent(share),
        digits::percent(of_all)
    );
    let mut check = Limits::new(0.02, 0.2).judge(CheckName::Steal, share, text);
    // Both must be large for a failure; see above.
    if check.state == CheckState::Failed && of_all < STOLEN_FAILED {
        check.state = CheckState::Weak;
        check.failed_beyond = None;
    }
    Some(check)
}

/// Beyond this share of all cores' time, what others took withholds a verdict.
const STOLEN_FAILED: f64 = 0.1;

/// The time in which systems were ready to run while other threads had the cores, relative to latency.
///
/// In a closed loop that is what the load is for. An open loop leaves room, so a system that waits for
/// a core waits for something else: the generator, a neighbor, too many threads of its own. A
/// system with a limit waits for its limit, which is the lab's own wish. Absent where the kernel does
/// not count it.
pub(super) fn starved(complete: &[&RoundRecord]) -> Option<Check> {
    let (mut waited_us, mut latency_us, mut answers) = (0.0, 0.0, 0.0);
    let is_free = |system: &&SystemUsage| system.throttled.is_none();
    for round in complete {
        let free = round.systems.iter().filter(is_free);
        let waited = sum(free.map(|system| system.waited_for_cpu_us))?;
        let completed = float(round.outcomes.completed());
        let latency = round.latency_ns_hdr.histogram();
        waited_us += float(waited);
        // Without an answer there is no mean, and `completed` is 0 as well.
        latency_us += latency.mean_ns().unwrap_or(0.0) / 1e3 * completed;
        answers += completed;
    }
    let share = ratio(waited_us, latency_us);
    let mut text = format!(
        "the systems waited {} of each request for a free core",
        digits::duration_ns(ratio(waited_us, answers) * 1e3)
    );
    if share > SYSTEMS_STARVED {
        text += &format!(
            ", {} of its mean latency. Lower the rate, or give them their own cores with `pin`",
            digits::percent(share)
        );
    }
    Some(Limits::only_weak(SYSTEMS_STARVED).judge(CheckName::SystemsStarved, share, text))
}

/// Waiting for a core beyond this share of latency: more than half of it is not the systems' own work.
const SYSTEMS_STARVED: f64 = 0.5;

/// The processor time that neither the generator nor a system used. In a single load `weigh` may not know the
/// target's processes on this machine, so only the time before the load counts.
pub(super) fn load(watched: &Watched<'_>) -> Option<Check> {
    let before = watched.recording.environment.busy_share_before;
    let meanwhile = match watched.recording.kind {
        Kind::Lab => others(watched),
        Kind::Load => None,
    };
    let share = before.into_iter().chain(meanwhile).reduce(f64::max)?;
    // The kernel counts in hundredths of a second: no more digits than whole percents.
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut parts = Vec::new();
    parts.extend(before.map(|share| {
        format!(
            "{} of all cores' time was used before the run",
            percent(share)
        )
    }));
    parts.extend(meanwhile.map(|share| {
        format!(
            "other programs used {} of it during the measurements",
            percent(share)
        )
    }));
    let text = match before {
        Some(_) => parts.join(", "),
        None => parts.join(", ").replace("of it", "of all cores' time"),
    };
    Some(Limits::only_weak(0.1).judge(CheckName::MachineLoad, share, text))
}

/// Whether the systems of `other` were loaded during this measurement: itself and, side by side, the
/// other variants of its round and group, which are no strangers.
fn is_beside(watched: &Watched<'_>, round: &RoundRecord, other: &RoundRecord) -> bool {
    match watched.recording.order_measured() {
        // While one is asked for its highest rate, the others idle.
        Order::SideBySide if watched.recording.load.capacity.is_some() => {
            std::ptr::eq(round, other)
        }
        // An attempt that was made again has systems and time of its own.
        Order::SideBySide => other.part() == round.part() && other.disturbed == round.disturbed,
        Order::InTurn => std::ptr::eq(round, other),
    }
}

/// The share of all cores that others kept busy; none where a system's time is not known.
fn others(watched: &Watched<'_>) -> Option<f64> {
    let (mut others_us, mut cores_us) = (0.0, 0.0);
    for round in watched.complete {
        let machine = round.machine.as_ref()?;
        let is_beside = |other: &&RoundRecord| is_beside(watched, round, other);
        let beside = watched.recording.rounds.iter().filter(is_beside);
        let own = beside.flat_map(|one| &one.systems);
        // What all share stands in each measurement and was used once.
        let systems = own.chain(&round.shared).map(|usage| usage.cpu_us);
        let systems_us: u64 = systems.sum::<Option<u64>>()?;
        others_us += float(machine.busy_us) - float(systems_us + micros(round.generator.cpu));
        cores_us += machine.cores_us();
    }
    // The machine's time is counted in hundredths of a second and may be less than its parts.
    Some(ratio(others_us.max(0.0), cores_us))
}
