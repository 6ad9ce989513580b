//! A round side by side: the systems of all candidates are up at once.
//!
//! In an open loop, each candidate receives one request at every due time of the plan. The load of a closed
//! loop moves from one candidate to the next ([`super::in_slices`]). Searches for the highest rate advance in
//! turns ([`super::capacity`]).
//!
//! A disturbance by the machine affects all candidates of a round equally, so their differences hardly
//! contain it. The price is that candidates share caches and cores. Absolute latencies are therefore higher
//! than alone.
//!
//! Candidates that would crowd each other are up in groups, one after the other, each with the baselines of
//! its variants. The first round decides the groups. It starts and warms up all candidates before it
//! measures.

use std::time::Instant;

use load::{Job, Live, LoadError, Measurement, Target};
use model::{InvalidKind, Order, Rate};
use recording::{RoundRecord, SystemUsage};
use schedule::{SlicePlan, Spread};
use stats::cycles::Validity;

use super::Experiment;
use super::cores_used::{Used, first_rate, planned};
use super::counted_cycles::{WatchedLoad, leave_out, plan_of};
use super::design::Design;
use super::group_round::GroupContext;
use super::groups::Group;
use super::in_slices::InSlices;
use super::in_turn::{ATTEMPTS, end_of, in_round};
use super::network_watch::{NetworkWatch, segments_to_each};
use super::peers::PeerReports;
use super::placement::Cores;
use super::reading::{Measured, Reading, UsageSample, systems_used};
use super::round::{Position, Round};
use super::running::root_cause;
use super::running_variant::{RoundFailure, RunningVariant};
use super::session::load_failed;
use super::shard::Attempt;
use super::variant_run::VariantRun;
use crate::invalid::Invalid;
use crate::prove::let_earlier_arrive;
use crate::published::Receiver;
use crate::record;
use crate::systems::UsageReading;

/// Maximum number of slots with recorded times per candidate and round, 32 bytes each. In a longer round all
/// slots count.
const SLOTS_MAX: u64 = 1 << 20;

/// The loads of a round, one for each running candidate.
pub(super) struct Loads {
    pub(super) jobs: Vec<Job>,
    /// The time slices of the candidates in a closed loop. `None` in an open loop.
    slices: Option<SlicePlan>,
}

/// The results of one load of all candidates, in their order.
pub(super) struct GroupResult {
    measured: Vec<Measured>,
    pub(super) records: Vec<RoundRecord>,
}

/// All facts about the load of all candidates at its end.
struct RunEnd<'e> {
    runs: &'e [VariantRun<'e>],
    up: &'e [RunningVariant],
    jobs: &'e [Job],
    /// The cycles that count. `None` if this is unknown.
    counted: Option<Validity>,
    in_slices: Option<InSlices<'e>>,
    reports: PeerReports,
    network: NetworkWatch,
    /// The usage of the systems that all candidates share.
    shared: Vec<SystemUsage>,
    cores: Option<&'e Cores>,
    began: Option<Instant>,
}

/// The readings at the end of the load of all candidates.
struct UsageSamples {
    /// One reading for each candidate.
    own: Vec<UsageSample>,
    /// Readings of the systems that all candidates share.
    shared: Vec<UsageReading>,
    /// The segments sent by the load's connections, for each candidate.
    segments: Vec<Option<rig::Segments>>,
}

/// The part of a gap in which requests leave, after a warm-up at this rate. It is the whole gap if the typical
/// response of each variant outlasts it.
fn spread_of(warmups: &[Measurement], rate: Rate) -> Spread {
    let gap_ns = 1e9 / rate.per_second();
    let outlasts = |sent: &Measurement| {
        let typical_ns = sent.latency.quantile_ns(0.5);
        typical_ns.is_some_and(|latency_ns| latency_ns as f64 >= gap_ns)
    };
    if warmups.iter().all(outlasts) {
        Spread::Gap
    } else {
        Spread::Seats
    }
}

