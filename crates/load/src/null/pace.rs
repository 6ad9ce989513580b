//! The time at which a response leaves, decided when its request arrives.

use super::behavior::{Behavior, Pace};
use super::draw::{Jitter, Slow};
use crate::clock::to_ns;

/// Converts arrival times into response times.
pub(super) struct Timetable {
    pace: Pace,
    jitter: Jitter,
    slow: Slow,
    seed: u64,
    /// Length and begin of the stall, from the first request.
    stall: Option<(u64, u64)>,
    first_ns: Option<u64>,
    /// The time at which the single server completes all earlier requests.
    free_ns: u64,
    index: u64,
}

impl Timetable {
    pub(super) fn new(behavior: &Behavior) -> Timetable {
        Timetable {
            pace: behavior.pace.clone(),
            jitter: behavior.jitter,
            slow: behavior.slow,
            seed: behavior.seed,
            stall: behavior
                .stall
                .map(|stall| (to_ns(stall.length), to_ns(stall.after))),
            first_ns: None,
            free_ns: 0,
            index: 0,
        }
    }

    /// Returns the time of the response to a request that arrives now. Arrivals only go forward.
    pub(super) fn answer_ns(&mut self, arrived_ns: u64) -> u64 {
        // The stall counts from the first request, so that it meets a load at any start time.
        let first_ns = *self.first_ns.get_or_insert(arrived_ns);
        let index = self.index;
        self.index += 1;
        let stall = self
            .stall
            .map(|(length_ns, after_ns)| (first_ns.saturating_add(after_ns), length_ns));
        let time_ns = match &self.pace {
            Pace::Service(time) | Pace::Delay(time) => to_ns(*time),
            Pace::Mix(mix) => mix.delay_ns(self.seed, index),
        };
        let time_ns = self.jitter.times(time_ns, self.seed, index);
        let time_ns = time_ns.saturating_add(self.slow.surcharge_ns(self.seed, index));
        match &self.pace {
            Pace::Service(_) => {
                let begin_ns = arrived_ns.max(self.free_ns);
                self.free_ns = worked(begin_ns, time_ns, stall);
                self.free_ns
            }
            Pace::Delay(_) | Pace::Mix(_) => awake(arrived_ns.saturating_add(time_ns), stall),
        }
    }
}

/// Returns the end of work that begins at `begin_ns`. Work stops during the stall.
fn worked(begin_ns: u64, work_ns: u64, stall: Option<(u64, u64)>) -> u64 {
    let end_ns = begin_ns.saturating_add(work_ns);
    match stall {
        // Work under way when the stall begins is finished after it.
        Some((from_ns, length_ns)) if end_ns > from_ns && begin_ns < from_ns => {
            end_ns.saturating_add(length_ns)
        }
        Some((from_ns, length_ns))
            if (from_ns..from_ns.saturating_add(length_ns)).contains(&begin_ns) =>
        {
            from_ns.saturating_add(length_ns).saturating_add(work_ns)
        }
        _ => end_ns,
    }
}

