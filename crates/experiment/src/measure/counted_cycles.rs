//! Decides which cycles of a round side by side count, and removes the other cycles from a measurement.

use std::collections::BTreeMap;

use load::{Job, Measurement, SlotTimes};
use model::{Load, Shard};
use recording::{Hdr, LatencyMeans, LeftOut, LeftOutAnswers, RequestRecord, TimesRecord};
use schedule::OpenPlan;
use stats::cycles::{Cause, Disturbance, Validity};

use super::host_watch::HostWatch;
use super::neighbor_watch::NeighborWatch;
use super::peers::PeerReports;
use super::running_variant::nanoseconds;

/// Maximum number of requests of a rotation with separate records. In a longer rotation, each is sent only a
/// few times per round.
const REQUESTS_MAX: usize = 64;

/// Kernel counters, read during a load.
pub(super) struct WatchedLoad {
    /// The times at which the host gave cores to other guests.
    pub(super) host: HostWatch,
    neighbors: NeighborWatch,
}

impl WatchedLoad {
    /// Reads the counters during `work`. `pids` contains the processes of each candidate.
    pub(super) fn during<T>(pids: &[Vec<i32>], work: impl FnOnce() -> T) -> (T, WatchedLoad) {
        let ((result, host), neighbors) = NeighborWatch::during(pids, || HostWatch::during(work));
        (result, WatchedLoad { host, neighbors })
    }

    /// Returns the cycles of the round that count, on this number of cores. `None` if slots were not recorded
    /// or the load was interrupted.
    pub(super) fn counted(
        &self,
        jobs: &[Job],
        measurements: &[Measurement],
        reports: &PeerReports,
        cores: usize,
    ) -> Option<Validity> {
        let dues_ns = dues_of(jobs)?;
        let shard = jobs.first()?.shard;
        let mut each = measurements.iter();
        if !each.all(|one| has_every_slot(one, &dues_ns, shard)) {
            return None;
        }
        let mut disturbances = disturbances(measurements, &self.host)?;
        let began = measurements.first()?.began?;
        disturbances.extend(self.neighbors.disturbances_since(began, cores));
        // A disturbance of one generator invalidates the cycle for all.
        reports.add_disturbances(&mut disturbances)?;
        let medians_ns: Vec<u64> = measurements.iter().map(median_ns).collect();
        Some(Validity::of(&medians_ns, &dues_ns, &disturbances))
    }
}

/// The median latency of a measurement. 0 without a response.
fn median_ns(measurement: &Measurement) -> u64 {
    measurement.latency.quantile_ns(0.5).unwrap_or(0)
}

/// Returns the plan that all candidates share, or `None` for a closed loop.
pub(super) fn plan_of(job: &Job) -> Option<OpenPlan> {
    match &job.load {
        Load::Open {
            phases,
            arrival,
            requests_max,
            ..
        } => OpenPlan::new(phases, *arrival, *requests_max).ok(),
        Load::Closed { .. } => None,
    }
}

/// The start of each cycle of the plan, and the end of the last cycle. Includes cycles of other shards.
pub(super) fn dues_of(jobs: &[Job]) -> Option<Vec<u64>> {
    let plan = plan_of(jobs.first()?)?;
    let mut dues_ns: Vec<u64> = plan.slots().map(|slot| nanoseconds(slot.due)).collect();
    // The last cycle has no following due time, so it ends with the plan.
    dues_ns.push(nanoseconds(plan.duration()));
    Some(dues_ns)
}

/// True if the times of every slot of the shard were recorded. If one were missing, the positions of the
/// other slots would not match their cycles.
pub(super) fn has_every_slot(measurement: &Measurement, dues_ns: &[u64], shard: Shard) -> bool {
    let cycles = dues_ns.len() - 1;
    let own = (0..cycles)
        .skip(shard.index() as usize)
        .step_by(shard.of() as usize);
    measurement.slots.len() == own.len()
}

/// The times of disturbances by the host or the generator.
pub(super) fn disturbances(
    measurements: &[Measurement],
    host: &HostWatch,
) -> Option<Vec<Disturbance>> {
    let pauses = measurements.iter().flat_map(|one| &one.generator.pauses);
    let mut disturbances: Vec<Disturbance> = pauses
        .map(|pause| Disturbance {
            from_ns: nanoseconds(pause.at),
            to_ns: nanoseconds(pause.at + pause.length),
            cause: Cause::Generator,
            variant: None,
        })
        .collect();
    disturbances.extend(host.stolen_since(measurements.first()?.began?));
    Some(disturbances)
}

/// The additions of [`leave_out`] to the record of a measurement.
pub(super) struct Counted {
    pub(super) left_out: LeftOut,
    /// One record for each request of a rotation.
    pub(super) requests: Vec<RequestRecord>,
    /// Means of the counted latencies. `None` if there are no counted latencies.
    pub(super) latency_means: Option<LatencyMeans>,
    /// Latency of all responses. `None` if no cycle was left out.
    pub(super) all_latency: Option<Hdr>,
    /// The responses that do not count. `None` if no cycle was left out.
    pub(super) left_out_answers: Option<LeftOutAnswers>,
    /// Time from due to the first byte of the counted responses.
    pub(super) first_byte: TimesRecord,
    /// Time from due to the first event of the counted streams.
    pub(super) first_event: TimesRecord,
}

/// Times of the counted responses, with their exact means.
#[derive(Default)]
struct ExactTimes {
    times: stats::Histogram,
    each: Vec<u64>,
}

impl ExactTimes {
    fn record_ns(&mut self, ns: u64) {
        self.times.record_ns(ns);
        self.each.push(ns);
    }

