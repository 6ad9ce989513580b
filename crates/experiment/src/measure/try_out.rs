//! Two short loads to each variant right after its proof. They show the latency and the processor time of a
//! request. The rate of a run and its precision follow from these.
//!
//! The first load has one request in flight, at most at the highest rate that may be chosen. The second load
//! has several requests in flight at once, for a moment. It shows if requests wait for one another.

use std::time::Duration;

use load::{Job, Measurement};
use model::{Arrival, Load, Order, Phase, Rate, Shard, Stop};
use recording::{RateChosen, TriedVariant};
use rig::Rig;
use schedule::fit::{self, Fit, Limit, Observed};
use stats::Histogram;

use super::Experiment;
use super::candidate_id::CandidateId;
use super::running::Running;
use super::trial::Trial;
use super::variant_run::VariantRun;
use crate::invalid::Invalid;

/// Number of requests of the first load.
const REQUESTS: u64 = 50;
/// Number of requests before it. They show if it can be paced.
const FIRST_REQUESTS: u64 = 3;
/// Slower responses may arrive after the next request of a paced load.
const PACED_BELOW: Duration = Duration::from_millis(8);
/// Maximum sending time of a trial's load. Responses may arrive later.
const LONGEST: Duration = Duration::from_millis(1500);
/// Number of requests of the second load on each connection.
const REQUESTS_EACH: u64 = 8;
/// Maximum number of repetitions of the first load. A program with a just-in-time compiler gets faster.
const REPEATS: u32 = 6;
/// If a load costs less than this share of the previous load, another one follows.
const STILL_FASTER: f64 = 0.8;

impl VariantRun<'_> {
    /// Sends both loads and returns their results. `None` if no response arrived.
    ///
    /// # Errors
    ///
    /// When a load cannot be sent, or a response to the first load is wrong.
    pub(super) fn try_out(
        &self,
        rig: &Rig,
        running: &mut Running,
        start: Duration,
    ) -> Result<Option<Trial>, Invalid> {
        self.settle_once(running)?;
        let label = format!("{}, trying out", self.label());
        let single = Job {
            threads: 1,
            shard: Shard::WHOLE,
            ..self.job(running)
        };
        let session = self.session;
        let first = Job {
            load: one_by_one(FIRST_REQUESTS),
            ..single.clone()
        };
        let first = session.discard(&first, &label, "during its trial")?;
        let Some(first) = first.service.quantile_ns(0.5) else {
            return Ok(None);
        };
        let alone = Job {
            load: match Duration::from_nanos(first) < PACED_BELOW {
                true => paced(),
                false => one_by_one(REQUESTS),
            },
            ..single.clone()
        };
        let mut cost = f64::INFINITY;
        let mut best = None;
        for _ in 0..REPEATS {
            let before = running.systems.processor_time(rig);
            let sent = session.discard(&alone, &label, "during its trial")?;
            let after = running.systems.processor_time(rig);
            let Some(seen) = Alone::of(&sent, before.zip(after)) else {
                return Ok(None);
            };
            let is_faster = seen.cost() < STILL_FASTER * cost;
            cost = cost.min(seen.cost());
            best = Some(seen);
            if !is_faster || session.stop.is_asked() {
                break;
            }
        }
        let Some(alone) = best else {
            return Ok(None);
        };
        let in_flight = fit::in_flight(alone.latency_s, rig::machine::cores_allowed().len());
        let together = Job {
            load: together(in_flight),
            ..single
        };
        let (sent, ()) = session.discard_together(&[together], &label, || ())?;
        Ok(Some(Trial {
            observed: Observed {
                alone_s: alone.latency_s,
                together_s: mean_together(&sent[0])
                    // The load has shown a limit of requests in flight, or of simultaneous requests.
                    .unwrap_or(alone.latency_s * f64::from(in_flight)),
                in_flight,
                processor_s: alone.processor_s,
            },
            error_s: alone.error_s,
            start,
        }))
    }
}

/// A load with one request in flight. Each request follows the response to the previous one.
fn one_by_one(requests: u64) -> Load {
    Load::Closed {
        connections: 1,
        stop: Stop {
            requests: Some(requests),
            duration: Some(LONGEST),
        },
    }
}

/// A load with one request in flight, at the highest rate that may be chosen. A server that rests between two
/// requests needs more processor time for each. Each response must arrive before the next request.
fn paced() -> Load {
    let highest = Rate::new(fit::RATE_MAX).expect("a positive number");
    Load::Open {
        phases: vec![Phase::constant(LONGEST, highest)],
        arrival: Arrival::Uniform,
        connections_max: 1,
        requests_max: Some(REQUESTS),
    }
}

/// The load with several requests in flight.
fn together(in_flight: u32) -> Load {
    Load::Closed {
        connections: in_flight,
        stop: Stop {
            requests: Some(REQUESTS_EACH * u64::from(in_flight)),
            duration: Some(LONGEST),
        },
    }
}

/// The result of the first load, in seconds.
struct Alone {
    latency_s: f64,
    error_s: f64,
    processor_s: Option<f64>,
}

