//! A prediction of a run from the trials of its variants: requests in flight, its length, and the smallest
//! difference that it would probably show.

use std::time::Duration;

use model::{Goal, Load, Order, Phase, Rate};
use schedule::{SliceLengths, SlicePlan};

use super::Experiment;
use super::candidate_id::CandidateId;
use super::duration_text::duration_text;
use super::fraction;
use super::groups::{CoreFit, CoresUsed, Member, Part, split};
use super::trial::Trial;

/// The time of a round besides starts and loads: reading counters and stopping systems.
const AROUND_ROUND: Duration = Duration::from_millis(150);

/// The variants with a trial, under the load of the run.
struct Predicted<'p> {
    tried: &'p [(CandidateId, Trial)],
    load: &'p Load,
    cores: f64,
}

impl Experiment<'_> {
    /// True if the load has a single rate of requests.
    pub(super) fn is_predictable(&self) -> bool {
        let lab = self.session.lab;
        lab.capacity.is_none() && lab.sweep.is_empty() && lab.steps.is_empty()
    }

    /// Returns the lines of the prediction. Empty if fewer than two variants responded. Must be called after
    /// [`Experiment::choose_load`].
    pub(super) fn prediction(&self) -> Vec<String> {
        let tried = self.trials();
        if !self.is_predictable() {
            let why = "searches, sweeps and scenarios have no single rate";
            return vec![format!("no prediction: {why}")];
        }
        if tried.len() < 2 {
            return Vec::new();
        }
        let predicted = Predicted {
            tried: &tried,
            load: &self.session.load,
            cores: self.host.before.cpus_allowed as f64,
        };
        let fit = split(&self.members_of(&predicted), predicted.cores);
        let is_open = predicted.load.is_open();
        let order = match (self.design.order, &fit) {
            (Order::SideBySide, CoreFit::PairTooLarge { .. }) if is_open => Order::InTurn,
            (order, _) => order,
        };
        let mut lines = vec![self.in_flight(&predicted)];
        match &fit {
            _ if self.design.order == Order::InTurn || !is_open => {}
            CoreFit::Fits(_) => {}
            CoreFit::Splits(groups, because) => lines.push(format!(
                "in {} groups, each with its baseline: {because}{}",
                groups.len(),
                self.fraction_that_fits(&predicted)
            )),
            CoreFit::PairTooLarge { because, fits_at } => {
                let remedy = self.lower_rate(*fits_at);
                lines.push(format!("in turn, not side by side: {because}{remedy}"));
            }
        }
        lines.push(self.length(&predicted, order, &fit));
        lines.push(self.precision(&predicted));
        lines
    }

    /// The variants with their expected processor time.
    fn members_of(&self, predicted: &Predicted<'_>) -> Vec<Member> {
        let member = |(id, trial): &(CandidateId, Trial)| {
            let target = self.candidates.get(*id).variant.systems().last();
            let part = |used: f64| Part {
                system: target.map_or_else(String::new, |setup| setup.system.clone()),
                on: None,
                used,
            };
            let used = trial.observed.processor_s.map(|each| {
                let used = each * predicted.per_second(trial);
                CoresUsed::new(vec![part(used)])
            });
            self.candidates.member(*id, used)
        };
        predicted.tried.iter().map(member).collect()
    }

    /// The fraction of the lab's design that fits into one group. Empty without one.
    fn fraction_that_fits(&self, predicted: &Predicted<'_>) -> String {
        let factors = self.session.lab.factors.as_ref();
        let members = self.members_of(predicted);
        let fraction = factors.and_then(|it| fraction::that_fits(it, &members, predicted.cores));
        fraction.unwrap_or_default()
    }

    /// A line such as ``in flight: 1.2 requests of `a`, 4.8 of `b` ``.
    fn in_flight(&self, predicted: &Predicted<'_>) -> String {
        let each = predicted.tried.iter().map(|(id, trial)| {
            let number = match predicted.load {
                Load::Closed { connections, .. } => f64::from(*connections),
                Load::Open { .. } => predicted.per_second(trial) * trial.observed.alone_s,
            };
            format!("{} of `{}`", short(number), self.candidates.get(*id).name())
        });
        let each: Vec<String> = each.collect();
        format!("requests in flight: {}", each.join(", "))
    }

    /// The time of the whole run.
    fn length(&self, predicted: &Predicted<'_>, order: Order, fit: &CoreFit) -> String {
        let lab = self.session.lab;
        let variants = u32::try_from(predicted.tried.len()).unwrap_or(u32::MAX);
        let start: Duration = predicted.tried.iter().map(|(_, trial)| trial.start).sum();
        let settle = lab.settle.map_or(Duration::ZERO, |settle| settle.within);
        let load = predicted
            .load
            .duration()
            .unwrap_or_else(|| predicted.time_of_count());
        let is_open = predicted.load.is_open();
        let (ready, loaded) = match (order, is_open) {
            (Order::InTurn, _) => (settle + lab.warmup, load * variants),
            (Order::SideBySide, true) => {
                // The lab can name the groups itself.
                let groups = lab.groups.as_ref().map_or_else(|| fit.groups(), Vec::len);
                let groups = u32::try_from(groups).unwrap_or(1);
                (settle + lab.warmup, load * groups)
            }
            (Order::SideBySide, false) => {
                let lengths = SliceLengths {
                    total: load,
                    slice: lab.slice,
                    gap: Duration::ZERO,
                    latency: predicted.slowest(),
                };
                let plan = SlicePlan::new(predicted.tried.len(), lengths, 0);
                (settle + lab.warmup, plan.length())
            }
        };
        let ready = match order {
            Order::InTurn => ready * variants,
            Order::SideBySide => ready,
        };
        let each = start + ready + loaded + AROUND_ROUND;
        let rounds = self.rounds.planned();
        let all = each.mul_f64(rounds as f64);
        let (least, most) = match lab.until {
            Some(Goal::Width(_)) => (
                "at least ",
                format!(", at most {}", duration_text(lab.max_time)),
            ),
            Some(Goal::Gates) => (
                "at most ",
                ", less if the gates are decided sooner".to_owned(),
            ),
            None => ("about ", String::new()),
        };
        format!(
            "time: {least}{}{most} ({rounds} rounds of about {:.1} s)",
            duration_text(all),
            each.as_secs_f64()
        )
    }

    /// The smallest difference that the run would probably show, of each compared variant.
    fn precision(&self, predicted: &Predicted<'_>) -> String {
        let rounds = self.rounds.planned();
        let compared = self.candidates.names_compared().len();
        let overall = match self.session.lab.until {
            Some(Goal::Gates) => stats::sequential::look_confidence(analysis::CONFIDENCE),
            Some(Goal::Width(_)) | None => analysis::CONFIDENCE,
        };
        let confidence = stats::multiple::per_comparison_confidence(overall, compared.max(1));
        let needed = stats::multiple::rounds_needed(analysis::CONFIDENCE, compared.max(1));
        let trial_of = |id: CandidateId| {
            let mut all = predicted.tried.iter();
            all.find(|(other, _)| *other == id).map(|(_, trial)| trial)
        };
        let shown = predicted.tried.iter().filter_map(|(id, trial)| {
            let baseline = trial_of(self.candidates.against(*id)?)?;
            let deviation = predicted.error(trial).hypot(predicted.error(baseline));
            let detectable = stats::width::detectable_at(deviation, rounds, confidence)?;
            let difference = resolved(detectable, baseline.observed.alone_s);
            let name = self.candidates.get(*id).name();
            let percent = difference / baseline.observed.alone_s * 100.0;
            let percent = short(percent);
            Some(format!("{} ({percent} %) of `{name}`", micros(difference)))
        });
        let shown: Vec<String> = shown.collect();
        match shown.is_empty() {
            true => format!(
                "the run cannot show a difference, because that needs {needed} rounds and the lab has {rounds}"
            ),
            false => format!(
                "smallest difference that the run would probably show: {}. Starts differ too, so expect more",
                shown.join(", ")
            ),
        }
    }
}

