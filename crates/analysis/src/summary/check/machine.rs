//! Checks that the machine did not disturb the run: limits, other guests, other programs.

use std::collections::BTreeMap;

use model::{Order, Throttled, micros};
use recording::{Kind, RoundRecord, SystemUsage, float};

use super::{Check, CheckFacts, CheckName, CheckState, Limits, Watched, ratio};
use crate::metric::sum;

/// Throttling by a limit. The lab requests the limit of a system, and every figure includes its effect. A
/// limit around the whole run also stops the generator, which spoils the figures. `None` if there is no
/// limit.
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
    // This comes before the limits of systems, because a stopped generator spoils every figure.
    if share(around) > THROTTLED_WEAK {
        let limits = Limits::new(THROTTLED_WEAK, 0.2);
        return Some(limits.judge(
            CheckName::Throttling,
            share(around),
            CheckFacts::LimitAround,
        ));
    }
    let (name, most) = systems
        .into_iter()
        .map(|(name, sum)| (name, share(sum)))
        // The sentence names the system that was stopped most.
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    let facts = CheckFacts::LimitOfSystem {
        system: name.to_owned(),
    };
    Some(Limits::only_weak(THROTTLED_WEAK).judge(CheckName::Throttling, most, facts))
}

const THROTTLED_WEAK: f64 = 0.01;

/// Processor time that other guests of the host took.
///
/// The share is relative to the requested time. It fails only if it is also a large share of all processor
/// time. A virtual machine with little work waits a little for its core at every wake-up. This is a large
/// share of very little, and it is equal for baseline and variants.
pub(super) fn steal(complete: &[&RoundRecord]) -> Option<Check> {
    let (mut steal_us, mut wanted_us, mut all_us) = (0.0, 0.0, 0.0);
    for round in complete {
        let machine = round.machine.as_ref()?;
        steal_us += float(machine.steal_us);
        wanted_us += float(machine.busy_us + machine.steal_us);
        all_us += machine.cores_us();
    }
    let (share, of_all) = (ratio(steal_us, wanted_us), ratio(steal_us, all_us));
    let mut check =
        Limits::new(0.02, 0.2).judge(CheckName::Steal, share, CheckFacts::Steal { of_all });
    // A failure requires that both shares are large. The reason is above.
    if check.state == CheckState::Failed && of_all < STOLEN_FAILED {
        check.state = CheckState::Weak;
        check.failed_beyond = None;
    }
    Some(check)
}

/// If other guests take more than this share of all cores' time, the verdict is withheld.
const STOLEN_FAILED: f64 = 0.1;

/// The time that systems were ready to run while other threads had the cores, relative to latency.
///
/// A closed loop is meant to cause such waiting. An open loop leaves room. A system that waits for a core
/// then competes with something else: the generator, a neighbor, or too many threads of its own. A system
/// with a limit waits for its limit, which the lab requests. `None` if the kernel does not count the time.
pub(super) fn starved(complete: &[&RoundRecord]) -> Option<Check> {
    let (mut waited_us, mut latency_us, mut answers) = (0.0, 0.0, 0.0);
    let is_free = |system: &&SystemUsage| system.throttled.is_none();
    for round in complete {
        let free = round.systems.iter().filter(is_free);
        let waited = sum(free.map(|system| system.waited_for_cpu_us))?;
        let completed = float(round.outcomes.completed());
        let latency = round.latency_ns_hdr.histogram();
        waited_us += float(waited);
        // Without a response there is no mean, and `completed` is 0 as well.
        latency_us += latency.mean_ns().unwrap_or(0.0) / 1e3 * completed;
        answers += completed;
    }
    let share = ratio(waited_us, latency_us);
    let facts = CheckFacts::SystemsWaited {
        each_us: ratio(waited_us, answers),
    };
    Some(Limits::only_weak(SYSTEMS_STARVED).judge(CheckName::SystemsStarved, share, facts))
}

/// Largest share of latency that systems may wait for a core. Beyond it, more than half of the latency is not
/// the systems' own work.
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
    let facts = CheckFacts::BusyCores { before, meanwhile };
    Some(Limits::only_weak(0.1).judge(CheckName::MachineLoad, share, facts))
}

/// True if the systems of `other` were loaded during this measurement. This includes the measurement itself
/// and, side by side, the other variants of its round and group.
fn is_beside(watched: &Watched<'_>, round: &RoundRecord, other: &RoundRecord) -> bool {
    match watched.recording.order_measured() {
        // While a search loads one variant, the other variants are idle.
        Order::SideBySide if watched.recording.load.capacity.is_some() => {
            std::ptr::eq(round, other)
        }
        // A repeated attempt has its own systems and its own time.
        Order::SideBySide => other.part() == round.part() && other.disturbed == round.disturbed,
        Order::InTurn => std::ptr::eq(round, other),
    }
}

/// The share of all cores that other programs kept busy. `None` if a system's time is unknown.
fn others(watched: &Watched<'_>) -> Option<f64> {
    let (mut others_us, mut cores_us) = (0.0, 0.0);
    for round in watched.complete {
        let machine = round.machine.as_ref()?;
        let is_beside = |other: &&RoundRecord| is_beside(watched, round, other);
        let beside = watched.recording.rounds.iter().filter(is_beside);
        let own = beside.flat_map(|one| &one.systems);
        // Every measurement contains the shared systems, but their time was used once.
        let systems = own.chain(&round.shared).map(|usage| usage.cpu_us);
        let systems_us: u64 = systems.sum::<Option<u64>>()?;
        others_us += float(machine.busy_us) - float(systems_us + micros(round.generator.cpu));
        cores_us += machine.cores_us();
    }
    // The machine's time is counted in hundredths of a second and may be less than the sum of its parts.
    Some(ratio(others_us.max(0.0), cores_us))
}
