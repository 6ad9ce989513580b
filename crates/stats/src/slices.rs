//! Which cycles of a closed loop in slices may be compared.
//!
//! Side by side, the load of a closed loop moves from variant to variant in slices, and a *cycle* is
//! one slice for each. What the host or the generator does to one slice says nothing about its
//! variant, so its cycle is left out, for *all* variants alike: those that stay are whole, and the
//! order within them is as balanced as it was drawn.
//!
//! The one idea is that of [`crate::cycles`]: clocks and counters decide, and never a rate or a
//! latency. A variant that stalls keeps its stalls. Other than a single request, a slice outlasts
//! what little a host takes all the time, so only what took a noticeable share of it counts.

use crate::cycles::Cause;

/// What a slice lost to others, as shares of its length: 0 for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    /// Time in which the host gave cores to other guests, summed over cores.
    pub host: f64,
    /// Time in which the generator did not run although work was due.
    pub generator: f64,
}

/// A slice that lost more than this share says nothing about its variant. Slices of equal servers
/// differ by a tenth anyway, so less than this hardly shows.
pub const LOST_MAX: f64 = 0.05;

/// Why each cycle is left out, if it is. Each holds what its slices have lost.
///
/// At most half of the cycles are left out, those that lost the most: on a host that takes a core in
/// every cycle, the rest is still a measurement, and the share that was left out shows what it is.
///
/// # Panics
/// When a share is not a number.
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

impl Lost {
    fn total(self) -> f64 {
        self.host + self.generator
    }

    /// What took most of it.
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
