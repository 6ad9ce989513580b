//! Merges the shards of one load into one recording.
//!
//! Several generators send one plan, each its own slots (`weigh load --shard 2/4`). Counts add up and
//! histograms merge without loss. So the result equals the recording of one generator that sent the whole
//! plan. Checks on a generator apply to that generator alone, so they run per shard before the merge.
//!
//! Clocks are not corrected on purpose. `--start-at` makes all shards begin at one moment, up to the
//! differences between the clocks of their machines. Without it, each shard starts at the time that its own
//! clock shows.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use model::{CodedAnswers, FailureSample, GeneratorCost, Outcomes, Pause, Shard, micros};
use stats::Histogram;

use crate::Hdr;
use crate::{
    EventsRecord, Kind, LeftOut, LeftOutAnswers, NetworkRecord, ReadError, Recording,
    RequestRecord, RoundRecord, StepRecord, TimesRecord, Windows, latency_by_status,
};

/// Maximum number of pauses that a merged recording lists. It only counts further pauses.
const PAUSES_MAX: usize = 1_000;
/// Maximum number of failing pairs of each kind that a merged recording keeps.
const FAILURES_MAX: usize = 3;

/// Reason why recordings are not the shards of one load.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The list of recordings is empty.
    #[error("expected the recordings of all shards of a load, found none")]
    Nothing,
    /// The recording compares variants.
    #[error("expected shards of a single load (`weigh load --shard`), found the lab `{name}`")]
    Lab {
        /// Name of the recording's file.
        name: String,
    },
    /// The recording has no measurement, or more than one.
    #[error("expected one measurement in `{name}`, found {found}")]
    Measurements {
        /// Name of the recording's file.
        name: String,
        /// Number of measurements.
        found: usize,
    },
    /// Two recordings are not of one load.
    #[error("expected shards of one load, found different {what} in `{one}` and `{other}`")]
    Unlike {
        /// Name of the first recording's file.
        one: String,
        /// Name of the recording that differs from it.
        other: String,
        /// Property that differs.
        what: &'static str,
    },
    /// A shard is missing or appears twice.
    #[error("expected each of {of} shards once, but {found}")]
    Incomplete {
        /// Total number of shards.
        of: u32,
        /// The missing or repeated shard, in words.
        found: String,
    },
    /// A time of the recording cannot be parsed.
    #[error("`{name}` has no valid start time: {reason}")]
    Time {
        /// Name of the recording's file.
        name: String,
        /// Error of the time parser.
        reason: String,
    },
    /// A file is not a recording.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A shard with the name of its recording's file.
type Named = (String, Recording);

/// Merges the shards of a load into the recording of the whole load.
///
/// # Errors
/// When the recordings do not contain each shard of one load exactly once.
pub fn merge(mut shards: Vec<Named>) -> Result<Recording, MergeError> {
    shards.sort_by_key(|(_, recording)| recording.load.shard.index());
    check(&shards)?;
    let began = shards.iter().map(|(name, shard)| began(name, shard));
    let began = began.collect::<Result<Vec<_>, _>>()?;
    let first = began.iter().min().copied().ok_or(MergeError::Nothing)?;
    let mut rounds: Vec<RoundRecord> = Vec::new();
    for ((_, recording), began) in shards.iter().zip(&began) {
        let after = Duration::try_from(began.duration_since(first)).unwrap_or_default();
        let mut round = recording.rounds[0].clone();
        round.started_offset_us = micros(after);
        rounds.push(round);
    }
    let ended_at = shards.iter().map(|(_, it)| it.ended_at.clone()).max();
    let (_, whole) = shards.swap_remove(0);
    let mut whole = Recording {
        ended_at: ended_at.unwrap_or_default(),
        started_at: first.to_string(),
        interrupted: rounds.iter().any(|round| round.interrupted),
        ..whole
    };
    whole.load.shard = Shard::WHOLE;
    whole.load.threads = rounds.iter().map(|round| round.generator.threads).sum();
    whole.rounds = vec![sum(&rounds)];
    Ok(whole)
}