/// Returns the next time at which the server is not stalled.
fn awake(at_ns: u64, stall: Option<(u64, u64)>) -> u64 {
    match stall {
        Some((from_ns, length_ns))
            if (from_ns..from_ns.saturating_add(length_ns)).contains(&at_ns) =>
        {
            from_ns.saturating_add(length_ns)
        }
        _ => at_ns,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::behavior::Stall;
    use super::*;

    const MS: u64 = 1_000_000;

    fn timetable(pace: Pace, stall: Option<(u64, u64)>) -> Timetable {
        Timetable::new(&Behavior {
            pace,
            stall: stall.map(|(length_ms, after_ms)| Stall {
                length: Duration::from_millis(length_ms),
                after: Duration::from_millis(after_ms),
            }),
            ..Behavior::default()
        })
    }

    #[test]
    fn delayed_answers_do_not_wait_for_each_other() {
        let mut table = timetable(Pace::Delay(Duration::from_millis(2)), None);
        assert_eq!(table.answer_ns(10 * MS), 12 * MS);
        assert_eq!(table.answer_ns(10 * MS), 12 * MS);
    }

    /// At 100/s, 40 requests of 400 ms are under way at once, and no request waits for another.
    #[test]
    fn hundreds_of_answers_may_be_under_way_at_once() {
        for (delay_us, gap_ns) in [(400_000, 10 * MS), (400_000, MS), (100, 10_000)] {
            let mut table = timetable(Pace::Delay(Duration::from_micros(delay_us)), None);
            for slot in 0..1_000 {
                let arrived_ns = slot * gap_ns;
                assert_eq!(table.answer_ns(arrived_ns), arrived_ns + delay_us * 1_000);
            }
        }
    }

    #[test]
    fn jitter_and_slow_requests_change_the_time_of_an_answer() {
        let behavior = Behavior {
            pace: Pace::Delay(Duration::from_millis(10)),
            jitter: Jitter::of_variation(0.2).unwrap(),
            slow: Slow::new(0.2, Duration::from_millis(100)).unwrap(),
            ..Behavior::default()
        };
        let mut table = Timetable::new(&behavior);
        let delays: Vec<u64> = (0..10_000)
            .map(|slot| table.answer_ns(slot * MS) - slot * MS)
            .collect();
        let (slow, fast): (Vec<u64>, Vec<u64>) = delays.iter().partition(|ns| **ns > 100 * MS);
        // 2,000 expected, with a standard deviation of 40.
        assert!((1_850..2_150).contains(&slow.len()), "{}", slow.len());
        let mean_ms = |of: &[u64]| of.iter().sum::<u64>() as f64 / of.len() as f64 / MS as f64;
        // Standard errors of 0.022 and 0.045 ms. Jitter applies to the delay, and not to the addition.
        assert!((mean_ms(&fast) - 10.0).abs() < 0.1, "{}", mean_ms(&fast));
        assert!((mean_ms(&slow) - 110.0).abs() < 0.2, "{}", mean_ms(&slow));
    }

    #[test]
    fn a_jittery_single_server_is_a_queue_still() {
        let behavior = Behavior {
            pace: Pace::Service(Duration::from_millis(2)),
            jitter: Jitter::of_variation(0.2).unwrap(),
            ..Behavior::default()
        };
        let mut table = Timetable::new(&behavior);
        let ends: Vec<u64> = (0..10_000).map(|_| table.answer_ns(0)).collect();
        assert!(ends.is_sorted());
        // 10,000 times 2 ms. The standard error of the sum is 0.2 %.
        let total_ms = ends.last().copied().unwrap() as f64 / MS as f64;
        assert!((total_ms / 20_000.0 - 1.0).abs() < 0.01, "{total_ms}");
    }

    #[test]
    fn a_single_server_works_on_one_request_at_a_time() {
        let mut table = timetable(Pace::Service(Duration::from_millis(2)), None);
        assert_eq!(table.answer_ns(10 * MS), 12 * MS);
        assert_eq!(table.answer_ns(10 * MS), 14 * MS);
        assert_eq!(table.answer_ns(20 * MS), 22 * MS);
    }

    #[test]
    fn nothing_is_answered_or_worked_on_during_a_stall() {
        let mut delayed = timetable(Pace::Delay(Duration::from_millis(2)), Some((100, 10)));
        assert_eq!(delayed.answer_ns(0), 2 * MS);
        assert_eq!(delayed.answer_ns(9 * MS), 110 * MS);
        assert_eq!(delayed.answer_ns(50 * MS), 110 * MS);
        assert_eq!(delayed.answer_ns(109 * MS), 111 * MS);
        let mut served = timetable(Pace::Service(Duration::from_millis(2)), Some((100, 10)));
        assert_eq!(served.answer_ns(0), 2 * MS);
        assert_eq!(
            served.answer_ns(9 * MS),
            111 * MS,
            "half done, then stalled"
        );
        assert_eq!(served.answer_ns(50 * MS), 113 * MS);
        assert_eq!(served.answer_ns(200 * MS), 202 * MS);
    }

    /// Quantile q of the latency is s + max(0, S - (1 - q) T (1 - R s)).
    #[test]
    fn the_stall_formula_holds_on_the_timetable() {
        let (rate, service_s, run_s, stall_s) = (1000.0, 0.0002, 30.0, 1.0);
        let mut table = timetable(
            Pace::Service(Duration::from_micros(200)),
            Some((1000, 10_000)),
        );
        let mut latencies: Vec<u64> = (0..30_000)
            .map(|slot| table.answer_ns(slot * MS) - slot * MS)
            .collect();
        latencies.sort_unstable();
        for (quantile, index) in [
            (0.96, 28_800),
            (0.97, 29_100),
            (0.99, 29_700),
            (0.999, 29_970),
        ] {
            let excess_s: f64 = stall_s - (1.0 - quantile) * run_s * (1.0 - rate * service_s);
            let expected_ms = (service_s + excess_s.max(0.0)) * 1e3;
            let found_ms = latencies[index - 1] as f64 / 1e6;
            assert!(
                (found_ms - expected_ms).abs() <= 1.0,
                "q {quantile}: {found_ms} ms, expected {expected_ms} ms"
            );
        }
    }
}
