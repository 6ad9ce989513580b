//! The cycles of a closed loop in slices that may be compared.
//!
//! Side by side, the load of a closed loop moves from variant to variant in slices, and a *cycle* is one
//! slice for each variant. A slice that the host or the generator disturbed does not describe its variant, so
//! its cycle is left out for *all* variants. The remaining cycles are complete, and the order within them is
//! as balanced as it was drawn.
//!
//! As in [`crate::cycles`], clocks and counters decide, and never a rate or a latency. A variant that stalls
//! keeps its stalls. A slice is longer than a single request, and a host takes a little time always. So a
//! disturbance counts only if it took a noticeable share of the slice.

use crate::cycles::Cause;

/// Time that a slice lost to disturbances, as shares of its length. 0 without a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    /// Share of the time that the host gave cores to other guests, summed over cores.
    pub host: f64,
    /// Share of the time that the generator did not run although work was due.
    pub generator: f64,
}

/// A slice that lost more than this share does not describe its variant. Slices of equal servers differ by a
/// tenth anyway, so a smaller loss hardly shows.
pub const LOST_MAX: f64 = 0.05;

/// Returns, for each cycle, the cause for leaving it out, or `None`. Each cycle contains the losses of its
/// slices.
///
/// At most half of the cycles are left out, starting with the largest losses. On a host that takes a core in
/// every cycle, the rest is still a measurement. The share that was left out shows its quality.
///
/// # Panics
/// If a share is not a number.
#[must_use]
pub fn left_out(cycles: &[Vec<Lost>]) -> Vec<Option<Cause>> {
    let worst = |slices: &Vec<Lost>| {
        let all = slices.iter().copied();
        all.max_by(|one, other| one.total().total_cmp(&other.total()))
            .unwrap_or_default()
    };
    let worst: Vec<Lost> = cycles.iter().map(worst).collect();
    assert!(
        worst.iter().all(|lost| !lost.total().is_nan()),
        "a share is a number"
    );
    let mut disturbed: Vec<usize> = (0..cycles.len())
        .filter(|cycle| worst[*cycle].total() > LOST_MAX)
        .collect();
    disturbed.sort_by(|one, other| worst[*other].total().total_cmp(&worst[*one].total()));
    disturbed.truncate(cycles.len() / 2);
    let mut causes = vec![None; cycles.len()];
    for cycle in disturbed {
        causes[cycle] = Some(worst[cycle].cause());
    }
    causes
}

/// Returns the number of requests that were completed in stretches of time. A request that a stretch contains
/// in part counts in part.
///
/// `requests` gives the begin and the end of each request, `parts` contains the begin and the end of each
/// stretch, disjoint and in order. All are in nanoseconds from the same moment. If a third of a request lies
/// in a stretch, it adds a third.
///
/// Divided by the length of the stretches this is an unbiased rate of a closed loop in its steady state. A
/// moment falls into a request with a chance proportional to the length of the request. The mean of 1/length
/// under this law is 1/(mean length) (the inspection paradox: W. Feller, "An Introduction to Probability
/// Theory and Its Applications", volume 2, chapter I.4). A count of the requests that end in a stretch moves
/// in whole waves instead, if connections receive their responses together.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "times of a load are far below 2^52 ns"
)]
pub fn completed(requests: impl Iterator<Item = (u64, u64)>, parts: &[(u64, u64)]) -> f64 {
    let part_of = |(begin_ns, end_ns): (u64, u64)| {
        let first = parts.partition_point(|(_, to_ns)| *to_ns <= begin_ns);
        let within: u64 = parts[first..]
            .iter()
            .take_while(|(from_ns, _)| *from_ns < end_ns)
            .map(|(from_ns, to_ns)| end_ns.min(*to_ns).saturating_sub(begin_ns.max(*from_ns)))
            .sum();
        within as f64 / end_ns.saturating_sub(begin_ns).max(1) as f64
    };
    requests.map(part_of).sum()
}