impl Alone {
    fn of(sent: &Measurement, processor: Option<(Duration, Duration)>) -> Option<Alone> {
        let service = &sent.service;
        let seconds = |nanoseconds: f64| nanoseconds / 1e9;
        let latency = seconds(service.quantile_ns(0.5)? as f64);
        let spread = service.trimmed_spread_ns(Histogram::TYPICAL_SHARE)?;
        let used = processor.map(|(before, after)| after.saturating_sub(before));
        Some(Alone {
            // A latency of 0 would mean an infinite rate.
            latency_s: latency.max(1e-6),
            error_s: seconds(spread),
            processor_s: used.map(|used| used.as_secs_f64() / service.len() as f64),
        })
    }

    /// The cost that decreases in a program with a just-in-time compiler.
    fn cost(&self) -> f64 {
        let processor = self.processor_s.filter(|used| *used > 0.0);
        processor.unwrap_or(self.latency_s)
    }
}

/// Returns the mean time from send to response in seconds, if every response is right.
fn mean_together(sent: &Measurement) -> Option<f64> {
    let is_right = sent.outcomes.passed == sent.outcomes.total();
    let mean = sent.service.mean_ns().filter(|_| is_right)?;
    Some((mean / 1e9).max(1e-6))
}

impl Experiment<'_> {
    /// Chooses the load from the trials of all remaining variants, if the lab has `rate: auto`. Prints the
    /// choice with its reason.
    pub(super) fn choose_load(&mut self) {
        let lab = self.session.lab;
        let Some(choice) = lab.rate_choice else {
            return;
        };
        let tried: Vec<(CandidateId, Trial)> = self.trials();
        let observed: Vec<Observed> = tried.iter().map(|(_, trial)| trial.observed).collect();
        let rounds = self.rounds.planned();
        let fit = Fit::of(
            &observed,
            self.host.before.cpus_allowed,
            self.design.order == Order::SideBySide,
            u32::try_from(rounds).unwrap_or(u32::MAX),
            lab.load.duration().filter(|_| choice.keeps_duration),
        );
        // All variants have been rejected, each with its reason.
        let Some(fit) = fit else {
            return;
        };
        let name = |variant: usize| self.candidates.get(tried[variant].0).name();
        let is_known = observed.iter().all(|it| it.processor_s.is_some());
        let because = because(&fit, is_known, name);
        let rate = Rate::new(fit.rate).expect("a positive number");
        if let Load::Open { phases, .. } = &mut self.session.load {
            *phases = vec![Phase::constant(fit.round, rate)];
        }
        self.session.progress.note(&format!(
            "chose {rate} for each variant in rounds of {}: {because}",
            span(fit.round)
        ));
        self.chosen = Some(RateChosen {
            because,
            variants: tried
                .iter()
                .map(|(id, trial)| trial.recorded(self.candidates.get(*id).name()))
                .collect(),
        });
    }

    /// The trials of the remaining candidates, in the order of the report.
    pub(super) fn trials(&self) -> Vec<(CandidateId, Trial)> {
        let ids = self.candidates.ids();
        let kept = ids.filter(|id| !self.candidates.is_needless(*id));
        kept.filter_map(|id| Some((id, self.candidates.get(id).trial?)))
            .collect()
    }
}

impl Trial {
    fn recorded(&self, variant: &str) -> TriedVariant {
        let micros = |seconds: f64| seconds * 1e6;
        TriedVariant {
            variant: variant.to_owned(),
            alone_us: micros(self.observed.alone_s),
            in_flight: self.observed.in_flight,
            together_us: micros(self.observed.together_s),
            processor_us: self.observed.processor_s.map(micros),
        }
    }
}

/// The reason why the rate is not higher, as a clause. `is_known` is true if the processor time of all
/// systems can be read.
fn because<'n>(fit: &Fit, is_known: bool, name: impl Fn(usize) -> &'n str) -> String {
    let used = fit.cores_share * 100.0;
    match fit.limit {
        Limit::Most if !is_known => {
            "the processor time of the systems cannot be read, and they can answer more".to_owned()
        }
        Limit::Most => format!("the systems then use about {used:.1} % of the cores"),
        Limit::Cores if !is_known => format!(
            "requests slow one another down, and the limit is {:.0} % of the rate at that point",
            fit::SHARE * 100.0
        ),
        Limit::Cores => format!(
            "the systems then use about {used:.0} % of the cores, and the limit is {:.0} %",
            fit::SHARE * 100.0
        ),
        Limit::Capacity {
            variant,
            per_second,
        } => format!(
            "`{}` answers about {per_second:.*} requests/s, and the limit is {:.0} % of that",
            name(variant),
            usize::from(per_second < 10.0),
            fit::SHARE * 100.0
        ),
        Limit::InFlight { variant, tried } => format!(
            "`{}` then has about {tried} requests in flight, and more were not tried",
            name(variant)
        ),
    }
}

/// A duration as text, such as `2 s` or `700 ms`.
fn span(length: Duration) -> String {
    match length.as_millis() {
        whole if whole % 1000 == 0 => format!("{} s", whole / 1000),
        milliseconds => format!("{milliseconds} ms"),
    }
}