/// Half the width of a bucket of a histogram, as a share of its value.
const BUCKET: f64 = 0.0005;

/// Returns the difference, but at least half of a bucket at this latency. If all latencies of a trial are in one
/// bucket, their scatter is not known.
fn resolved(detectable_s: f64, latency_s: f64) -> f64 {
    detectable_s.max(latency_s * BUCKET)
}

impl Predicted<'_> {
    /// Requests per second to one variant.
    fn per_second(&self, trial: &Trial) -> f64 {
        match self.load {
            Load::Closed { connections, .. } => {
                f64::from(*connections) / self.latency(trial).as_secs_f64()
            }
            Load::Open { phases, .. } => mean_rate(phases),
        }
    }

    /// The latency of one variant under the load.
    fn latency(&self, trial: &Trial) -> Duration {
        let observed = trial.observed;
        let seconds = match self.load {
            Load::Open { .. } => observed.alone_s,
            Load::Closed { connections, .. } => observed.latency_at(*connections),
        };
        Duration::from_secs_f64(seconds)
    }

    fn slowest(&self) -> Duration {
        let latencies = self.tried.iter().map(|(_, trial)| self.latency(trial));
        latencies.max().unwrap_or_default()
    }

    /// The time of a load that ends after a number of requests.
    fn time_of_count(&self) -> Duration {
        let requests = self.load.requests().unwrap_or(1) as f64;
        let longest = self
            .tried
            .iter()
            .map(|(_, trial)| requests / self.per_second(trial));
        Duration::try_from_secs_f64(longest.fold(0.0, f64::max)).unwrap_or(Duration::MAX)
    }

    /// The standard error of the typical latency of a round, in seconds.
    fn error(&self, trial: &Trial) -> f64 {
        let seconds = self.load.duration().map_or_else(
            || self.time_of_count().as_secs_f64(),
            |load| load.as_secs_f64(),
        );
        let requests = self.per_second(trial) * seconds;
        trial.error_s / requests.max(1.0).sqrt()
    }
}

