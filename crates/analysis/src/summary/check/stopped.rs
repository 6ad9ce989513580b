//! Checks that the target responded until the end of the load.
//!
//! A share of failed requests does not show a crash, because a closed loop waits longer and longer after
//! refused connections. So this check uses the time without a response.

use model::{Load, micros};
use recording::{RoundRecord, float};

use super::{Check, CheckFacts, CheckName, Limits, ratio};

/// A target has stopped if it sent no response for more than this share of the load, up to its end.
const SILENT_SHARE: f64 = 0.1;

/// A target has stopped if it sent no response for more than this time, up to the end of the load.
const SILENT_US: u64 = 1_000_000;

/// Minimum number of requests of an open loop that must have failed since the last response.
const FAILED_LEAST: u64 = 3;

/// The time after the last response of a round. Every request in it failed.
#[derive(Clone, Copy, PartialEq)]
struct Silence {
    /// The share of the round that it took, 0 to 1.
    share: f64,
    round: u32,
    from_us: u64,
    length_us: u64,
    failed: u64,
}

/// Checks if all requests failed from some time on until the load ended. `None` if they did not, or if a
/// round has no windows of time.
pub(super) fn stopped(load: &Load, complete: &[&RoundRecord]) -> Option<Check> {
    let has_windows = |round: &&RoundRecord| round.slices.is_none() && round.windows.width_us > 0;
    if !complete.iter().all(has_windows) {
        return None;
    }
    let found = complete.iter().filter_map(|round| silence(load, round));
    let longest = found.reduce(|one, other| if other.share > one.share { other } else { one });
    let silence = longest?;
    let facts = CheckFacts::Silence {
        round: (complete.len() > 1).then_some(silence.round),
        from_us: silence.from_us,
        length_us: silence.length_us,
        failed: silence.failed,
    };
    Some(Limits::new(0.0, 0.0).judge(CheckName::StoppedAnswering, silence.share, facts))
}

/// Returns the time up to the end of sending with failed requests only. `None` if it is too short to mean
/// that the target had stopped.
fn silence(load: &Load, round: &RoundRecord) -> Option<Silence> {
    let windows = &round.windows;
    // A target that never responded did not stop. The check of failures covers this case.
    let last = windows.completed.iter().rposition(|count| *count > 0)?;
    // The window of a response is the only record of its time.
    let from_us = (last as u64 + 1) * windows.width_us;
    let sending_us = sending_us(load).map_or(round.elapsed_us, |it| it.min(round.elapsed_us));
    let length_us = sending_us.saturating_sub(from_us);
    let later: u64 = windows.errors.iter().skip(last + 1).sum();
    let (failed, least) = match load {
        // In a closed loop all connections must fail. One request that hangs while all other requests end by
        // count does not mean that the target stopped.
        Load::Closed { connections, .. } => (later, u64::from(*connections)),
        Load::Open { .. } => (later + round.outcomes.missed, FAILED_LEAST),
    };
    let share = ratio(float(length_us), float(sending_us));
    let is_long = share > SILENT_SHARE || length_us > SILENT_US;
    let has_stopped = is_long && length_us > 0 && later > 0 && failed >= least.min(round.planned);
    has_stopped.then_some(Silence {
        share,
        round: round.round,
        from_us,
        length_us,
        failed,
    })
}

