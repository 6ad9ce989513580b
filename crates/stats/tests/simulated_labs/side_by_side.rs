//! What is the best figure for "what a request pays" when variants run side by side? Rounds are
//! simulated request by request, with what real ones have: a machine whose mood all share, servers
//! that come up a little faster or slower, rare slow requests, and cores that the host takes for
//! milliseconds. The rule of cycles (`stats::cycles`) leaves out what it leaves out in `weigh lab`.

use stats::cycles::{Cause, Disturbance, Validity};
use stats::sample;

use crate::random::Random;
use crate::{CONFIDENCE, compare};

/// Rounds of a run, which takes half a minute with two gateways.
const ROUNDS: usize = 8;
/// Due times of a round.
const CYCLES: usize = 200;
/// From one due time to the next, in nanoseconds: 100 requests a second.
const GAP_NS: u64 = 10_000_000;
/// How much a start moves all requests of a server, in microseconds: 3.5 in a difference of two.
const START_US: f64 = 2.5;
/// Requests that are slow for reasons of their own.
const SLOW_SHARE: f64 = 0.01;
/// Where others keep the cores busy: requests that wait for a core besides, as a compiler in another
/// terminal makes them on two cores.
const WAITING_SHARE: f64 = 0.15;
/// How long they wait on average, in microseconds.
const WAIT_US: f64 = 2_000.0;
/// Times the host takes a core, a round.
const THEFTS: f64 = 2.0;
/// Of them, those that the kernel counts.
const COUNTED_SHARE: f64 = 0.7;
/// How often the kernel's count is read, in nanoseconds.
const LOOK_NS: u64 = 20_000_000;

/// What the load asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Asked {
    /// One query, of 300 us.
    One,
    /// Two queries in turn, of 300 and 450 us: half of the requests are on either side of the median.
    TwoInTurn,
    /// One query of 300 us, on cores that other programs keep busy.
    OneAmongOthers,
}

/// What the variant adds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    /// To each request, in microseconds.
    Each(f64),
    /// To a tenth of the requests, in microseconds.
    Tenth(f64),
}

/// A figure of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Estimator {
    /// The median of the variant minus that of the baseline.
    Medians,
    /// The median of the differences within cycles.
    PairedMedian,
    /// As `Medians`, with means of which the upper quarter of each query's requests is cut.
    ThreeQuarters,
    /// As `Medians`, with means of which the upper tenth of each query's requests is cut.
    NineTenths,
    /// The mean of the variant minus that of the baseline.
    Mean,
}

pub(crate) const ESTIMATORS: [(Estimator, &str); 5] = [
    (Estimator::Medians, "difference of medians"),
    (Estimator::PairedMedian, "median of paired differences"),
    (
        Estimator::ThreeQuarters,
        "difference of means without the upper quarter",
    ),
    (
        Estimator::NineTenths,
        "difference of means without the upper tenth",
    ),
    (Estimator::Mean, "difference of means"),
];

/// How often runs were right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Score {
    /// Share of the runs that claim a positive difference.
    pub(crate) higher: f64,
    /// Share of the runs that claim any difference.
    pub(crate) claimed: f64,
    /// Share of the runs whose interval contains the true mean cost.
    pub(crate) inside: f64,
    /// Half width of the interval in the typical run.
    pub(crate) half_width_us: f64,
}

/// Scores of all estimators, over the same runs.
pub(crate) fn scores(runs: u64, asked: Asked, cost: Cost) -> [Score; 5] {
    let truth = match cost {
        Cost::Each(us) => us,
        Cost::Tenth(us) => us / 10.0,
    };
    let mut counts = [(0_u64, 0_u64, 0_u64); 5];
    let mut half_widths: [Vec<f64>; 5] = Default::default();
    for seed in 0..runs {
        let mut world = World::new(seed);
        let rounds: Vec<Round> = (0..ROUNDS).map(|_| world.round(asked, cost)).collect();
        for (index, (estimator, _)) in ESTIMATORS.iter().enumerate() {
            let differences: Vec<f64> = rounds
                .iter()
                .map(|round| round.difference(*estimator))
                .collect();
            let found = compare(&[0.0; ROUNDS], &differences, CONFIDENCE).difference;
            let interval = found.interval.expect("eight rounds have an interval");
            let (higher, claimed, inside) = &mut counts[index];
            *higher += u64::from(interval.low > 0.0);
            *claimed += u64::from(!interval.contains(0.0));
            *inside += u64::from(interval.contains(truth));
            half_widths[index].push(interval.half_width());
        }
    }
    let share = |count: u64| count as f64 / runs as f64;
    std::array::from_fn(|index| {
        let (higher, claimed, inside) = counts[index];
        Score {
            higher: share(higher),
            claimed: share(claimed),
            inside: share(inside),
            half_width_us: sample::median(&half_widths[index]).expect("there are runs"),
        }
    })
}