impl Experiment<'_> {
    /// Measures all remaining candidates at once.
    pub(super) fn side_by_side(&mut self, round: &Round) {
        if self.design.groups.is_none() {
            let all = Group {
                number: None,
                variants: self.candidates.compared(),
            };
            self.group(round, &all);
            if self.design.order == Order::InTurn {
                return self.in_turn(round);
            }
        }
        let groups = self.design.groups.as_ref();
        // If the first attempt has just measured all candidates as one group, it is not measured again.
        let groups = groups.map_or_else(Vec::new, |groups| groups.in_round(round.number));
        for group in groups {
            let has_had_its_turn = |record: &RoundRecord| record.round as usize == round.number;
            if group.number.is_none() && self.records.iter().any(has_had_its_turn) {
                continue;
            }
            let is_placed = |design: &Design| design.cores_of(&group).is_some();
            let was_placed = is_placed(&self.design);
            self.group(round, &group);
            // The systems need more than one core each, and there was no measurement.
            if was_placed && !is_placed(&self.design) && !self.is_over() {
                self.group(round, &group);
            }
        }
        for _ in round.positions() {
            self.session.progress.step();
        }
    }

    /// Returns the variant run of a running candidate.
    pub(super) fn run_of(&self, round: &Round, one: &RunningVariant) -> VariantRun<'_> {
        let candidate = self.candidates.get(one.position.candidate);
        VariantRun::of_round(&self.session, candidate, round).in_group(one.position.group)
    }

    /// Starts and proves the candidates in the order of this round. The order changes from round to round, so
    /// that start order and ports favor no candidate.
    pub(super) fn bring_up(
        &mut self,
        round: &Round,
        context: &GroupContext<'_>,
    ) -> Vec<RunningVariant> {
        let mut up = Vec::new();
        let group = context.group;
        for position in round.positions() {
            let position = Position {
                group: group.number.map(|(number, _)| number),
                ..position
            };
            let is_needless = self
                .candidates
                .is_needless_in(position.candidate, &group.variants);
            if self.is_over() || is_needless {
                continue;
            }
            let run = VariantRun::of_round(
                &self.session,
                self.candidates.get(position.candidate),
                round,
            )
            .in_group(position.group)
            .on(context.cores.as_ref());
            let setups = run.candidate.variant.systems();
            let earlier = self.reused.take(position.candidate);
            let running = match (earlier, self.reused.reuse().partly(setups)) {
                // In the first round the systems come from the proof and have received no load.
                (Some(running), Some(kept)) if round.number > 0 => {
                    run.restart(&mut self.rig, running, kept)
                }
                (Some(running), _) => Ok(running),
                (None, _) => run.start_with_shared(&mut self.rig, context.shared.as_ref()),
            };
            let proven = running.and_then(|mut running| match run.prove_once(&mut running) {
                Ok(()) => Ok(running),
                Err(symptom) => {
                    // Read before the stop. Afterwards all systems have ended.
                    let ended = running.ended(&mut self.rig);
                    running.stop(&mut self.rig);
                    Err(root_cause(ended, symptom))
                }
            });
            match proven {
                Ok(running) => up.push(RunningVariant {
                    position,
                    running,
                    used: None,
                }),
                // The user stopped the run, so the candidate is not at fault.
                Err(invalid) if invalid.kind == InvalidKind::Interrupted => {}
                Err(invalid) => self.reject(position.candidate, invalid),
            }
        }
        up
    }

    /// Settles each candidate, and warms all candidates up together. Returns the loads.
    pub(super) fn ready_together(
        &mut self,
        round: &Round,
        up: &mut [RunningVariant],
        context: &GroupContext<'_>,
    ) -> Result<Loads, Invalid> {
        let costs = self.settle_together(round, up, context)?;
        if !self.session.load.is_open() {
            // One variant at a time has the load, so responses of one cannot crowd another.
            let (jobs, slices) = self.ready_in_slices(round, up)?;
            let slices = Some(slices);
            return Ok(Loads { jobs, slices });
        }
        let variants = up.len();
        let spread = self.design.spread.unwrap_or_default();
        // Each search has its own rates.
        let is_shared = self.session.lab.capacity.is_none();
        let mut jobs: Vec<Job> = (0..)
            .zip(&*up)
            .map(|(variant, one)| Job {
                seat: is_shared.then_some(schedule::Seat {
                    variant,
                    variants,
                    seed: round.arrival_seed,
                    spread,
                }),
                ..self.run_of(round, one).job(&one.running)
            })
            .collect();
        // Counted once, because all candidates share one plan. Counting random arrivals requires drawing
        // them.
        let kept = jobs.first().filter(|_| is_shared).and_then(slots_kept);
        for job in &mut jobs {
            job.keep_slots = kept;
        }
        let warmup = self.session.lab.warmup;
        if !jobs.is_empty() && !warmup.is_zero() {
            let short: Vec<Job> = jobs
                .iter()
                .map(|job| VariantRun::warmup_job(job, warmup))
                .collect();
            let label = context.label(round, "warming up");
            let usage = || -> Vec<Vec<UsageReading>> {
                let systems = up.iter().map(|one| &one.running.systems);
                systems.map(|systems| systems.usage(&self.rig)).collect()
            };
            let before = usage();
            let (sent, after) = self.session.discard_together(&short, &label, usage)?;
            let spread = *self
                .design
                .spread
                .get_or_insert_with(|| spread_of(&sent, first_rate(&short[0].load)));
            for seat in jobs.iter_mut().filter_map(|job| job.seat.as_mut()) {
                seat.spread = spread;
            }
            for (index, one) in up.iter_mut().enumerate() {
                let setups = self
                    .candidates
                    .get(one.position.candidate)
                    .variant
                    .systems();
                let used = Used {
                    before: &before[index],
                    after: &after[index],
                    sent: &sent[index],
                };
                one.used = used.cores(setups, first_rate(&short[index].load));
            }
        }
        for ((one, cost), job) in up.iter_mut().zip(costs).zip(&jobs) {
            let used = one.used.take();
            // One search at a time has the load, so responses of one cannot crowd another.
            one.used = planned(used, cost, &job.load).filter(|_| is_shared);
        }
        let slices = None;
        Ok(Loads { jobs, slices })
    }

    /// Repeats the measurement until no generator was disturbed, at most [`ATTEMPTS`] times. A disturbance of
    /// one generator is in the figures of all candidates, because they share the plan.
    pub(super) fn attempts_together(
        &mut self,
        round: &Round,
        up: &[RunningVariant],
        loads: &Loads,
        context: &GroupContext<'_>,
    ) -> Result<GroupResult, RoundFailure> {
        for attempt in 1.. {
            let mut result = self.measure_together(round, up, loads, context)?;
            // After this exchange, all generators have read the counters of the systems for this attempt.
            let all = self.attempts_of_all(Attempt::of(&result.records))?;
            let is_disturbed = attempt < ATTEMPTS
                && all.iter().all(|one| !one.is_interrupted)
                && all.iter().any(|one| one.is_disturbed);
            for record in &mut result.records {
                record.disturbed = is_disturbed;
                let line = record::line(record, round.planned);
                self.session.progress.note(&line);
            }
            // Stored before the responses are judged, because wrong responses are evidence.
            self.records.extend(result.records.iter().cloned());
            if !is_disturbed {
                return Ok(result);
            }
        }
        unreachable!("the last attempt counts")
    }

    /// Sends one load to all candidates.
    pub(super) fn measure_together(
        &self,
        round: &Round,
        up: &[RunningVariant],
        loads: &Loads,
        context: &GroupContext<'_>,
    ) -> Result<GroupResult, RoundFailure> {
        self.session.go_on()?;
        let runs: Vec<VariantRun<'_>> = up.iter().map(|one| self.run_of(round, one)).collect();
        let label = context.label(round, "side by side");
        tracing::debug!(label, "the load begins");
        let readings = self.begin_readings(&runs, up)?;
        let shared_before = context.usage(&self.rig);
        let jobs = self.starting_together(&loads.jobs)?;
        let targets: Vec<Target> = jobs.iter().map(|job| job.target.clone()).collect();
        let send = |live: &Live| -> Result<(Vec<Measurement>, UsageSamples), LoadError> {
            let take_samples = || {
                let samples = readings.iter().map(|reading| reading.sample(&self.rig));
                UsageSamples {
                    own: samples.collect(),
                    shared: context.usage(&self.rig),
                    segments: segments_to_each(&targets),
                }
            };
            load::run_together(&jobs, live, self.session.stop.flag(), take_samples)
        };
        let pids = self.pids_watched(up, loads);
        let ((sent, mut network), watched) = WatchedLoad::during(&pids, || {
            NetworkWatch::during(&targets, || {
                let progress = &self.session.progress;
                progress.measuring(&label, receivers(&runs, &jobs), send)
            })
        });
        let (measurements, samples) = sent.map_err(|error| load_failed(&error))?;
        let shared = systems_used(&shared_before, &samples.shared, &[]);
        network.count(samples.segments);
        tracing::debug!(label, "the load has ended");
        let began = measurements.iter().find_map(|seen| seen.began);
        let in_slices = self.counted_slices(loads.slices.as_ref(), &measurements, &watched.host)?;
        let reports = self.exchange_reports(&jobs, &measurements, &watched.host)?;
        let cores = self.host.before.cpus_allowed;
        let counted = watched.counted(&jobs, &measurements, &reports, cores);
        let end = RunEnd {
            runs: &runs,
            up,
            jobs: &jobs,
            counted,
            in_slices,
            reports,
            network,
            shared,
            cores: context.cores.as_ref(),
            began,
        };
        let mut result = GroupResult {
            measured: Vec::new(),
            records: Vec::new(),
        };
        let each = readings.into_iter().zip(samples.own).zip(measurements);
        for (index, ((reading, sample), measurement)) in each.enumerate() {
            let (measured, record) = self.end_of_one(&end, index, reading, sample, measurement)?;
            result.records.push(record);
            result.measured.push(measured);
        }
        Ok(result)
    }

    /// Reads the counters of all candidates before their load.
    fn begin_readings<'r>(
        &self,
        runs: &[VariantRun<'r>],
        up: &'r [RunningVariant],
    ) -> Result<Vec<Reading<'r>>, RoundFailure> {
        // Once for all, because the wait of one variant is also the wait of the others.
        let variants = runs.iter().map(|run| run.candidate.variant);
        let_earlier_arrive(variants, self.session.stop)?;
        let each = runs.iter().zip(up).enumerate();
        each.map(|(index, (run, one))| {
            let culprit = Some(index);
            let reading = run.begin(&self.rig, &one.running);
            reading.map_err(|invalid| RoundFailure { culprit, invalid })
        })
        .collect()
    }

    /// The processes of each candidate that could take cores from other candidates. Their processor time
    /// shows it. Empty in a closed loop and in a search, where one candidate at a time has the load.
    fn pids_watched(&self, up: &[RunningVariant], loads: &Loads) -> Vec<Vec<i32>> {
        if loads.slices.is_some() || self.session.lab.capacity.is_some() {
            return Vec::new();
        }
        let systems = up.iter().map(|one| &one.running.systems);
        systems.map(|it| it.pids_watched(&self.rig)).collect()
    }

    /// The result of the load of one candidate.
    fn end_of_one(
        &self,
        end: &RunEnd<'_>,
        index: usize,
        reading: Reading<'_>,
        sample: UsageSample,
        mut measurement: Measurement,
    ) -> Result<(Measured, RoundRecord), RoundFailure> {
        let counted = end
            .counted
            .as_ref()
            .map(|validity| leave_out(&mut measurement, validity, index, self.session.shard()));
        if let Some(in_slices) = &end.in_slices {
            in_slices.fold(&mut measurement, index);
        }
        let culprit = Some(index);
        let measured = reading
            .end(
                &self.rig,
                sample,
                measurement,
                end.reports.sent_by_others(index),
                self.session.stop,
            )
            .map_err(|invalid| RoundFailure { culprit, invalid })?;
        let name = end.runs[index].candidate.name();
        let mut record = measured.record(&self.session, name, end.up[index].position);
        if let Some(counted) = counted {
            record.left_out = Some(counted.left_out);
            record.requests = counted.requests;
            record.all_latency_ns_hdr = counted.all_latency;
            record.left_out_answers = counted.left_out_answers;
            record.latency_means = counted.latency_means;
            // A slot of a scenario is an iteration, which has several first bytes.
            record.first_byte = record.steps.is_empty().then_some(counted.first_byte);
            if let Some(events) = &mut record.events {
                events.first = counted.first_event;
            }
        }
        if let Some(cores) = end.cores {
            record.cores = cores.record(end.runs[index].candidate.variant.systems());
        }
        record.shared.clone_from(&end.shared);
        record.network = end.network.record(index);
        record.generators = self.generators(end.jobs, &record, end.began);
        if let Some(in_slices) = &end.in_slices {
            record.left_out = in_slices.left_out();
            record.slices = Some(in_slices.record(&measured.measurement));
        }
        Ok((measured, record))
    }

    /// Judges the responses of each candidate, and stops or keeps its systems.
    pub(super) fn take_down(&mut self, up: Vec<RunningVariant>, result: GroupResult) {
        let GroupResult { measured, records } = result;
        let each = up.into_iter().zip(measured).zip(records);
        for (
            (
                RunningVariant {
                    position, running, ..
                },
                measured,
            ),
            record,
        ) in each
        {
            let wrong = record::wrong_answers(&record)
                .map(|reason| Invalid::new(InvalidKind::Mismatched, reason));
            let unproven = measured.unproven;
            let pushed_back = self.pushed_back(position.candidate, &record);
            let wrong = pushed_back.or(wrong);
            let symptom =
                wrong.or_else(|| unproven.map(|invalid| in_round(invalid, position.round)));
            let ended = running.ended(&mut self.rig);
            let end = end_of(symptom, ended, position.round);
            self.reused
                .keep_or_stop(&mut self.rig, position.candidate, running, end.is_none());
            if let Some(invalid) = end {
                self.reject(position.candidate, invalid);
            }
        }
    }
}

/// Number of slots with recorded times for each candidate. `None` for a scenario, because its slots are
/// several requests, and for a plan that is too long.
fn slots_kept(job: &Job) -> Option<usize> {
    let slots = plan_of(job)?.len();
    (slots <= SLOTS_MAX && job.steps.is_empty())
        .then(|| usize::try_from(slots).expect("less than the bound"))
}

/// The receivers of the load, one for each candidate.
fn receivers(runs: &[VariantRun<'_>], jobs: &[Job]) -> Vec<Receiver> {
    let each = runs.iter().zip(jobs);
    each.map(|(run, job)| Receiver {
        target: run.candidate.name().to_owned(),
        load: job.load.clone(),
    })
    .collect()
}