/// Checks that the recordings are all shards of one load, each once and in order.
fn check(shards: &[Named]) -> Result<(), MergeError> {
    let ((one, first), others) = shards.split_first().ok_or(MergeError::Nothing)?;
    for (name, recording) in shards {
        if recording.kind != Kind::Load {
            return Err(MergeError::Lab { name: name.clone() });
        }
        if recording.rounds.len() != 1 {
            return Err(MergeError::Measurements {
                name: name.clone(),
                found: recording.rounds.len(),
            });
        }
    }
    for (other, recording) in others {
        if let Some(what) = unlike(first, recording) {
            return Err(MergeError::Unlike {
                one: one.clone(),
                other: other.clone(),
                what,
            });
        }
    }
    let of = first.load.shard.of();
    let mut wanted = 0..of;
    let incomplete = |found: String| Err(MergeError::Incomplete { of, found });
    for (name, recording) in shards {
        match wanted.next() {
            Some(index) if index == recording.load.shard.index() => {}
            Some(index) if index < recording.load.shard.index() => {
                return incomplete(format!("shard {}/{of} is missing", index + 1));
            }
            _ => return incomplete(format!("the shard of `{name}` appears twice")),
        }
    }
    match wanted.next() {
        Some(index) => incomplete(format!("shard {}/{of} is missing", index + 1)),
        None => Ok(()),
    }
}

/// The property that differs between two recordings, or `None` if they can be shards of one load.
fn unlike(one: &Recording, other: &Recording) -> Option<&'static str> {
    let (a, b) = (&one.load, &other.load);
    let likeness = [
        (one.method == other.method, "methods"),
        (a.shard.of() == b.shard.of(), "numbers of shards"),
        (a.model == b.model, "loads"),
        (a.requests == b.requests, "requests"),
        (a.is_scenario == b.is_scenario, "requests"),
        (a.url == b.url, "URLs"),
        (a.protocol == b.protocol, "protocols"),
        (a.keep_alive == b.keep_alive, "uses of connections"),
        (a.timeout_us == b.timeout_us, "timeouts"),
        (one.seed == other.seed, "seeds"),
        (a.start_at == b.start_at, "start times"),
    ];
    let found = likeness.into_iter().find(|(is_alike, _)| !is_alike);
    found.map(|(_, what)| what)
}

/// Time at which a shard was allowed to send its first request.
fn began(name: &str, recording: &Recording) -> Result<Timestamp, MergeError> {
    let text = recording
        .load
        .start_at
        .as_ref()
        .unwrap_or(&recording.started_at);
    text.parse().map_err(|error: jiff::Error| MergeError::Time {
        name: name.to_owned(),
        reason: error.to_string(),
    })
}

/// Merges the parts of one measurement that several generators of a cluster sent. The generators began at the
/// same time, except for the delay that each part records.
///
/// # Panics
/// When there is no part.
#[must_use]
pub fn merge_parts(mut parts: Vec<RoundRecord>) -> RoundRecord {
    for part in &mut parts {
        let late_us = part.generators.iter().map(|it| it.began_late_us);
        let late_us = late_us.fold(0.0, f64::max);
        // A negative delay, or a delay of centuries, is useless and counts as zero.
        let late = Duration::try_from_secs_f64(late_us / 1e6).unwrap_or_default();
        part.started_offset_us = micros(late);
    }
    let mut whole = sum(&parts);
    // All parts have the same slices. A cycle of a plan belongs to one part only, so these counts add up.
    if whole.slices.is_none() {
        whole.left_out = left_out(&parts);
        whole.all_latency_ns_hdr = all_latency(&parts);
        whole.left_out_answers = left_out_answers(&parts);
    }
    for part in &parts[1..] {
        if let (Some(all), Some(own)) = (&mut whole.slices, &part.slices) {
            all.took_us = all.took_us.max(own.took_us);
            all.discarded.add(&own.discarded);
        }
    }
    whole.requests = requests(&parts);
    whole.network = network(&parts);
    whole.generators = parts
        .iter()
        .flat_map(|part| part.generators.clone())
        .collect();
    whole
}