/// Returns the planned time of sending in microseconds. `None` if only a count ends the load.
fn sending_us(load: &Load) -> Option<u64> {
    match load {
        Load::Closed { stop, .. } => stop.duration.map(micros),
        Load::Open { phases, .. } => {
            // At the end of a plan there may be no due request for a time, so no response is missing then.
            let is_due = |phase: &&model::Phase| {
                phase.from.per_second() > 0.0 || phase.to.per_second() > 0.0
            };
            let idle = phases
                .iter()
                .rev()
                .take_while(|phase| !is_due(phase))
                .count();
            let due = &phases[..phases.len() - idle];
            Some(due.iter().fold(0, |sum: u64, phase| {
                sum.saturating_add(micros(phase.duration))
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recording::sample::SampleRun;
    use recording::{Recording, Windows};

    use crate::Summary;
    use crate::gate::{Ruling, Undecided};
    use crate::summary::{Check, CheckFacts, CheckName, CheckState};

    /// A closed loop of four connections over 3 s, with these responses and errors in each tenth of a second.
    fn load(answers: &[u64], errors: &[u64]) -> Recording {
        let mut recording = SampleRun::load_alone(false);
        let model::Load::Closed { connections, stop } = &mut recording.load.model else {
            unreachable!("the sample is a closed loop")
        };
        (*connections, stop.duration, stop.requests) = (4, Some(Duration::from_secs(3)), None);
        let round = &mut recording.rounds[0];
        round.elapsed_us = 3_000_000;
        round.windows = Windows {
            width_us: 100_000,
            completed: answers.to_vec(),
            errors: errors.to_vec(),
            latency_sum_ns: answers.iter().map(|count| count * 100_000).collect(),
        };
        let passed: u64 = answers.iter().sum();
        round.statuses = [(200, passed)].into();
        round.outcomes.passed = passed;
        round.outcomes.failed.connect = errors.iter().sum();
        round.planned = round.outcomes.total();
        recording
    }

    /// Responses in the first `tenths` tenths of a second, and `errors` errors in each later one.
    fn until(tenths: usize, errors: u64) -> Recording {
        let at = |before: u64, after: u64| -> Vec<u64> {
            (0..30)
                .map(|at| if at < tenths { before } else { after })
                .collect()
        };
        load(&at(9_000, 0), &at(0, errors))
    }

    fn check(recording: &Recording) -> Option<Check> {
        let summary = Summary::of(recording);
        let checks = summary.variants[0].checks.iter();
        let mut checks = checks.filter(|check| check.name == CheckName::StoppedAnswering);
        checks.next().cloned()
    }

    #[test]
    fn a_crash_is_seen_although_few_requests_failed() {
        let crashed = until(8, 4);
        let found = check(&crashed).unwrap();
        assert_eq!(found.state, CheckState::Failed, "{found:?}");
        assert!((found.figure - 2.2 / 3.0).abs() < 1e-9, "{}", found.figure);
        let facts = CheckFacts::Silence {
            round: None,
            from_us: 800_000,
            length_us: 2_200_000,
            failed: 88,
        };
        assert_eq!(found.facts, facts);
        let gates = ["failures value < 5%", "requests/s value > 10/s"];
        let gates = gates.map(|gate| gate.parse().unwrap());
        let summary = Summary::of(&crashed).judged(&gates, Undecided::Fails);
        assert!(!summary.allows_failures());
        assert_eq!(summary.gates[1].ruling, Ruling::Undecided);
    }

    #[test]
    fn a_target_that_answers_again_has_not_stopped() {
        let mut answers = vec![9_000; 10];
        answers.extend([0; 19]);
        answers.push(9_000);
        let errors: Vec<u64> = answers.iter().map(|count| u64::from(*count == 0)).collect();
        assert_eq!(check(&load(&answers, &errors)), None);
        assert_eq!(check(&until(30, 0)), None);
    }

    #[test]
    fn the_end_of_a_load_is_no_silence() {
        // Two of thirty windows are less than a tenth of the load.
        assert_eq!(check(&until(28, 4)), None);
        // One request of four connections hangs, and its timeout comes after the plan.
        let mut hung = load(&[9_000; 30], &[0; 30]);
        let round = &mut hung.rounds[0];
        round.elapsed_us = 8_000_000;
        round.windows.completed.resize(80, 0);
        round.windows.errors.resize(80, 0);
        round.windows.latency_sum_ns.resize(80, 0);
        round.windows.errors[79] = 1;
        round.outcomes.failed.timeout = 1;
        round.planned += 1;
        assert_eq!(check(&hung), None);
    }
}
