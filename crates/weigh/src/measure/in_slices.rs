//! A round of a closed loop side by side: all systems are up, and the load moves from candidate to
//! candidate in slices of time.
//!
//! What counts of a candidate's slices is put end to end, as if it had had the load without a break,
//! and one window of it is one slice. So whatever is said of a closed loop holds for it too, and the
//! idle gaps are in no figure. The usage of systems is read around the whole load and divided by *all*
//! requests, also those that do not count.
//!
//! The rate comes from the times of requests and not from a count of them. A request that lies in a
//! counted part by a third counts as a third ([`stats::slices::completed`]). A count would move in steps
//! of a whole wave of answers, as slow servers answer all connections together.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use load::{Job, Measurement, Slice, Window};
use model::{Load, Pause, Stop};
use report::recording::{LeftOut, SlicesRecord};
use schedule::{PlannedSlice, SliceLengths, SlicePlan};
use stats::Histogram;
use stats::cycles::Cause;
use stats::slices::Lost;

use super::Experiment;
use super::counted_cycles::ByStatus;
use super::host_watch::HostWatch;
use super::round::Round;
use super::up::{Up, nanoseconds};
use crate::invalid::Invalid;
use model::micros;

/// Requests of a candidate whose times are kept for a round, 32 bytes each. A round with more is
/// recorded without leaving any slice out.
const SLOTS_MAX: usize = 1 << 21;

/// The shortest time without load after a slice.
const GAP_MIN: Duration = Duration::from_millis(10);

impl Experiment<'_> {
    /// Warms the candidates up, each as it will be measured: alone under load. Gives the loads, and who
    /// has it when.
    pub(super) fn ready_in_slices(
        &self,
        round: &Round,
        up: &[Up],
    ) -> Result<(Vec<Job>, SlicePlan), Invalid> {
        let lab = self.session.lab;
        let mut jobs: Vec<Job> = up
            .iter()
            .map(|one| self.turn_of(round, one).job(&one.running))
            .collect();
        // Labs that end by a count are measured in turn.
        let total = self
            .session
            .load
            .duration()
            .expect("side by side ends by time");
        let mut lengths = SliceLengths {
            total,
            slice: lab.slice,
            gap: GAP_MIN,
            latency: Duration::ZERO,
        };
        if !lab.warmup.is_zero() {
            let warmup = SliceLengths {
                total: lab.warmup,
                // One slice for each.
                slice: lab.warmup * 2,
                ..lengths
            };
            let plan = SlicePlan::new(up.len(), warmup, round.arrival_seed);
            let mut warmups = in_slices(&jobs, &plan);
            // All of it counts: a slow server may answer only the first requests within it.
            let slices = warmups.iter_mut().flat_map(|job| &mut job.slices);
            slices.for_each(|slice| slice.count_from = slice.from);
            let label = format!("round {}, warming up", round.number + 1);
            let (seen, ()) = self.session.discard_together(&warmups, &label, || ())?;
            lengths = self.longest(SliceLengths {
                gap: gap_after(&seen, lab.slice),
                latency: longest_latency(&seen),
                ..lengths
            })?;
        }
        let plan = SlicePlan::new(up.len(), lengths, round.arrival_seed);
        if round.number == 0 {
            self.tell_longer_slices(&plan, lengths);
        }
        jobs = in_slices(&jobs, &plan);
        for job in &mut jobs {
            job.keep_slots = Some(SLOTS_MAX);
        }
        Ok((jobs, plan))
    }

    /// The lengths of all generators, so that all have one plan: the longest that one of them needs.
    fn longest(&self, own: SliceLengths) -> Result<SliceLengths, Invalid> {
        let Some(peers) = &self.session.peers else {
            return Ok(own);
        };
        let all = peers.exchange(&(own.gap, own.latency))?;
        let (gaps, latencies): (Vec<Duration>, Vec<Duration>) = all.into_iter().unzip();
        Ok(SliceLengths {
            gap: gaps.into_iter().max().unwrap_or(own.gap),
            latency: latencies.into_iter().max().unwrap_or(own.latency),
            ..own
        })
    }

    /// Tells that rounds take longer than asked for, because the answers need it.
    fn tell_longer_slices(&self, plan: &SlicePlan, lengths: SliceLengths) {
        let counted = plan.counted() * count(plan.cycles());
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        // Rounding loses a nanosecond a cycle.
        if counted > lengths.total + Duration::from_micros(1) {
            let line = format!(
                "each variant receives load for {:.0} ms of a round instead of {:.0} ms, because a \
                 request takes {:.1} ms",
                milliseconds(counted),
                milliseconds(lengths.total),
                milliseconds(lengths.latency)
            );
            self.session.progress.note(&line);
        }
    }

    /// Which slices count: those that no generator leaves out.
    pub(super) fn counted_slices<'a>(
        &self,
        plan: Option<&'a SlicePlan>,
        measurements: &[Measurement],
        host: &HostWatch,
    ) -> Result<Option<InSlices<'a>>, Invalid> {
        let Some(plan) = plan else {
            return Ok(None);
        };
        let mut own = InSlices::of(plan, measurements, host);
        if let Some(peers) = &self.session.peers {
            let all = peers.exchange(&own.told())?;
            own.causes = united(all);
        }
        Ok(Some(own))
    }
}