/// Sum over all parts. `None` if one part has no count, because a part must not pass for the whole.
fn left_out(parts: &[RoundRecord]) -> Option<LeftOut> {
    let mut all = LeftOut::default();
    for part in parts {
        let own = part.left_out?;
        all.cycles += own.cycles;
        all.host += own.host;
        all.generator += own.generator;
        all.neighbor += own.neighbor;
        all.overrun = match (all.overrun, own.overrun) {
            (None, None) => None,
            (all, own) => Some(all.unwrap_or(0) + own.unwrap_or(0)),
        };
    }
    Some(all)
}

/// The responses of cycles that were left out. `None` if no part left any out.
fn left_out_answers(parts: &[RoundRecord]) -> Option<LeftOutAnswers> {
    let each = parts.iter().filter_map(|part| part.left_out_answers);
    each.reduce(|mut all, own| {
        all.add(&own);
        all
    })
}

/// The latency of all complete responses. `None` if no part left any out.
fn all_latency(parts: &[RoundRecord]) -> Option<Hdr> {
    let mut each = parts.iter();
    if each.all(|part| part.all_latency_ns_hdr.is_none()) {
        return None;
    }
    let mut all = Histogram::new();
    for part in parts {
        let whole = part.all_latency_ns_hdr.as_ref();
        all.add(&whole.unwrap_or(&part.latency_ns_hdr).histogram());
    }
    Some(Hdr::of(&all))
}

/// Each request of a rotation. Empty if two parts have different numbers of requests.
fn requests(parts: &[RoundRecord]) -> Vec<RequestRecord> {
    let count = parts[0].requests.len();
    if parts.iter().any(|part| part.requests.len() != count) {
        return Vec::new();
    }
    let of_all = |index: usize| {
        let mut latency = Histogram::new();
        let own = || parts.iter().map(|part| &part.requests[index]);
        own().for_each(|one| latency.add(&one.latency_ns_hdr.histogram()));
        RequestRecord {
            planned: own().map(|one| one.planned).sum(),
            latency_ns_hdr: Hdr::of(&latency),
        }
    };
    (0..count).map(of_all).collect()
}

/// The network between all generators and a target. `None` if all generators are on the target's machine.
fn network(parts: &[RoundRecord]) -> Option<NetworkRecord> {
    let each = || parts.iter().filter_map(|part| part.network.as_ref());
    each().next()?;
    let mut round_trip = Histogram::new();
    each().for_each(|one| round_trip.add(&one.round_trip_ns_hdr.histogram()));
    Some(NetworkRecord {
        round_trip_ns_hdr: Hdr::of(&round_trip),
        unanswered: each().map(|one| one.unanswered).sum(),
        segments: each().map(|one| one.segments).sum(),
        retransmitted: each().map(|one| one.retransmitted).sum(),
    })
}

