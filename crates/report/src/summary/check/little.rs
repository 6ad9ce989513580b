//! Little's law, judged on the time in which sending was allowed.

use std::time::Duration;

use model::micros;
use stats::little::{ClosedLoop, little};

use super::{Check, CheckName, Limits};
use crate::digits;
use crate::float::float;
use crate::recording::RoundRecord;

/// Answers of each connection without which the law says nothing.
const ANSWERS_EACH: u64 = 2;

/// Connections = throughput x mean latency.
///
/// `planned` is how long sending was allowed; none when only a count ended it. Failed requests hold
/// connections without a latency, and a few answers are no steady state. Generator threads that end their
/// shares of a count at different times idle without a stop. Then the law says nothing.
pub(super) fn littles_law(
    connections: u32,
    planned: Option<Duration>,
    complete: &[&RoundRecord],
) -> Option<Check> {
    // The law holds for what stays in the system; a connection that idles or fails has left it.
    let is_lawful = |round: &RoundRecord| {
        // Slices end by time, and fewer than planned may count.
        let by_time = round.slices.is_some()
            || planned.is_some_and(|planned| round.elapsed_us >= micros(planned));
        round.outcomes.is_all_completed() && (by_time || round.generator.threads <= 1)
    };
    // With fewer, the beginning and the end are all there is.
    let has_enough =
        |round: &RoundRecord| round.outcomes.completed() >= ANSWERS_EACH * u64::from(connections);
    if !complete
        .iter()
        .all(|round| is_lawful(round) && has_enough(round))
    {
        return None;
    }
    let loops: Vec<ClosedLoop> = complete
        .iter()
        .map(|round| closed_loop(connections, planned, round))
        .collect();
    let found = little(&loops)?;
    let figure = found.apart();
    let busy = |share: f64| {
        let busy = share * f64::from(connections);
        // An error of half a percent keeps the digits that limits of 1 % and 5 % are read by.
        digits::value(busy, Some(busy * 0.005))
    };
    let (low, high) = (busy(found.low), busy(found.high));
    let range = if low == high {
        low
    } else {
        format!("{low} to {high}")
    };
    let text = format!(
        "requests/s x mean latency = {range}, connections = {connections}, a difference of {}",
        digits::percent(figure)
    );
    Some(Limits::new(0.01, 0.05).judge(CheckName::LittlesLaw, figure, text))
}