/// What a generator tells of the cycles of its slices: for each that it leaves out whether the host was
/// the reason, or else the generator itself. None where it has not kept the times of its requests.
type ToldOfSlices = Option<Vec<Option<bool>>>;

/// A cycle that one generator leaves out counts for none.
fn united(all: Vec<ToldOfSlices>) -> Option<Vec<Option<Cause>>> {
    let all: Vec<Vec<Option<bool>>> = all.into_iter().collect::<Option<_>>()?;
    let cause = |is_host: bool| match is_host {
        true => Cause::Host,
        false => Cause::Generator,
    };
    let of_cycle = |cycle: usize| {
        let mut told = all.iter().filter_map(|one| one.get(cycle).copied()?);
        told.next().map(cause)
    };
    // All have the same plan.
    Some((0..all.first()?.len()).map(of_cycle).collect())
}

/// The loads with their slices.
fn in_slices(jobs: &[Job], plan: &SlicePlan) -> Vec<Job> {
    let sliced = |(variant, job): (usize, &Job)| {
        let mut job = job.clone();
        if let Load::Closed { stop, .. } = &mut job.load {
            // The last slice ends it.
            *stop = Stop {
                requests: None,
                duration: Some(plan.length()),
            };
        }
        let slices = plan.slices(variant).into_iter();
        job.slices = slices
            .map(|slice| Slice {
                from: slice.from,
                to: slice.to,
                count_from: slice.count_from,
            })
            .collect();
        job
    };
    jobs.iter().enumerate().map(sliced).collect()
}

/// How long nothing is sent after a slice: as long as nearly all answers took in the warm-up of the
/// slowest candidate, so that few requests reach into the slice of the next one; but not longer than a
/// slice.
fn gap_after(warmups: &[Measurement], slice: Duration) -> Duration {
    let latencies = warmups.iter().map(|seen| seen.latency.quantile_ns(0.99));
    // Without any answer, 0 becomes the least gap below.
    let slowest = latencies.flatten().max().unwrap_or(0);
    Duration::from_nanos(slowest).clamp(GAP_MIN, slice.max(GAP_MIN))
}

/// The mean latency of the slowest candidate; 0 without any answer.
fn longest_latency(warmups: &[Measurement]) -> Duration {
    let means = warmups.iter().filter_map(|seen| seen.latency.mean_ns());
    Duration::from_secs_f64(means.fold(0.0, f64::max) / 1e9)
}

/// Which slices of a round count, and what becomes of a measurement.
pub(super) struct InSlices<'a> {
    plan: &'a SlicePlan,
    /// For each cycle why it is left out, if it is; none where the times of requests were not kept.
    causes: Option<Vec<Option<Cause>>>,
    took: Duration,
}