/// Merges all measurements into one.
fn sum(rounds: &[RoundRecord]) -> RoundRecord {
    let mut whole = rounds[0].clone();
    let total = |of: fn(&RoundRecord) -> u64| rounds.iter().map(of).sum::<u64>();
    let merged = |of: fn(&RoundRecord) -> &Hdr| {
        let mut all = Histogram::new();
        rounds
            .iter()
            .for_each(|round| all.add(&of(round).histogram()));
        Hdr::of(&all)
    };
    whole.interrupted = rounds.iter().any(|round| round.interrupted);
    whole.started_offset_us = 0;
    let ends = rounds
        .iter()
        .map(|round| round.started_offset_us + round.elapsed_us);
    whole.elapsed_us = ends.max().unwrap_or(0);
    whole.planned = total(|round| round.planned);
    whole.waited = total(|round| round.waited);
    whole.sent_again = total(|round| round.sent_again);
    whole.packets = model::packets(rounds.iter().map(|round| round.packets));
    whole.handshakes = model::handshakes(rounds.iter().map(|round| round.handshakes));
    whole.outcomes = Outcomes::default();
    rounds
        .iter()
        .for_each(|round| whole.outcomes.add(&round.outcomes));
    for round in &rounds[1..] {
        for (status, count) in &round.statuses {
            *whole.statuses.entry(*status).or_default() += count;
        }
    }
    whole.bytes_in = total(|round| round.bytes_in);
    whole.bytes_in_bodies = rounds.iter().map(|round| round.bytes_in_bodies).sum();
    whole.encodings = encodings(rounds);
    whole.coded = coded(rounds);
    let by_status = latency_by_status(rounds).into_iter();
    whole.latency_by_status_ns_hdr = by_status
        .map(|(status, latency)| (status, Hdr::of(&latency)))
        .collect();
    whole.bytes_out = total(|round| round.bytes_out);
    whole.latency_ns_hdr = merged(|round| &round.latency_ns_hdr);
    // The fastest three quarters of the whole are not the fastest three quarters of the parts.
    whole.latency_means = whole.latency_means.filter(|_| rounds.len() == 1);
    whole.blocks_latency_ns_hdr = blocks(rounds);
    whole.service_ns_hdr = merged(|round| &round.service_ns_hdr);
    whole.lateness_ns_hdr = merged(|round| &round.lateness_ns_hdr);
    whole.connect_ns_hdr = merged(|round| &round.connect_ns_hdr);
    whole.first_byte_ns_hdr = merged(|round| &round.first_byte_ns_hdr);
    whole.first_byte = first_byte(rounds);
    whole.events = events(rounds);
    whole.gaps_ns_hdr = gaps(rounds);
    whole.windows = windows(rounds);
    whole.generator = generator(rounds);
    // The shards may have run on several machines, and this field describes one.
    whole.machine = None;
    whole.steps = steps(rounds);
    for round in &rounds[1..] {
        if let (Some(all), Some(own)) = (&mut whole.iterations, round.iterations) {
            all.add(own);
        }
    }
    whole.failures = failures(rounds);
    whole
}

/// Returns the counts of all shards, or `None` if one shard has not counted.
fn encodings(rounds: &[RoundRecord]) -> Option<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for round in rounds {
        for (coding, responses) in round.encodings.as_ref()? {
            *all.entry(coding.clone()).or_default() += responses;
        }
    }
    Some(all)
}

fn coded(rounds: &[RoundRecord]) -> Option<CodedAnswers> {
    let mut all = CodedAnswers::default();
    let own = rounds.iter().filter_map(|round| round.coded.as_ref());
    own.for_each(|one| all.add(one));
    (all.total() > 0).then_some(all)
}

/// The first bytes of all shards. `None` if one shard has not recorded them.
fn first_byte(rounds: &[RoundRecord]) -> Option<TimesRecord> {
    if let [one] = rounds {
        return one.first_byte.clone();
    }
    let parts: Option<Vec<_>> = rounds
        .iter()
        .map(|round| round.first_byte.as_ref())
        .collect();
    parts.map(TimesRecord::merged)
}

/// The events of all shards. `None` if one shard has not recorded them.
fn events(rounds: &[RoundRecord]) -> Option<EventsRecord> {
    if let [one] = rounds {
        return one.events.clone();
    }
    let parts: Option<Vec<_>> = rounds.iter().map(|round| round.events.as_ref()).collect();
    parts.map(|parts| EventsRecord::merged(&parts))
}

/// The gaps of all shards. `None` if one shard has not recorded them, because a part must not pass for the
/// whole.
fn gaps(rounds: &[RoundRecord]) -> Option<Hdr> {
    let mut all = Histogram::new();
    for round in rounds {
        all.add(&round.gaps_ns_hdr.as_ref()?.histogram());
    }
    Some(Hdr::of(&all))
}

/// The blocks of all shards. All shards began together, so their blocks cover the same parts of the load.
/// Empty if one shard has no blocks.
fn blocks(rounds: &[RoundRecord]) -> Vec<Hdr> {
    let of_all = |block: usize| {
        let mut all = Histogram::new();
        for round in rounds {
            all.add(&round.blocks_latency_ns_hdr.get(block)?.histogram());
        }
        Some(Hdr::of(&all))
    };
    let blocks = 0..rounds[0].blocks_latency_ns_hdr.len();
    blocks
        .map(of_all)
        .collect::<Option<_>>()
        .unwrap_or_default()
}