/// Latencies of the cycles that count, in microseconds, each with its query: baseline and variant.
struct Round {
    own: [Vec<(usize, f64)>; 2],
    /// Of the cycles that count for both.
    pairs: Vec<f64>,
}

impl Round {
    fn difference(&self, estimator: Estimator) -> f64 {
        let [base, own] = &self.own;
        let of = |figure: &dyn Fn(&[f64]) -> f64| {
            let [base, own] =
                [base, own].map(|it| it.iter().map(|(_, us)| *us).collect::<Vec<_>>());
            figure(&own) - figure(&base)
        };
        match estimator {
            Estimator::Medians => of(&median),
            Estimator::PairedMedian => median(&self.pairs),
            Estimator::ThreeQuarters => trimmed(own, 0.75) - trimmed(base, 0.75),
            Estimator::NineTenths => trimmed(own, 0.9) - trimmed(base, 0.9),
            Estimator::Mean => of(&mean),
        }
    }
}

fn median(values: &[f64]) -> f64 {
    sample::median(values).expect("no round is left out as a whole")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of the fastest share of each query's requests.
fn trimmed(values: &[(usize, f64)], share: f64) -> f64 {
    let mut of_queries = Vec::new();
    for query in 0..2 {
        let own = values.iter().filter(|(of, _)| *of == query);
        let mut own: Vec<f64> = own.map(|(_, us)| *us).collect();
        if !own.is_empty() {
            own.sort_unstable_by(f64::total_cmp);
            let kept = (own.len() as f64 * share).ceil() as usize;
            of_queries.push(mean(&own[..kept]));
        }
    }
    mean(&of_queries)
}

/// A machine with two servers.
struct World(Random);

impl World {
    fn new(seed: u64) -> World {
        World(Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)))
    }

    /// Starts both servers anew and sends a round to them.
    fn round(&mut self, asked: Asked, cost: Cost) -> Round {
        let starts = [START_US * self.0.normal(), START_US * self.0.normal()];
        let end_ns = GAP_NS * CYCLES as u64;
        let thefts = self.thefts(end_ns);
        let mut mood = 0.0;
        let mut slots = [Vec::new(), Vec::new()];
        for cycle in 0..CYCLES {
            // The machine is slower or faster for some cycles, for both servers alike.
            mood = 0.9 * mood + 0.03 * self.0.normal();
            let first = usize::from(self.0.uniform() < 0.5);
            let service_us = match asked {
                Asked::TwoInTurn if cycle % 2 == 1 => 450.0,
                _ => 300.0,
            };
            for (place, server) in [first, 1 - first].into_iter().enumerate() {
                let due_ns = GAP_NS * cycle as u64 + GAP_NS / 2 * place as u64;
                let mut us = service_us * (mood + 0.08 * self.0.normal()).exp() + starts[server];
                if self.0.uniform() < SLOW_SHARE {
                    us += 1_000.0 * self.0.normal().exp();
                }
                if asked == Asked::OneAmongOthers && self.0.uniform() < WAITING_SHARE {
                    us += -WAIT_US * self.0.uniform().ln();
                }
                us += match cost {
                    _ if server == 0 => 0.0,
                    Cost::Each(us) => us,
                    Cost::Tenth(us) if self.0.uniform() < 0.1 => us,
                    Cost::Tenth(_) => 0.0,
                };
                slots[server].push((due_ns, us));
            }
        }
        for server in &mut slots {
            stall(server, &thefts);
        }
        let queries = match asked {
            Asked::TwoInTurn => 2,
            Asked::One | Asked::OneAmongOthers => 1,
        };
        counted(&slots, &thefts, end_ns, queries)
    }

    /// When the host takes the core on which a server would run, for how long, and whether the kernel
    /// counts it.
    fn thefts(&mut self, end_ns: u64) -> Vec<(u64, u64, bool)> {
        let mut thefts = Vec::new();
        let mut at = 0.0;
        loop {
            at += -self.0.uniform().ln() / THEFTS * end_ns as f64;
            if at >= end_ns as f64 {
                return thefts;
            }
            let length = 1e6 + 7e6 * self.0.uniform();
            let is_counted = self.0.uniform() < COUNTED_SHARE;
            thefts.push((at as u64, length as u64, is_counted));
        }
    }
}