    fn into_record(self) -> TimesRecord {
        TimesRecord {
            ns_hdr: Hdr::of(&self.times),
            means: means_of(vec![self.each], std::iter::empty()),
        }
    }
}

/// Recalculates a measurement without its disturbed cycles.
pub(super) fn leave_out(
    measurement: &mut Measurement,
    validity: &Validity,
    variant: usize,
    shard: Shard,
) -> Counted {
    let mut latency = stats::Histogram::new();
    let mut by_status = ByStatus::of(measurement);
    let mut service = stats::Histogram::new();
    let (mut first_byte, mut first_event) = (ExactTimes::default(), ExactTimes::default());
    let mut requests = requests_of(measurement);
    // One list per request, or a single list if the requests have no separate records.
    let mut exact = vec![Vec::new(); requests.len().max(1)];
    let cycles = (shard.index() as usize..).step_by(shard.of() as usize);
    let mut lost = LeftOutAnswers::default();
    let answered = cycles.clone().zip(&measurement.slots);
    // A wrong response also has a latency, but its variant has no number anyway.
    for (cycle, slot) in answered.filter(|(_, slot)| slot.passed()) {
        let latency_ns = slot.done_ns - slot.due_ns;
        if let Some(cause) = validity.cause(variant, cycle) {
            let answers = match cause {
                Cause::Host => &mut lost.host,
                Cause::Generator => &mut lost.generator,
                Cause::Neighbor => &mut lost.neighbor,
            };
            answers.add_one(latency_ns);
            continue;
        }
        latency.record_ns(latency_ns);
        by_status.record(slot);
        let place = match requests.is_empty() {
            true => 0,
            false => usize::from(slot.request),
        };
        if let Some((_, own)) = requests.get_mut(place) {
            own.record_ns(latency_ns);
        }
        exact[place].push(latency_ns);
        first_byte.record_ns(slot.first_byte_ns.saturating_sub(slot.due_ns));
        if let Some(at_ns) = slot.first_event_ns {
            first_event.record_ns(at_ns.get().saturating_sub(slot.due_ns));
        }
        service.record_ns(slot.done_ns - slot.sent_ns);
    }
    let all_latency = std::mem::replace(&mut measurement.latency, latency);
    measurement.service = service;
    measurement.latency_by_status = by_status.into_latency();
    let own = cycles.take(measurement.slots.len());
    let left_out = validity.left_out_of(variant, own);
    let planned = requests.iter().map(|(planned, _)| *planned);
    let latency_means = means_of(exact, planned);
    let requests = requests.iter().map(|(planned, latency)| RequestRecord {
        planned: *planned,
        latency_ns_hdr: Hdr::of(latency),
    });
    Counted {
        left_out: LeftOut {
            cycles: measurement.slots.len() as u64,
            host: left_out.host,
            generator: left_out.generator,
            neighbor: left_out.neighbor,
            overrun: None,
        },
        requests: requests.collect(),
        latency_means,
        all_latency: (left_out.total() > 0).then(|| Hdr::of(&all_latency)),
        left_out_answers: (left_out.total() > 0).then_some(lost),
        first_byte: first_byte.into_record(),
        first_event: first_event.into_record(),
    }
}

/// Mean latencies in nanoseconds, of one request or of each request of a rotation. `planned` contains the
/// planned number of each request of a rotation. It is empty for one request. `None` without a latency.
fn means_of(each: Vec<Vec<u64>>, planned: impl Iterator<Item = u64>) -> Option<LatencyMeans> {
    let count: usize = each.iter().map(Vec::len).sum();
    let sum: u128 = each.iter().flatten().map(|it| u128::from(*it)).sum();
    // With one request, its weight has no effect.
    let weights = planned.chain([1]).map(|planned| planned as f64);
    let typical_ns = stats::typical_of_mixture(weights.zip(each))?;
    Some(LatencyMeans {
        mean_ns: sum as f64 / count as f64,
        typical_ns,
    })
}

/// Latency of the counted responses by status. `None` if only one status is right.
pub(super) struct ByStatus(Option<BTreeMap<u16, stats::Histogram>>);

impl ByStatus {
    /// Without any response, for the statuses of this measurement.
    pub(super) fn of(measurement: &Measurement) -> ByStatus {
        let is_kept = !measurement.latency_by_status.is_empty();
        ByStatus(is_kept.then(BTreeMap::new))
    }

    /// Counts a passed slot.
    pub(super) fn record(&mut self, slot: &SlotTimes) {
        let Some((by_status, status)) = self.0.as_mut().zip(slot.status) else {
            return;
        };
        let latency = by_status.entry(status.get());
        let latency = latency.or_insert_with(stats::Histogram::new);
        latency.record_ns(slot.done_ns - slot.due_ns);
    }

    /// The latency by status. Empty if only one status is right.
    pub(super) fn into_latency(self) -> BTreeMap<u16, stats::Histogram> {
        self.0.unwrap_or_default()
    }
}

/// The planned number of each request of a rotation, with an empty histogram. Empty if there is one request,
/// or more than [`REQUESTS_MAX`].
fn requests_of(measurement: &Measurement) -> Vec<(u64, stats::Histogram)> {
    let numbers = measurement.slots.iter().map(|slot| slot.request);
    let count = usize::from(numbers.clone().max().unwrap_or(0)) + 1;
    if !(2..=REQUESTS_MAX).contains(&count) {
        return Vec::new();
    }
    let mut requests = vec![(0, stats::Histogram::new()); count];
    for number in numbers {
        requests[usize::from(number)].0 += 1;
    }
    requests
}