impl InSlices<'_> {
    /// Decides by what the host and the generator have lost in each slice.
    fn of<'a>(plan: &'a SlicePlan, measurements: &[Measurement], host: &HostWatch) -> InSlices<'a> {
        let is_kept = |seen: &Measurement| {
            seen.slots.len() as u64 == seen.outcomes.total() + seen.discarded.total()
        };
        let is_whole = measurements
            .iter()
            .all(|seen| is_kept(seen) && !seen.interrupted);
        if is_whole && tracing::enabled!(tracing::Level::DEBUG) {
            let counts = sent_by_age(plan, measurements);
            tracing::debug!(?counts, "requests sent in each 10 ms of a slice");
        }
        let began = measurements.iter().find_map(|seen| seen.began);
        let causes = began.filter(|_| is_whole).map(|began| {
            let lost: Vec<Vec<Lost>> = measurements
                .iter()
                .enumerate()
                .map(|(variant, seen)| lost(&plan.slices(variant), seen, host, began))
                .collect();
            let cycle = |cycle: usize| lost.iter().map(|own| own[cycle]).collect();
            let cycles: Vec<Vec<Lost>> = (0..plan.cycles()).map(cycle).collect();
            stats::slices::left_out(&cycles)
        });
        InSlices {
            plan,
            causes,
            took: plan.length(),
        }
    }

    fn told(&self) -> ToldOfSlices {
        let causes = self.causes.as_ref()?.iter();
        Some(
            causes
                .map(|cause| cause.map(|it| it == Cause::Host))
                .collect(),
        )
    }

    /// How many cycles were left out, and why.
    pub(super) fn left_out(&self) -> Option<LeftOut> {
        let causes = self.causes.as_ref()?;
        let count = |cause: Cause| causes.iter().filter(|one| **one == Some(cause)).count() as u64;
        Some(LeftOut {
            cycles: causes.len() as u64,
            host: count(Cause::Host),
            generator: count(Cause::Generator),
            ..LeftOut::default()
        })
    }

    /// What the recording says of the slices, with a measurement that has been folded.
    pub(super) fn record(&self, folded: &Measurement) -> SlicesRecord {
        SlicesRecord {
            length_us: micros(self.plan.slice()),
            uncounted_us: micros(self.plan.uncounted()),
            gap_us: micros(self.plan.gap()),
            took_us: micros(self.took),
            discarded: folded.discarded,
        }
    }

    /// Puts what counts of a variant's slices end to end. An interrupted load stays as it is: it is
    /// never compared.
    pub(super) fn fold(&self, measurement: &mut Measurement, variant: usize) {
        if measurement.interrupted {
            return;
        }
        let slices = self.plan.slices(variant);
        // A variant with one wrong answer has no number; what it has is kept whole, as evidence.
        let is_right = measurement.outcomes.passed == measurement.outcomes.completed();
        let Some(causes) = self.causes.as_ref().filter(|_| is_right) else {
            // Without the times of requests all that was sent after the beginnings counts.
            let lengths = slices.iter().map(|slice| slice.to - slice.count_from);
            measurement.elapsed = lengths.sum();
            measurement.windows = Vec::new();
            return;
        };
        let counted: Vec<PlannedSlice> = slices
            .into_iter()
            .zip(causes)
            .filter(|(_, cause)| cause.is_none())
            .map(|(slice, _)| slice)
            .collect();
        Folded::of(measurement, &counted).put_into(measurement, &counted);
    }
}

/// How many requests were sent in each 10 ms of a slice, over all slices of all variants: what shows
/// how long a slice takes to come up to speed.
fn sent_by_age(plan: &SlicePlan, measurements: &[Measurement]) -> Vec<u64> {
    let age_ns = nanoseconds(AGE);
    let ages = nanoseconds(plan.slice()) / age_ns;
    let mut counts = vec![0; usize::try_from(ages).expect("a slice has few ages")];
    for (variant, seen) in measurements.iter().enumerate() {
        let slices = plan.slices(variant).into_iter();
        let begins_ns: Vec<u64> = slices.map(|slice| nanoseconds(slice.from)).collect();
        for slot in &seen.slots {
            let begun = begins_ns.partition_point(|begin_ns| *begin_ns <= slot.due_ns);
            let Some(begin_ns) = begun.checked_sub(1).map(|index| begins_ns[index]) else {
                continue;
            };
            let age = usize::try_from((slot.due_ns - begin_ns) / age_ns);
            if let Some(count) = age.ok().and_then(|age| counts.get_mut(age)) {
                *count += 1;
            }
        }
    }
    counts
}

/// The resolution of the ages of a slice.
const AGE: Duration = Duration::from_millis(10);

/// What each slice of a variant has lost to the host and to pauses of the generator.
fn lost(
    slices: &[PlannedSlice],
    seen: &Measurement,
    host: &HostWatch,
    began: Instant,
) -> Vec<Lost> {
    let of = |slice: &PlannedSlice| {
        let length_s = (slice.to - slice.from).as_secs_f64();
        let stolen = host.stolen_in(began + slice.from, began + slice.to);
        let pauses = seen.generator.pauses.iter();
        let paused: Duration = pauses
            .map(|pause| common(slice.from, slice.to, pause))
            .sum();
        Lost {
            host: stolen.as_secs_f64() / length_s,
            generator: paused.as_secs_f64() / length_s,
        }
    };
    slices.iter().map(of).collect()
}

