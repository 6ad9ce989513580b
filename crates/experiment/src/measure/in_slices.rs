//! A round of a closed loop side by side: all systems are up, and the load moves from candidate to candidate
//! in slices of time.
//!
//! The counted parts of a candidate's slices are joined, as if its load had run without a break. One window
//! is one slice. All statements about a closed loop therefore apply here too, and no figure contains the idle
//! gaps. The usage of systems is read around the whole load and divided by *all* requests, including requests
//! that do not count.
//!
//! The rate is calculated from the times of requests instead of their number. A request with one third of its
//! time in a counted part counts as one third ([`stats::slices::completed`]). A count would move in steps of
//! a whole wave of responses, because slow servers respond on all connections together.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use load::{Job, Measurement, Slice, Window};
use model::{Load, Pause, Stop, micros};
use recording::{LeftOut, SlicesRecord};
use schedule::{PlannedSlice, SliceLengths, SlicePlan};
use stats::Histogram;
use stats::cycles::Cause;
use stats::slices::Lost;

use super::Experiment;
use super::counted_cycles::ByStatus;
use super::host_watch::HostWatch;
use super::round::Round;
use super::running_variant::{RunningVariant, nanoseconds};
use crate::invalid::Invalid;

/// Maximum number of requests with recorded times per candidate and round, 32 bytes each. In a round with
/// more requests all slices count.
const SLOTS_MAX: usize = 1 << 21;

/// The shortest time without load after a slice.
const GAP_MIN: Duration = Duration::from_millis(10);

impl Experiment<'_> {
    /// Warms the candidates up, each alone under load, as in the measurement. Returns the loads and their
    /// plan of slices.
    pub(super) fn ready_in_slices(
        &self,
        round: &Round,
        up: &[RunningVariant],
    ) -> Result<(Vec<Job>, SlicePlan), Invalid> {
        let lab = self.session.lab;
        let mut jobs: Vec<Job> = up
            .iter()
            .map(|one| self.run_of(round, one).job(&one.running))
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
                // One slice for each candidate.
                slice: lab.warmup * 2,
                ..lengths
            };
            let plan = SlicePlan::new(up.len(), warmup, round.arrival_seed);
            let mut warmups = in_slices(&jobs, &plan);
            // The whole slice counts, because a slow server may respond only to the first requests within it.
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

    /// The longest lengths that any generator needs, so that all generators have one plan.
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

    /// Prints a note if slow responses make rounds longer than the lab requires.
    fn tell_longer_slices(&self, plan: &SlicePlan, lengths: SliceLengths) {
        let counted = plan.counted() * count(plan.cycles());
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        // Rounding loses one nanosecond per cycle.
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

    /// The counted slices: all slices that no generator leaves out.
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

/// One generator's report of the cycles of its slices. A cycle that it leaves out has `true` if the host was
/// the reason, and `false` if the generator was. `None` if it has not recorded the times of its requests.
type ToldOfSlices = Option<Vec<Option<bool>>>;

/// Merges the reports of all generators. If any generator leaves a cycle out, no generator counts it.
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
    // All generators have the same plan.
    Some((0..all.first()?.len()).map(of_cycle).collect())
}

