//! Little's law for a closed loop: connections = throughput x mean latency.
//!
//! The law holds for any closed loop without think time, regardless of the server. If a run breaks it,
//! responses were lost, time was not counted, or connections did not work (Little, "A Proof for the Queuing
//! Formula L = λW", 1961).
//!
//! The law is about a system in steady state, and a load has an end. When sending stops, connections fall
//! idle one after the other while the last responses arrive. So only the time of sending is judged. The part
//! of the latencies that lies in it is not known exactly, but it has bounds. In the time after sending, at
//! least one connection was busy, and at most all of them. In a long round the bounds are as good as one
//! number. In a short round with slow responses they are wide, and the result shows that.

/// One closed loop from its start to its last response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoop {
    /// Number of connections, each with at most one request in flight.
    pub connections: u32,
    /// Time of sending, in seconds.
    pub sending_s: f64,
    /// Time from the last send to the last response, in seconds.
    pub draining_s: f64,
    /// Sum of all latencies, in seconds.
    pub latency_sum_s: f64,
    /// Connection time in seconds that was busy, or may have been, without being in a latency. Examples are
    /// the reopening of connections, work of the generator between a response and the next send, and a
    /// generator that could not run.
    pub unseen_s: f64,
}

/// The busy share of all connection time, as a check of Little's law. It is 1 if the law holds. It is less if
/// connections idled or responses were lost, and more if time was counted twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// Lower bound of the busy share.
    pub low: f64,
    /// Upper bound of the busy share.
    pub high: f64,
}

impl Little {
    /// The distance of 1 from the bounds: the violation of the law that is certain.
    #[must_use]
    pub fn apart(&self) -> f64 {
        (self.low - 1.0).max(1.0 - self.high).max(0.0)
    }
}

/// Checks several loops together, each weighted by its connection time. `None` if the time of sending is 0,
/// or if a figure is not finite.
#[must_use]
pub fn little(loops: &[ClosedLoop]) -> Option<Little> {
    let (mut low_s, mut high_s, mut all_s) = (0.0, 0.0, 0.0);
    for one in loops {
        let connections = f64::from(one.connections);
        // If all connections were busy to the end, the drain took this part of the latencies. If only one was
        // busy, it took the time of one.
        low_s += one.latency_sum_s - connections * one.draining_s;
        high_s += one.latency_sum_s - one.draining_s + one.unseen_s;
        all_s += connections * one.sending_s;
    }
    // The number of busy connections cannot be negative.
    let (low, high) = (low_s.max(0.0) / all_s, high_s / all_s);
    (all_s > 0.0 && low.is_finite() && high.is_finite()).then_some(Little { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 connections on a server with 0.2 ms service time. Each response takes 20 ms, and the last 100 of
    /// them arrive one after the other within 20 ms.
    const LAWFUL: ClosedLoop = ClosedLoop {
        connections: 100,
        sending_s: 1.0,
        draining_s: 0.02,
        latency_sum_s: 100.0 + 1.0,
        unseen_s: 0.0,
    };

    #[test]
    fn a_closed_loop_on_one_server_obeys_the_law() {
        let found = little(&[LAWFUL]).unwrap();
        assert!(found.low < 1.0 && found.high > 1.0, "{found:?}");
        assert!(found.apart() < 1e-12);
    }

    #[test]
    fn lost_answers_break_the_law() {
        // All responses of the server arrived, but 5 % of the connections hung all the time.
        let lost = ClosedLoop {
            latency_sum_s: LAWFUL.latency_sum_s * 0.95,
            ..LAWFUL
        };
        let apart = little(&[lost]).unwrap().apart();
        assert!((0.03..0.05).contains(&apart), "{apart}");
        assert!(little(&[lost, LAWFUL]).unwrap().apart() < apart);
    }

    #[test]
    fn no_connections_are_fewer_than_none() {
        // One response of 1 s among many short ones. The time after sending may contain all of the latencies.
        let slow_end = ClosedLoop {
            connections: 50,
            sending_s: 0.1,
            draining_s: 1.0,
            latency_sum_s: 5.0 + 1.0,
            unseen_s: 0.0,
        };
        let found = little(&[slow_end]).unwrap();
        assert!(found.low.abs() < 1e-12 && found.high >= 1.0, "{found:?}");
    }

    #[test]
    fn time_counted_twice_breaks_the_law() {
        let twice = ClosedLoop {
            latency_sum_s: LAWFUL.latency_sum_s * 1.1,
            ..LAWFUL
        };
        assert!(little(&[twice]).unwrap().apart() > 0.05);
    }

    #[test]
    fn connections_that_idle_at_the_end_do_not_break_the_law() {
        // Three of four connections end at once. The last response takes another 30 ms of 100 ms.
        let short = ClosedLoop {
            connections: 4,
            sending_s: 0.1,
            draining_s: 0.03,
            latency_sum_s: 4.0 * 0.1 + 0.03,
            unseen_s: 0.0,
        };
        assert!(little(&[short]).unwrap().apart() < 1e-12);
    }

    #[test]
    fn time_that_was_not_seen_may_have_been_busy() {
        let lost = ClosedLoop {
            latency_sum_s: LAWFUL.latency_sum_s - 8.0,
            ..LAWFUL
        };
        let explained = ClosedLoop {
            unseen_s: 8.0,
            ..lost
        };
        assert!(little(&[lost]).unwrap().apart() > 0.05);
        assert!(little(&[explained]).unwrap().apart() < 1e-12);
    }

    #[test]
    fn nothing_to_check_without_time_or_numbers() {
        let with = |sending_s, latency_sum_s| ClosedLoop {
            sending_s,
            latency_sum_s,
            ..LAWFUL
        };
        assert_eq!(little(&[]), None);
        assert_eq!(little(&[with(0.0, 1.0)]), None);
        assert_eq!(little(&[with(1.0, f64::NAN)]), None);
    }
}
