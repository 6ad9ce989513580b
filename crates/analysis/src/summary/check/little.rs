//! Check of Little's law over the time of allowed sending.

use std::time::Duration;

use model::micros;
use recording::{RoundRecord, float};
use stats::little::{ClosedLoop, little};

use super::{Check, CheckFacts, CheckName, Limits};

/// Minimum number of responses per connection for the law to be meaningful.
const ANSWERS_EACH: u64 = 2;

/// Connections = throughput x mean latency.
///
/// `planned` is the time of allowed sending, or `None` if only a count ended it. The law does not apply in
/// three cases. Failed requests hold connections without a latency. A few responses are not a steady state.
/// Generator threads that end their shares of a count at different times are idle without a stop.
pub(super) fn littles_law(
    connections: u32,
    planned: Option<Duration>,
    complete: &[&RoundRecord],
) -> Option<Check> {
    // The law applies to requests that stay in the system. An idle or failed connection has left it.
    let is_lawful = |round: &RoundRecord| {
        // Slices end by time, and fewer requests than planned may count.
        let by_time = round.slices.is_some()
            || planned.is_some_and(|planned| round.elapsed_us >= micros(planned));
        round.outcomes.is_all_completed() && (by_time || round.generator.threads <= 1)
    };
    // With fewer responses, the beginning and the end dominate.
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
    let busy = |share: f64| share * f64::from(connections);
    let facts = CheckFacts::Connections {
        low: busy(found.low),
        high: busy(found.high),
        connections,
    };
    Some(Limits::new(0.01, 0.05).judge(CheckName::LittlesLaw, figure, facts))
}

fn closed_loop(connections: u32, planned: Option<Duration>, round: &RoundRecord) -> ClosedLoop {
    let latency = round.latency_ns_hdr.histogram();
    let elapsed_s = float(round.elapsed_us) / 1e6;
    let longest_s = latency.max_ns().map_or(0.0, float) / 1e9;
    // The last request left before the end of sending, and its response took at most the longest latency.
    let after_plan_s = planned.map_or(f64::INFINITY, |planned| {
        elapsed_s - float(micros(planned)) / 1e6
    });
    let draining_s = match round.slices {
        // The counted part of a slice ends while the generator still sends requests.
        Some(_) => 0.0,
        None => longest_s.min(after_plan_s).clamp(0.0, elapsed_s),
    };
    let connect = round.connect_ns_hdr.histogram();
    // The first connections were opened before the first send.
    let reopened = connect.len().saturating_sub(u64::from(connections));
    // If no connection was timed, `reopened` is 0 as well.
    let connecting_s = connect.mean_ns().unwrap_or(0.0) / 1e9 * float(reopened);
    // In a pause of the generator no connection sends, so the pause counts for each of them below.
    // With slices, the generator's time covers all variants. Only this share belongs to the variant.
    let own_share = elapsed_s * 1e6 / float(round.loaded_us().max(1));
    ClosedLoop {
        connections,
        sending_s: elapsed_s - draining_s,
        draining_s,
        // Without a response the sum is 0 as well.
        latency_sum_s: latency.mean_ns().unwrap_or(0.0) / 1e9 * float(latency.len()),
        // Between a response and the next send, a connection is idle while the generator works on it. The sum
        // is at most all processor time of the generator, because it works on one connection at a time.
        unseen_s: connecting_s
            + float(micros(round.generator.cpu)) / 1e6 * own_share
            + round.paused_us() / 1e6 * f64::from(connections),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recording::Hdr;
    use recording::sample::SampleRun;
    use stats::Histogram;

    use crate::summary::{CheckName, CheckState, Summary};

    /// The check of a single load. Its four connections received responses with these latencies within
    /// `elapsed_us`.
    fn judged(latencies_us: &[(u64, u64)], elapsed_us: u64) -> (CheckState, f64) {
        let mut recording = SampleRun::load_alone(false);
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
        // 100 ms of 1 ms responses on four connections, and one response that takes 40 ms at the end. Without
        // a bound on the end, 4 x 140 ms of connection time would differ by 20 %.
        let (state, figure) = judged(&[(1_000, 400), (40_000, 1)], 140_000);
        assert_eq!((state, figure < 0.01), (CheckState::Ok, true), "{figure}");
    }

    #[test]
    fn fewer_answers_than_two_for_each_connection_are_not_judged() {
        let mut recording = SampleRun::load_alone(false);
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
        let mut recording = SampleRun::load_alone(false);
        let is_judged = |recording: &recording::Recording| {
            let summary = Summary::of(recording);
            let mut checks = summary.variants[0].checks.iter();
            checks.any(|check| check.name == CheckName::LittlesLaw)
        };
        assert!(is_judged(&recording));
        recording.load.protocol = Some(recording::ProtocolText {
            http: recording::HttpText::Http2,
            tls: recording::TlsText::Off,
            streams: 10,
            client_certificate: false,
            resumption: None,
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