/// Adds the slices to the loads.
fn in_slices(jobs: &[Job], plan: &SlicePlan) -> Vec<Job> {
    let sliced = |(variant, job): (usize, &Job)| {
        let mut job = job.clone();
        if let Load::Closed { stop, .. } = &mut job.load {
            // The last slice ends the load.
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

/// The pause after a slice: the p99 latency of the slowest candidate during warm-up. Few requests then reach
/// into the next slice. It is never longer than a slice.
fn gap_after(warmups: &[Measurement], slice: Duration) -> Duration {
    let latencies = warmups.iter().map(|seen| seen.latency.quantile_ns(0.99));
    // Without a response, 0 becomes the least gap below.
    let slowest = latencies.flatten().max().unwrap_or(0);
    Duration::from_nanos(slowest).clamp(GAP_MIN, slice.max(GAP_MIN))
}

/// The mean latency of the slowest candidate. 0 without a response.
fn longest_latency(warmups: &[Measurement]) -> Duration {
    let means = warmups.iter().filter_map(|seen| seen.latency.mean_ns());
    Duration::from_secs_f64(means.fold(0.0, f64::max) / 1e9)
}

/// The counted slices of a round, and their effect on a measurement.
pub(super) struct InSlices<'a> {
    plan: &'a SlicePlan,
    /// For each cycle, the cause for leaving it out, if any. `None` if the times of requests were not
    /// recorded.
    causes: Option<Vec<Option<Cause>>>,
    took: Duration,
}

impl InSlices<'_> {
    /// Decides by the time that the host and the generator lost in each slice.
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

    /// The number of cycles that do not count, by cause.
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

    /// The slices as the recording contains them, from a folded measurement.
    pub(super) fn record(&self, folded: &Measurement) -> SlicesRecord {
        SlicesRecord {
            length_us: micros(self.plan.slice()),
            uncounted_us: micros(self.plan.uncounted()),
            gap_us: micros(self.plan.gap()),
            took_us: micros(self.took),
            discarded: folded.discarded,
        }
    }

    /// Joins the counted parts of a variant's slices. An interrupted load stays unchanged, because it is
    /// never compared.
    pub(super) fn fold(&self, measurement: &mut Measurement, variant: usize) {
        if measurement.interrupted {
            return;
        }
        let slices = self.plan.slices(variant);
        // A variant with one wrong response has no number. Its measurement stays whole, as evidence.
        let is_right = measurement.outcomes.passed == measurement.outcomes.completed();
        let Some(causes) = self.causes.as_ref().filter(|_| is_right) else {
            // Without the times of requests, all requests after the uncounted beginnings count.
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

/// The number of requests sent in each 10 ms of a slice, over all slices of all variants. It shows how fast a
/// slice reaches full speed.
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

/// The share of each slice of a variant lost to the host and to pauses of the generator.
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

/// The part of a pause between two times.
fn common(from: Duration, to: Duration, pause: &Pause) -> Duration {
    let (begin, end) = (pause.at.max(from), (pause.at + pause.length).min(to));
    end.saturating_sub(begin)
}

/// A number of slices, in the type that multiplies a duration.
fn count(slices: usize) -> u32 {
    u32::try_from(slices).expect("fewer slices than 32 bits count")
}

/// The counted requests, each assigned to the slice of its send time.
struct Folded {
    latency: Histogram,
    by_status: ByStatus,
    /// Counted responses by status.
    statuses: BTreeMap<u16, u64>,
    service: Histogram,
    first_byte_from_due: Histogram,
    first_event: Histogram,
    windows: Vec<Window>,
    /// Completed requests. A request partly within counted time counts with that part.
    completed: f64,
}

impl Folded {
    fn of(measurement: &Measurement, counted: &[PlannedSlice]) -> Folded {
        let mut folded = Folded {
            latency: Histogram::new(),
            by_status: ByStatus::of(measurement),
            statuses: BTreeMap::new(),
            service: Histogram::new(),
            first_byte_from_due: Histogram::new(),
            first_event: Histogram::new(),
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
            let since_due_ns = |at_ns: u64| at_ns.saturating_sub(slot.due_ns);
            folded
                .first_byte_from_due
                .record_ns(since_due_ns(slot.first_byte_ns));
            if let Some(at_ns) = slot.first_event_ns {
                folded.first_event.record_ns(since_due_ns(at_ns.get()));
            }
        }
        folded
    }

    fn put_into(self, measurement: &mut Measurement, counted: &[PlannedSlice]) {
        let length: Duration = counted.iter().map(|it| it.count_to - it.count_from).sum();
        let passed: u64 = self.windows.iter().map(|window| window.completed).sum();
        let discarded_before = measurement.discarded.passed;
        // A failed request always counts. No disturbance of the machine excuses it.
        let all = measurement.outcomes.passed + discarded_before;
        measurement.outcomes.passed = passed;
        measurement.discarded.passed = all - passed;
        measurement.sent = measurement.sent + discarded_before - measurement.discarded.passed;
        measurement.planned = measurement.outcomes.total();
        let counted_answers = measurement.outcomes.completed();
        // The bytes are only known for all responses together. The mean body size stays unchanged.
        let before = counted_answers - passed + all - discarded_before;
        let bodies = u128::from(measurement.bytes_in_bodies) * u128::from(counted_answers)
            / u128::from(before.max(1));
        measurement.bytes_in_bodies = u64::try_from(bodies).unwrap_or(u64::MAX);
        // All responses are right, because a measurement with a wrong response is not folded.
        measurement.statuses.by_code = self.statuses;
        measurement.latency_by_status = self.by_status.into_latency();
        measurement.latency = self.latency;
        measurement.service = self.service;
        measurement.first_byte_from_due = self.first_byte_from_due;
        if let Some(events) = &mut measurement.events {
            events.first = self.first_event;
        }
        // The time that these requests take at the measured rate.
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