/// Windows as wide as the widest of all shards. Each shard's windows are shifted to its start.
fn windows(rounds: &[RoundRecord]) -> Windows {
    let widths = rounds.iter().map(|round| round.windows.width_us);
    let width_us = widths.max().unwrap_or(0).max(1);
    let mut all = Windows {
        width_us,
        completed: Vec::new(),
        errors: Vec::new(),
        latency_sum_ns: Vec::new(),
    };
    for round in rounds {
        let own = &round.windows;
        for (index, completed) in own.completed.iter().enumerate() {
            // The middle of a window decides which merged window receives it.
            let middle_us =
                round.started_offset_us + own.width_us * index as u64 + own.width_us / 2;
            let at = usize::try_from(middle_us / width_us).unwrap_or(usize::MAX);
            if at >= all.completed.len() {
                for list in [&mut all.completed, &mut all.errors, &mut all.latency_sum_ns] {
                    list.resize(at + 1, 0);
                }
            }
            all.completed[at] += completed;
            all.errors[at] += own.errors.get(index).copied().unwrap_or(0);
            all.latency_sum_ns[at] += own.latency_sum_ns.get(index).copied().unwrap_or(0);
        }
    }
    all
}

fn generator(rounds: &[RoundRecord]) -> GeneratorCost {
    let costs = || rounds.iter().map(|round| &round.generator);
    let mut pauses: Vec<Pause> = rounds
        .iter()
        .flat_map(|round| {
            let after = Duration::from_micros(round.started_offset_us);
            round.generator.pauses.iter().map(move |pause| Pause {
                at: pause.at + after,
                ..*pause
            })
        })
        .collect();
    pauses.sort_by_key(|pause| pause.at);
    let beyond = pauses.len().saturating_sub(PAUSES_MAX);
    pauses.truncate(PAUSES_MAX);
    GeneratorCost {
        cpu: costs().map(|cost| cost.cpu).sum(),
        threads: costs().map(|cost| cost.threads).sum(),
        waited_for_cpu: costs().map(|cost| cost.waited_for_cpu).sum(),
        counted: costs().map(|cost| cost.counted).sum(),
        realtime: costs().all(|cost| cost.realtime),
        realtime_for: costs().map(|cost| cost.realtime_for).sum(),
        pauses,
        pauses_dropped: costs().map(|cost| cost.pauses_dropped).sum::<u64>() + beyond as u64,
    }
}

fn steps(rounds: &[RoundRecord]) -> Vec<StepRecord> {
    let mut all = rounds[0].steps.clone();
    for round in &rounds[1..] {
        for (step, own) in all.iter_mut().zip(&round.steps) {
            let plus = |one: &Hdr, other: &Hdr| {
                let mut both = one.histogram();
                both.add(&other.histogram());
                Hdr::of(&both)
            };
            step.latency_ns_hdr = plus(&step.latency_ns_hdr, &own.latency_ns_hdr);
            step.service_ns_hdr = plus(&step.service_ns_hdr, &own.service_ns_hdr);
            step.outcomes.add(&own.outcomes);
            step.skipped += own.skipped;
        }
    }
    all
}

/// The first failures of each kind.
fn failures(rounds: &[RoundRecord]) -> Vec<FailureSample> {
    let mut all: Vec<FailureSample> = rounds
        .iter()
        .flat_map(|round| {
            let after = Duration::from_micros(round.started_offset_us);
            round.failures.iter().map(move |failure| FailureSample {
                at: failure.at + after,
                ..failure.clone()
            })
        })
        .collect();
    all.sort_by_key(|failure| failure.at);
    let mut kept: Vec<FailureSample> = Vec::new();
    for failure in all {
        let alike = kept.iter().filter(|it| it.kind == failure.kind);
        if alike.count() < FAILURES_MAX {
            kept.push(failure);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