/// How much of a pause lies between two times.
fn common(from: Duration, to: Duration, pause: &Pause) -> Duration {
    let (begin, end) = (pause.at.max(from), (pause.at + pause.length).min(to));
    end.saturating_sub(begin)
}

/// A count of slices, as durations are multiplied.
fn count(slices: usize) -> u32 {
    u32::try_from(slices).expect("fewer slices than 32 bits count")
}

/// The requests that count, each as part of the slice in which it was sent.
struct Folded {
    latency: Histogram,
    by_status: ByStatus,
    /// Counted answers of each status.
    statuses: BTreeMap<u16, u64>,
    service: Histogram,
    windows: Vec<Window>,
    /// Completed requests, with the parts of those that the counted time cuts.
    completed: f64,
}

impl Folded {
    fn of(measurement: &Measurement, counted: &[PlannedSlice]) -> Folded {
        let mut folded = Folded {
            latency: Histogram::new(),
            by_status: ByStatus::of(measurement),
            statuses: BTreeMap::new(),
            service: Histogram::new(),
            windows: vec![Window::default(); counted.len()],
            completed: 0.0,
        };
        let part =
            |slice: &PlannedSlice| (nanoseconds(slice.count_from), nanoseconds(slice.count_to));
        let parts: Vec<(u64, u64)> = counted.iter().map(part).collect();
        let passed = measurement.slots.iter().filter(|slot| slot.passed());
        let spans = passed.map(|slot| (slot.due_ns, slot.done_ns));
        folded.completed = stats::slices::completed(spans, &parts);
        for slot in &measurement.slots {
            let begun = parts.partition_point(|(from_ns, _)| *from_ns <= slot.due_ns);
            let Some(index) = begun
                .checked_sub(1)
                .filter(|index| slot.due_ns < parts[*index].1)
            else {
                continue;
            };
            let window = &mut folded.windows[index];
            if !slot.passed() {
                window.errors += 1;
                continue;
            }
            let latency_ns = slot.done_ns - slot.due_ns;
            window.completed += 1;
            window.latency_sum_ns += latency_ns;
            folded.latency.record_ns(latency_ns);
            folded.by_status.record(slot);
            if let Some(status) = slot.status {
                *folded.statuses.entry(status.get()).or_default() += 1;
            }
            folded.service.record_ns(slot.done_ns - slot.sent_ns);
        }
        folded
    }

    fn put_into(self, measurement: &mut Measurement, counted: &[PlannedSlice]) {
        let length: Duration = counted.iter().map(|it| it.count_to - it.count_from).sum();
        let passed: u64 = self.windows.iter().map(|window| window.completed).sum();
        let discarded_before = measurement.discarded.passed;
        // A request that failed stays where it is: no machine excuses it.
        let all = measurement.outcomes.passed + discarded_before;
        measurement.outcomes.passed = passed;
        measurement.discarded.passed = all - passed;
        measurement.sent = measurement.sent + discarded_before - measurement.discarded.passed;
        measurement.planned = measurement.outcomes.total();
        let counted_answers = measurement.outcomes.completed();
        // Bodies were counted with all answers; what they have on average stays.
        let before = counted_answers - passed + all - discarded_before;
        let bodies = u128::from(measurement.bytes_in_bodies) * u128::from(counted_answers)
            / u128::from(before.max(1));
        measurement.bytes_in_bodies = u64::try_from(bodies).unwrap_or(u64::MAX);
        // All answers are right: a measurement with a wrong one is not folded.
        measurement.statuses.by_code = self.statuses;
        measurement.latency_by_status = self.by_status.into_latency();
        measurement.latency = self.latency;
        measurement.service = self.service;
        // The time that these requests take at the rate that was found.
        let elapsed = match self.completed {
            completed if completed > 0.0 && passed > 0 => length.mul_f64(passed as f64 / completed),
            _ => length,
        };
        let width = elapsed / count(counted.len().max(1));
        measurement.windows = self.windows;
        measurement.window_width = width;
        measurement.elapsed = elapsed;
        measurement.sending = measurement.elapsed;
        let pauses = std::mem::take(&mut measurement.generator.pauses);
        measurement.generator.pauses = (0..)
            .zip(counted)
            .flat_map(|(index, slice)| {
                let inside = pauses.iter().map(move |pause| Pause {
                    at: width * index + pause.at.saturating_sub(slice.count_from),
                    length: common(slice.count_from, slice.count_to, pause),
                });
                inside.filter(|pause| !pause.length.is_zero())
            })
            .collect();
    }
}

#[cfg(test)]
mod tests;
