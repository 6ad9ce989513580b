//! Little's law for a closed loop: connections = throughput x mean latency.
//!
//! It holds for any closed loop without think time whatever the server does, so a run that breaks
//! it was measured wrongly: answers lost, time not counted, or connections that did not work
//! (Little, "A Proof for the Queuing Formula L = λW", 1961).

/// How well a closed loop obeys Little's law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// Requests under way on average: throughput x mean latency.
    pub busy: f64,
    /// `busy` divided by the connections: 1 when the law holds, less when connections idled or
    /// answers were lost, more when latency was counted twice.
    pub ratio: f64,
    /// How far from 1 the ratio may be.
    pub tolerance: f64,
}

impl Little {
    /// Whether the ratio is within the tolerance.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.ratio - 1.0).abs() <= self.tolerance
    }
}

/// Checks throughput (answers per second) and mean latency (seconds) against the number of
/// connections. A `tolerance` of 0.01 accepts a ratio of 0.99 to 1.01. None without connections,
/// or when a figure is not finite.
#[must_use]
pub fn little(
    throughput_per_second: f64,
    latency_s_mean: f64,
    connections: u32,
    tolerance: f64,
) -> Option<Little> {
    let busy = throughput_per_second * latency_s_mean;
    (connections > 0 && busy.is_finite()).then(|| Little {
        busy,
        ratio: busy / f64::from(connections),
        tolerance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_on_one_server_obeys_the_law() {
        // 100 connections on a server with 0.2 ms service time: 5,000 answers/s, 20 ms each.
        let check = little(5_000.0, 0.020, 100, 0.01).unwrap();
        assert!((check.ratio - 1.0).abs() < 1e-12);
        assert!(check.holds());
    }

    #[test]
    fn lost_answers_break_the_law() {
        // As many answers as the server gave, but 2 % of the connections hung all the time.
        let check = little(5_000.0, 0.0196, 100, 0.01).unwrap();
        assert!((check.ratio - 0.98).abs() < 1e-12);
        assert!(!check.holds());
    }

    #[test]
    fn nothing_to_check_without_connections_or_numbers() {
        assert_eq!(little(1.0, 1.0, 0, 0.01), None);
        assert_eq!(little(f64::NAN, 1.0, 1, 0.01), None);
    }
}
