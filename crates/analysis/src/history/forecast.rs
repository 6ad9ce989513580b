//! Forecast for a planned run from earlier runs: its duration and the width of its intervals.

use std::collections::BTreeSet;
use std::fmt;

use model::{HalfWidth, Metric, Order, Unit, Until};
use recording::describe::plural;
use recording::{METHOD, digits};
use stats::{sample, width};

use super::Entry;
use crate::summary::quantity::minutes;

/// Number of latest runs that a forecast uses. Older runs are ignored, because machines and labs change.
const RUNS_MAX: usize = 20;

/// A planned run.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The lab's name.
    pub lab: &'a str,
    /// The load in the form of a history. See [`load_of`](super::load_of).
    pub load: &'a str,
    /// The machine in the form of a history. See [`machine_of`](super::machine_of).
    pub machine: &'a str,
    /// Order of the variants within a round.
    pub order: Order,
    /// Number of rounds. With `until`, the rounds of the pilot.
    pub rounds: usize,
    /// Rule that continues until intervals are narrow.
    pub until: Option<&'a Until>,
    /// True if rounds continue until the gates are decided.
    pub is_for_gates: bool,
}

/// Forecast for a planned run from earlier runs of the same lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The lab's name.
    pub lab: String,
    /// Number of earlier runs.
    pub runs: usize,
    /// True if the earlier runs are from this machine. Other machines may be faster or noisier.
    pub is_same_machine: bool,
    /// Expected number of rounds.
    pub rounds: usize,
    /// Expected duration of all rounds, in seconds. Absent if the history does not contain durations.
    pub seconds: Option<f64>,
    /// The metric of the overhead.
    pub metric: Metric,
    /// Expected half of the width of the overhead's interval after `rounds` rounds, in the unit of the
    /// metric. For requests per second, it is a share of the baseline.
    pub half_width: f64,
}

impl Forecast {
    /// Forecasts from the latest runs of the lab with the same load, order and method. Runs on this machine
    /// are preferred. `None` if the history has no such run.
    #[must_use]
    pub fn of(history: &[Entry], plan: Plan<'_>) -> Option<Forecast> {
        let (entries, is_same_machine) = alike(history, plan);
        // If the lab's load was changed, older entries may have another metric. They do not help to forecast
        // the latest one.
        let metric = entries.last()?.metric;
        let entries: Vec<&Entry> = entries
            .into_iter()
            .filter(|it| it.metric == metric)
            .collect();
        let rounds = match plan.until {
            Some(until) => rounds_until(until, metric, &entries).unwrap_or(plan.rounds),
            None => plan.rounds,
        };
        let rounds = rounds.max(plan.rounds);
        let widths: Vec<f64> = entries
            .iter()
            .filter_map(|it| width::half_width_expected(&it.overhead.interval(), it.rounds, rounds))
            .collect();
        let took: Vec<f64> = entries.iter().filter_map(|it| it.round_s).collect();
        let runs: BTreeSet<&str> = entries.iter().map(|it| it.sha256.as_str()).collect();
        Some(Forecast {
            lab: plan.lab.to_owned(),
            runs: runs.len(),
            is_same_machine,
            rounds,
            #[expect(
                clippy::cast_precision_loss,
                reason = "a run has far fewer rounds than 2^53"
            )]
            seconds: sample::median(&took).map(|seconds| seconds * rounds as f64),
            metric,
            half_width: sample::median(&widths)?,
        })
    }
}

/// The entries of the latest runs with the same lab, load, order and method. If some are of this machine,
/// only these. The second value is true if they are.
pub(super) fn alike<'h>(history: &'h [Entry], plan: Plan<'_>) -> (Vec<&'h Entry>, bool) {
    let is_like = |entry: &&Entry| {
        // Entries of older versions do not contain the load.
        entry.lab == plan.lab
            && (entry.load.is_empty() || entry.load == plan.load)
            && entry.order == plan.order
            && entry.method == METHOD
    };
    let alike: Vec<&Entry> = history.iter().filter(is_like).collect();
    let here = alike.iter().copied();
    let here: Vec<&Entry> = here.filter(|it| it.machine == plan.machine).collect();
    let is_same_machine = !here.is_empty();
    let entries = latest(if is_same_machine { here } else { alike });
    (entries, is_same_machine)
}

/// The entries of the latest runs. A history lists entries in the order of their addition.
fn latest(entries: Vec<&Entry>) -> Vec<&Entry> {
    let mut runs: BTreeSet<&str> = BTreeSet::new();
    let mut kept: Vec<&Entry> = Vec::new();
    for entry in entries.into_iter().rev() {
        runs.insert(&entry.sha256);
        if runs.len() > RUNS_MAX {
            break;
        }
        kept.push(entry);
    }
    kept.reverse();
    kept
}

