//! Checks that the generator could do its work.

use model::micros;
use recording::{RoundRecord, float};

use super::{Check, CheckFacts, CheckName, Limits, ratio};

/// Largest share of the time that the generator may stand still although work is due. Beyond it, the
/// measurement is spoiled.
pub const PAUSED_SHARE_MAX: f64 = 0.02;

/// Largest share of its time that the generator may be ready to run while other threads have its core. Beyond
/// it, the measurement is spoiled, because the generator sent and received at less than half of its speed.
pub const STARVED_SHARE_MAX: f64 = 0.5;

/// True if the generator was kept from running for so large a share that `weigh` should repeat the
/// measurement.
pub fn is_disturbed(round: &RoundRecord) -> bool {
    // The machine causes both and the variant does not, so a repetition is fair.
    let is_starved = |share: f64| share > STARVED_SHARE_MAX;
    round.paused_share() > PAUSED_SHARE_MAX || round.starved_share().is_some_and(is_starved)
}

/// The busy share of the generator's time. A generator that is always busy may limit the rate.
pub(super) fn cpu(complete: &[&RoundRecord]) -> Option<Check> {
    let busy_us: f64 = complete
        .iter()
        .map(|round| float(micros(round.generator.cpu)))
        .sum();
    let available_us: f64 = complete.iter().map(|round| round.counted_us()).sum();
    // Without a response there is no time to be busy.
    if available_us <= 0.0 {
        return None;
    }
    let share = busy_us / available_us;
    Some(Limits::only_weak(0.9).judge(CheckName::GeneratorCpu, share, CheckFacts::Figure))
}

/// Pauses of the generator, whatever their cause.
pub(super) fn pauses(complete: &[&RoundRecord], elapsed_us: f64) -> Check {
    let pauses = || complete.iter().flat_map(|round| &round.generator.pauses);
    let unlisted: u64 = complete
        .iter()
        .map(|round| round.generator.pauses_dropped)
        .sum();
    // Each thread lists only its first thousand.
    let count = pauses().count() as u64 + unlisted;
    let share = ratio(paused_us(complete), elapsed_us);
    let longest = pauses().map(|pause| micros(pause.length)).max();
    let facts = CheckFacts::Pauses {
        count,
        longest_us: longest.unwrap_or(0),
    };
    // The check is weak from the first pause, because every latency across it contains it.
    Limits::new(0.0, PAUSED_SHARE_MAX).judge(CheckName::GeneratorPauses, share, facts)
}

/// The time that the generator was ready to run while other threads had the core. Each wait takes a few
/// milliseconds. It is shorter than a pause, but every latency includes it.
pub(super) fn starved(complete: &[&RoundRecord]) -> Option<Check> {
    let (mut waited_us, mut threads_us) = (0.0, 0.0);
    for round in complete {
        waited_us += float(micros(round.generator.waited_for_cpu?));
        threads_us += round.counted_us();
    }
    // Pauses have their own check, and a generator that stands still may be waiting for a core.
    let share = ratio((waited_us - paused_us(complete)).max(0.0), threads_us);
    Some(Limits::new(STARVED_WEAK, STARVED_SHARE_MAX).judge(
        CheckName::GeneratorStarved,
        share,
        CheckFacts::Figure,
    ))
}

/// Smallest share of waiting for a core that makes the check weak.
const STARVED_WEAK: f64 = 0.1;

/// The share of the time that the generator stood still.
pub(super) fn paused_share(complete: &[&RoundRecord]) -> f64 {
    let elapsed_us: f64 = complete.iter().map(|round| float(round.elapsed_us)).sum();
    ratio(paused_us(complete), elapsed_us)
}

fn paused_us(complete: &[&RoundRecord]) -> f64 {
    complete.iter().map(|round| round.paused_us()).sum()
}