impl Lost {
    fn total(self) -> f64 {
        self.host + self.generator
    }

    /// The larger cause of the loss.
    fn cause(self) -> Cause {
        if self.host >= self.generator {
            Cause::Host
        } else {
            Cause::Generator
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(host: f64, generator: f64) -> Lost {
        Lost { host, generator }
    }

    #[test]
    fn a_cycle_goes_with_its_worst_slice_and_says_why() {
        let quiet = vec![lost(0.0, 0.0), lost(0.03, 0.01)];
        let stolen = vec![lost(0.0, 0.0), lost(0.06, 0.0)];
        let paused = vec![lost(0.02, 0.3), lost(0.0, 0.0)];
        let found = left_out(&[quiet.clone(), stolen, quiet.clone(), paused, quiet]);
        let expected = [None, Some(Cause::Host), None, Some(Cause::Generator), None];
        assert_eq!(found, expected);
    }

    /// Requests of these lengths one after the other, from a moment on.
    fn chain(from_ns: u64, lengths_ns: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut at_ns = from_ns;
        let request = |length_ns| {
            let begin_ns = at_ns;
            at_ns += length_ns;
            (begin_ns, at_ns)
        };
        lengths_ns.into_iter().map(request).collect()
    }

    #[test]
    fn a_request_that_is_cut_counts_in_part() {
        let found = |requests: &[(u64, u64)], parts: &[(u64, u64)]| {
            completed(requests.iter().copied(), parts)
        };
        assert!((found(&[(0, 30)], &[(10, 20)]) - 1.0 / 3.0).abs() < 1e-12);
        assert!((found(&[(0, 10), (10, 20)], &[(5, 20)]) - 1.5).abs() < 1e-12);
        assert!((found(&[(0, 40)], &[(0, 10), (30, 50)]) - 0.5).abs() < 1e-12);
        assert_eq!(found(&[(0, 10), (20, 30)], &[(10, 20)]), 0.0);
        assert_eq!(found(&[], &[(0, 1)]), 0.0);
        assert_eq!(found(&[(3, 9)], &[]), 0.0);
    }

    #[test]
    fn the_rate_of_equal_answers_is_exact_at_every_phase() {
        // 63 ms of 45 ms and of 50 ms. A count gives 1 or 2 for either.
        for (latency_us, phases) in [(45_000, 45), (50_000, 50)] {
            for phase in 0..phases {
                let waves = chain(phase * 1_000, vec![latency_us; 6]);
                // Four connections that get their responses together.
                let all = (0..4).flat_map(|_| waves.clone());
                let found = completed(all, &[(60_000, 123_000)]) / 63_000.0;
                let expected = 4.0 / latency_us as f64;
                assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
            }
        }
    }

    #[test]
    fn the_rate_of_uneven_answers_is_not_biased_by_long_ones() {
        // A tenth takes ten times as long: 1.9 ms on average, and most moments lie in a long one.
        let mut random = crate::random::Random::new(11);
        let mut sum = 0.0;
        let runs = 4_000;
        for _ in 0..runs {
            let lengths = (0..200).map(|_| match random.below(10) {
                0 => 10_000,
                _ => 1_000,
            });
            let requests = chain(0, lengths);
            sum += completed(requests.into_iter(), &[(60_000, 80_000)]) / 20_000.0;
        }
        let found = sum / f64::from(runs);
        let expected = 1.0 / 1_900.0;
        assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
    }

    #[test]
    fn half_of_the_cycles_stay_whatever_the_host_does() {
        let cycles: Vec<Vec<Lost>> = (1..=5)
            .map(|n| vec![lost(0.1 * f64::from(n), 0.0)])
            .collect();
        let found = left_out(&cycles);
        let host = Some(Cause::Host);
        assert_eq!(
            found,
            [None, None, None, host, host],
            "the worst two of five"
        );
        assert_eq!(left_out(&cycles[4..]), [None], "one cycle is all there is");
        assert_eq!(left_out(&[]), []);
    }
}