/// The rounds until intervals are as narrow as requested. `None` if the history has another metric.
fn rounds_until(until: &Until, metric: Metric, entries: &[&Entry]) -> Option<usize> {
    let wanted = |entry: &Entry| match until.half_width {
        HalfWidth::Amount(amount) if metric != Metric::Requests => Some(amount),
        // A history stores overheads of requests per second as shares.
        HalfWidth::Share(share) if metric == Metric::Requests => Some(share),
        HalfWidth::Share(share) => Some(share * (entry.value - entry.overhead.value)),
        HalfWidth::Amount(_) => None,
    };
    let mut rounds: Vec<usize> = entries
        .iter()
        .filter(|_| until.metric == metric)
        .filter_map(|it| width::rounds_expected(&it.overhead.interval(), it.rounds, wanted(it)?))
        .collect();
    rounds.sort_unstable();
    rounds.get(rounds.len() / 2).copied()
}

/// A predicted amount with two digits: `0.0040 ms`.
pub(super) fn about(unit: Unit, value: f64) -> String {
    let shown = unit.shown(value);
    let digits = digits::value(shown, Some(shown * 0.2));
    format!("{digits} {}", unit.sign())
}

impl fmt::Display for Forecast {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = if self.is_same_machine {
            "on this machine"
        } else {
            "on other machines"
        };
        let runs = plural(self.runs as u64, "earlier run");
        let rounds = plural(self.rounds as u64, "round");
        let took = self.seconds.map_or_else(String::new, |seconds| {
            format!(" takes about {} without builds, and", minutes(seconds))
        });
        let half_width = match self.metric {
            Metric::Requests => format!("{} of the rate", digits::percent(self.half_width)),
            metric => about(metric.unit(), self.half_width),
        };
        write!(
            formatter,
            "by {runs} of `{}` {machine}, a run of {rounds}{took} measures its overhead to about ±{half_width} ({})",
            self.lab,
            self.metric.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::entry;

    fn plan() -> Plan<'static> {
        Plan {
            lab: "api",
            load: "100 requests/s",
            machine: "here",
            order: Order::SideBySide,
            rounds: 8,
            until: None,
            is_for_gates: false,
        }
    }

    fn history() -> Vec<Entry> {
        let of = |number: usize| Entry {
            lab: "api".to_owned(),
            machine: "here".to_owned(),
            order: Order::SideBySide,
            method: METHOD,
            method_of_figures: None,
            rounds: 8,
            round_s: Some(6.0),
            sha256: format!("{number}"),
            ..entry(number, 30.0)
        };
        (0..30).map(of).collect()
    }

    #[test]
    fn earlier_runs_say_how_long_it_takes_and_how_narrow_it_gets() {
        let found = Forecast::of(&history(), plan()).unwrap();
        assert_eq!((found.runs, found.rounds), (RUNS_MAX, 8));
        assert_eq!(found.seconds, Some(48.0));
        assert!(
            (found.half_width - 4.0).abs() < 1e-9,
            "{}",
            found.half_width
        );
        assert_eq!(
            found.to_string(),
            "by 20 earlier runs of `api` on this machine, a run of 8 rounds takes about 48 s without \
             builds, and measures its overhead to about ±0.0040 ms (typical)"
        );
        let longer = Plan {
            rounds: 32,
            ..plan()
        };
        let found = Forecast::of(&history(), longer).unwrap();
        assert!(
            (1.4..2.0).contains(&found.half_width),
            "{}",
            found.half_width
        );
    }

    #[test]
    fn a_wish_for_a_narrow_interval_says_how_many_rounds() {
        for (wish, least, most) in [
            ("typical ±2us", 20, 40),
            ("typical ±10us", 8, 8),
            // The history does not contain this metric.
            ("p99 ±1us", 8, 8),
        ] {
            let until: Until = wish.parse().unwrap();
            let plan = Plan {
                until: Some(&until),
                ..plan()
            };
            let found = Forecast::of(&history(), plan).unwrap().rounds;
            assert!((least..=most).contains(&found), "{wish}: {found}");
        }
    }

    #[test]
    fn runs_of_another_lab_order_or_method_say_nothing_and_other_machines_little() {
        let history = history();
        let elsewhere = Plan {
            machine: "there",
            ..plan()
        };
        assert!(!Forecast::of(&history, elsewhere).unwrap().is_same_machine);
        for other in [
            Plan {
                lab: "other",
                ..plan()
            },
            Plan {
                order: Order::InTurn,
                ..plan()
            },
            Plan {
                load: "400 requests/s",
                ..plan()
            },
        ] {
            assert_eq!(Forecast::of(&history, other), None);
        }
        let old: Vec<Entry> = history
            .into_iter()
            .map(|it| Entry { method: 1, ..it })
            .collect();
        assert_eq!(Forecast::of(&old, plan()), None);
    }
}