/// Requests per second of all phases together.
fn mean_rate(phases: &[Phase]) -> f64 {
    let half = |rate: Rate| rate.per_second() / 2.0;
    let seconds = |phase: &Phase| phase.duration.as_secs_f64();
    let requests: f64 = phases
        .iter()
        .map(|phase| (half(phase.from) + half(phase.to)) * seconds(phase))
        .sum();
    requests / phases.iter().map(seconds).sum::<f64>()
}

/// Formats a number with two significant digits.
fn short(number: f64) -> String {
    match number {
        large if large >= 10.0 => format!("{large:.0}"),
        middle if middle >= 0.1 => format!("{middle:.1}"),
        small => format!("{small:.2}"),
    }
}

/// Formats a duration with two significant digits and its unit.
fn micros(seconds: f64) -> String {
    match seconds * 1e6 {
        long if long >= 1e6 => format!("{} s", short(long / 1e6)),
        middle if middle >= 1e3 => format!("{} ms", short(middle / 1e3)),
        us => format!("{} us", short(us)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_without_scatter_resolves_half_a_bucket() {
        assert!((resolved(0.0, 2.0) - 0.001).abs() < 1e-12);
        assert!((resolved(0.004, 2.0) - 0.004).abs() < 1e-12);
    }

    #[test]
    fn the_rate_of_phases_is_that_of_their_requests() {
        let rate = |per_second: f64| Rate::new(per_second).expect("a rate");
        let seconds = Duration::from_secs;
        let ramp = Phase {
            duration: seconds(2),
            from: rate(0.0),
            to: rate(100.0),
        };
        // 100 requests in 2 s, then 200 in 1 s.
        let phases = [ramp, Phase::constant(seconds(1), rate(200.0))];
        assert_eq!(mean_rate(&phases), 100.0);
    }

    #[test]
    fn figures_have_two_digits_and_a_unit() {
        assert_eq!(micros(0.000_004_26), "4.3 us");
        assert_eq!(micros(0.000_9), "900 us");
        assert_eq!(micros(0.001_26), "1.3 ms");
        assert_eq!(micros(12.3), "12 s");
    }
}
