//! Whether the generator itself could do its work.

use model::micros;

use super::{Check, CheckName, Limits, ratio};
use crate::digits;
use crate::float::float;
use crate::recording::RoundRecord;

/// Beyond this share of the time, a generator that did not run although work was due spoils what it
/// measured.
pub const PAUSED_SHARE_MAX: f64 = 0.02;

/// Beyond this share of its time, a generator that was ready to run while others had its core spoils
/// what it measured: it sent and received at less than half of its speed.
pub(crate) const STARVED_SHARE_MAX: f64 = 0.5;

/// Whether the generator was kept from running for so much of a measurement that it is better made
/// again.
pub fn is_disturbed(round: &RoundRecord) -> bool {
    // Both are the machine's doing and not the variant's, so measuring again favors none.
    let is_starved = |share: f64| share > STARVED_SHARE_MAX;
    round.paused_share() > PAUSED_SHARE_MAX || round.starved_share().is_some_and(is_starved)
}

/// The share of the time in which the generator was busy. A generator that is always busy may limit the rate.
pub(super) fn cpu(complete: &[&RoundRecord]) -> Option<Check> {
    let busy_us: f64 = complete
        .iter()
        .map(|round| float(micros(round.generator.cpu)))
        .sum();
    let time_us =
        |round: &&RoundRecord| float(round.loaded_us()) * f64::from(round.generator.threads);
    let available_us: f64 = complete.iter().map(time_us).sum();
    // Without an answer there is no time that it could have been busy in.
    if available_us <= 0.0 {
        return None;
    }
    let share = busy_us / available_us;
    let mut text = format!(
        "the generator was busy {} of the time",
        digits::percent(share)
    );
    if share > 0.9 {
        text += ". The target may be faster than the generator can measure";
    }
    Some(Limits::only_weak(0.9).judge(CheckName::GeneratorCpu, share, text))
}

/// Stretches in which it stood still, whatever the cause.
pub(super) fn pauses(complete: &[&RoundRecord], elapsed_us: f64) -> Check {
    let pauses = || complete.iter().flat_map(|round| &round.generator.pauses);
    let unlisted: u64 = complete
        .iter()
        .map(|round| round.generator.pauses_dropped)
        .sum();
    // Each thread lists only its first thousand.
    let count = pauses().count() as u64 + unlisted;
    let share = ratio(paused_us(complete), elapsed_us);
    let text = if count == 0 {
        "the generator ran without a pause".to_owned()
    } else {
        let longest = pauses()
            .map(|pause| micros(pause.length))
            .max()
            .unwrap_or(0);
        format!(
            "the generator did not run although work was due: {}, {} of the time, longest {}",
            crate::describe::plural(count, "pause"),
            digits::percent(share),
            digits::duration_ns(float(longest) * 1e3),
        )
    };
    // Weak from the first pause on, for latencies across it contain it.
    Limits::new(0.0, PAUSED_SHARE_MAX).judge(CheckName::GeneratorPauses, share, text)
}

/// The time in which the generator was ready to run while other threads had the core. Each wait takes a few
/// milliseconds. It is no pause yet, but it is in every latency.
pub(super) fn starved(complete: &[&RoundRecord]) -> Option<Check> {
    let (mut waited_us, mut threads_us) = (0.0, 0.0);
    for round in complete {
        waited_us += float(micros(round.generator.waited_for_cpu?));
        threads_us += float(round.loaded_us()) * f64::from(round.generator.threads);
    }
    // What pauses account for is theirs: a generator that stands still may well be waiting.
    let share = ratio((waited_us - paused_us(complete)).max(0.0), threads_us);
    let mut text = format!(
        "the generator waited {} of the time for a free core",
        digits::percent(share)
    );
    if share > STARVED_WEAK {
        text += ". End other programs, or give it its own core with `pin`";
    }
    Some(Limits::new(STARVED_WEAK, STARVED_SHARE_MAX).judge(
        CheckName::GeneratorStarved,
        share,
        text,
    ))
}

/// Beyond this share, waiting for a core is worth a word.
const STARVED_WEAK: f64 = 0.1;

/// The share of the time in which the generator stood still.
pub(super) fn paused_share(complete: &[&RoundRecord]) -> f64 {
    let elapsed_us: f64 = complete.iter().map(|round| float(round.elapsed_us)).sum();
    ratio(paused_us(complete), elapsed_us)
}

fn paused_us(complete: &[&RoundRecord]) -> f64 {
    let paused_us = |round: &&RoundRecord| {
        let pauses = round.generator.pauses.iter();
        let sum: u64 = pauses.map(|pause| micros(pause.length)).sum();
        // While one of several stood still, the others may have gone on.
        float(sum) / float(round.generators.len().max(1) as u64)
    };
    complete.iter().map(paused_us).sum()
}