fn closed_loop(connections: u32, planned: Option<Duration>, round: &RoundRecord) -> ClosedLoop {
    let latency = round.latency_ns_hdr.histogram();
    let elapsed_s = float(round.elapsed_us) / 1e6;
    let longest_s = latency.max_ns().map_or(0.0, float) / 1e9;
    // The last answer was sent for before the end of sending and took no longer than the longest.
    let after_plan_s = planned.map_or(f64::INFINITY, |planned| {
        elapsed_s - float(micros(planned)) / 1e6
    });
    let draining_s = match round.slices {
        // What counts of a slice ends while requests are still sent.
        Some(_) => 0.0,
        None => longest_s.min(after_plan_s).clamp(0.0, elapsed_s),
    };
    let connect = round.connect_ns_hdr.histogram();
    // The first connections were opened before the first send.
    let reopened = connect.len().saturating_sub(u64::from(connections));
    // Where no connection was timed, `reopened` is 0 as well.
    let connecting_s = connect.mean_ns().unwrap_or(0.0) / 1e9 * float(reopened);
    // In a pause of the generator no connection sends, so below it counts for each of them.
    let lengths = round.generator.pauses.iter().map(|pause| pause.length);
    let paused_us: u64 = lengths.map(micros).sum();
    // In slices the generator's time is that of all variants, and the rest of it was for the others.
    let own_share = elapsed_s * 1e6 / float(round.loaded_us().max(1));
    ClosedLoop {
        connections,
        sending_s: elapsed_s - draining_s,
        draining_s,
        // Without an answer the sum is 0 as well.
        latency_sum_s: latency.mean_ns().unwrap_or(0.0) / 1e9 * float(latency.len()),
        // Between an answer and the next send a connection idles for as long as the generator works
        // on it: at most all of the generator's processor time, one connection a moment.
        unseen_s: connecting_s
            + float(micros(round.generator.cpu)) / 1e6 * own_share
            + float(paused_us) / 1e6 * f64::from(connections),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stats::Histogram;

    use crate::Hdr;
    use crate::sample::Sample;
    use crate::summary::{CheckName, CheckState, Summary};

    /// The check of a single load in which four connections got these latencies within
    /// `elapsed_us`.
    fn judged(latencies_us: &[(u64, u64)], elapsed_us: u64) -> (CheckState, f64) {
        let mut recording = Sample::load_alone(false);
        let mut latency = Histogram::new();
        for (latency_us, count) in latencies_us {
            latency.record_n_ns(latency_us * 1_000, *count);
        }
        let model::Load::Closed { connections, stop } = &mut recording.load.model else {
            unreachable!("the sample is a closed loop")
        };
        (*connections, stop.duration) = (4, Some(Duration::from_millis(100)));
        let round = &mut recording.rounds[0];
        round.latency_ns_hdr = Hdr::of(&latency);
        round.elapsed_us = elapsed_us;
        round.generator.cpu = Duration::from_millis(1);
        round.outcomes.passed = latency.len();
        round.planned = latency.len();
        let summary = Summary::of(&recording);
        let mut checks = summary.variants[0].checks.iter();
        let check = checks
            .find(|check| check.name == CheckName::LittlesLaw)
            .unwrap();
        (check.state, check.figure)
    }

    #[test]
    fn a_slow_last_answer_of_a_short_round_does_not_break_the_law() {
        // 100 ms of 1 ms answers on four connections, and one that takes 40 ms at the end: without
        // a bound on the end, 4 x 140 ms of connection time would be 20 % apart.
        let (state, figure) = judged(&[(1_000, 400), (40_000, 1)], 140_000);
        assert_eq!((state, figure < 0.01), (CheckState::Ok, true), "{figure}");
    }

    #[test]
    fn fewer_answers_than_two_for_each_connection_are_not_judged() {
        let mut recording = Sample::load_alone(false);
        let round = &mut recording.rounds[0];
        let mut latency = Histogram::new();
        latency.record_n_ns(100_000, 10);
        round.latency_ns_hdr = Hdr::of(&latency);
        (round.planned, round.elapsed_us) = (10, 1_000);
        round.outcomes.passed = 10;
        let summary = Summary::of(&recording);
        let mut checks = summary.variants[0].checks.iter();
        assert!(!checks.any(|check| check.name == CheckName::LittlesLaw));
    }

    #[test]
    fn connections_that_idle_before_the_end_break_the_law() {
        let (state, figure) = judged(&[(1_000, 360)], 101_000);
        assert_eq!(state, CheckState::Failed, "{figure}");
        assert!((0.07..0.11).contains(&figure), "{figure}");
    }

    #[test]
    fn several_streams_of_a_connection_are_not_judged() {
        let mut recording = Sample::load_alone(false);
        let is_judged = |recording: &crate::Recording| {
            let summary = Summary::of(recording);
            let mut checks = summary.variants[0].checks.iter();
            checks.any(|check| check.name == CheckName::LittlesLaw)
        };
        assert!(is_judged(&recording));
        recording.load.protocol = Some(crate::recording::ProtocolText {
            http: crate::recording::HttpText::Http2,
            tls: crate::recording::TlsText::Off,
            streams: 10,
        });
        recording.variants[0].protocol = None;
        assert!(!is_judged(&recording));
    }

    #[test]
    fn latency_counted_twice_breaks_the_law() {
        let (state, figure) = judged(&[(2_000, 400)], 101_000);
        assert_eq!(state, CheckState::Failed, "{figure}");
    }
}