/// A request at work or due while the core is away waits until it is back.
fn stall(slots: &mut [(u64, f64)], thefts: &[(u64, u64, bool)]) {
    for (due_ns, us) in slots {
        let end_ns = *due_ns + (*us * 1e3) as u64;
        for (at_ns, length_ns, _) in thefts {
            if *at_ns < end_ns && *due_ns < at_ns + length_ns {
                *us += (at_ns + length_ns - (*due_ns).max(*at_ns)) as f64 / 1e3;
            }
        }
    }
}

/// What the rule of cycles leaves.
fn counted(
    slots: &[Vec<(u64, f64)>; 2],
    thefts: &[(u64, u64, bool)],
    end_ns: u64,
    queries: usize,
) -> Round {
    let dues_ns: Vec<u64> = (0..=CYCLES as u64).map(|cycle| cycle * GAP_NS).collect();
    let medians_ns: Vec<u64> = slots
        .iter()
        .map(|own| {
            let latencies_us: Vec<f64> = own.iter().map(|(_, us)| *us).collect();
            (sample::median(&latencies_us).expect("a round has requests") * 1e3) as u64
        })
        .collect();
    let seen = thefts.iter().filter(|(_, _, is_counted)| *is_counted);
    let disturbances: Vec<Disturbance> = seen
        // The kernel says that something was taken since it was asked last, not when.
        .map(|(at_ns, length_ns, _)| Disturbance {
            from_ns: at_ns / LOOK_NS * LOOK_NS,
            to_ns: ((at_ns + length_ns) / LOOK_NS * LOOK_NS + LOOK_NS).min(end_ns),
            cause: Cause::Host,
            variant: None,
        })
        .collect();
    let validity = Validity::of(&medians_ns, &dues_ns, &disturbances);
    let own = |server: usize| -> Vec<(usize, f64)> {
        let counted = (0..CYCLES).filter(|cycle| validity.counts(server, *cycle));
        counted
            .map(|cycle| (cycle % queries, slots[server][cycle].1))
            .collect()
    };
    let both = (0..CYCLES).filter(|cycle| (0..2).all(|server| validity.counts(server, *cycle)));
    Round {
        own: [own(0), own(1)],
        pairs: both
            .map(|cycle| slots[1][cycle].1 - slots[0][cycle].1)
            .collect(),
    }
}

#[test]
fn no_estimator_claims_a_difference_of_equal_servers_too_often() {
    for asked in [Asked::One, Asked::TwoInTurn] {
        for (score, (_, name)) in scores(400, asked, Cost::Each(0.0)).iter().zip(ESTIMATORS) {
            let claimed = score.claimed;
            assert!(
                (0.01..=0.07).contains(&claimed),
                "{asked:?}, {name}: {claimed}"
            );
        }
    }
}

#[test]
fn what_every_request_pays_is_inside_the_interval_of_each_estimator() {
    for (score, (_, name)) in scores(400, Asked::One, Cost::Each(20.0))
        .iter()
        .zip(ESTIMATORS)
    {
        assert!(score.inside >= 0.92, "{name}: {score:?}");
    }
}

#[test]
fn the_median_finds_what_the_mean_cannot_see_among_slow_requests() {
    let [medians, .., mean] = scores(200, Asked::One, Cost::Each(20.0));
    assert!(medians.higher >= 0.95, "{medians:?}");
    assert!(mean.higher <= 0.5, "{mean:?}");
}
