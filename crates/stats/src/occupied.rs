//! Finds the stretches of time when the systems of one variant kept the cores from another variant.
//!
//! Side by side, the systems of all variants share the cores. A request that waits for a database or a timer
//! disturbs no neighbor, however long it takes. A request that keeps a core busy does. The processor time of
//! each variant's systems, read every few milliseconds, shows the difference.
//!
//! A variant that was busy in a stretch itself keeps its requests of that stretch. Two variants that are busy
//! together usually have a common cause, such as the same heavy request of the plan. If both left these
//! requests out, the cost that they should show would be removed.

use crate::cycles::{Cause, Disturbance};

/// The processor time that each variant's systems had used at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreReading {
    /// Nanoseconds from the start of the load.
    pub at_ns: u64,
    /// Running total of each variant in nanoseconds, summed over cores. A total that cannot be read
    /// stays at its last value.
    pub used_ns: Vec<u64>,
}

/// A variant that used at least this share of a core in a stretch was busy itself.
const BUSY_SHARE: f64 = 0.5;

/// A stretch next to an occupied one belongs to it if other variants used at least this share of a core.
const EDGE_SHARE: f64 = 0.25;

/// Share of a core that is left for the generator and background work when the rest is occupied.
const SPARE: f64 = 0.1;

/// Returns the stretches of time when other variants occupied the cores, for each variant that they
/// disturbed. `cores` is the number of cores that the systems may use.
///
/// Other variants occupy the cores in a stretch if they use nearly one core. On a machine of more than two
/// cores, they do so if they leave hardly one core. Readings cut the beginning and the end of the work. So a
/// stretch on either side belongs to it if they used a quarter of a core there.
///
/// # Panics
/// If the readings are of different numbers of variants.
#[must_use]
pub fn occupied(readings: &[CoreReading], cores: usize) -> Vec<Disturbance> {
    let variants = readings.first().map_or(0, |reading| reading.used_ns.len());
    let stretches: Vec<Stretch> = readings.windows(2).map(Stretch::between).collect();
    #[expect(clippy::cast_precision_loss, reason = "no machine has 2^52 cores")]
    let limit = (cores as f64 - 1.0 - SPARE).max(1.0 - SPARE);
    let mut disturbances = Vec::new();
    for variant in 0..variants {
        let others = |stretch: &Stretch| stretch.total() - stretch.shares[variant];
        let mut marked = vec![false; stretches.len()];
        for (index, stretch) in stretches.iter().enumerate() {
            if others(stretch) < limit {
                continue;
            }
            marked[index] = true;
            let beside = [index.checked_sub(1), Some(index + 1)];
            for near in beside.into_iter().flatten() {
                if stretches
                    .get(near)
                    .is_some_and(|it| others(it) >= EDGE_SHARE)
                {
                    marked[near] = true;
                }
            }
        }
        let disturbed = stretches
            .iter()
            .zip(marked)
            .filter(|(stretch, is_marked)| *is_marked && stretch.shares[variant] < BUSY_SHARE);
        disturbances.extend(disturbed.map(|(stretch, _)| Disturbance {
            from_ns: stretch.from_ns,
            to_ns: stretch.to_ns,
            cause: Cause::Neighbor,
            variant: Some(variant),
        }));
    }
    disturbances
}

/// The time between two readings.
struct Stretch {
    from_ns: u64,
    to_ns: u64,
    /// Cores that each variant used: 1 for one core all the time.
    shares: Vec<f64>,
}

impl Stretch {
    #[expect(
        clippy::cast_precision_loss,
        reason = "times of a load are far below 2^52 ns"
    )]
    fn between(pair: &[CoreReading]) -> Stretch {
        let [before, after] = pair else {
            unreachable!("windows of two")
        };
        assert_eq!(
            before.used_ns.len(),
            after.used_ns.len(),
            "every reading is of all variants"
        );
        let length_ns = after.at_ns.saturating_sub(before.at_ns).max(1) as f64;
        let each = before.used_ns.iter().zip(&after.used_ns);
        Stretch {
            from_ns: before.at_ns,
            to_ns: after.at_ns.max(before.at_ns),
            shares: each
                .map(|(before, after)| after.saturating_sub(*before) as f64 / length_ns)
                .collect(),
        }
    }

    fn total(&self) -> f64 {
        self.shares.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Readings every 10 ms, of variants that use these milliseconds of processor time in each stretch.
    fn readings(used_ms: &[&[u64]]) -> Vec<CoreReading> {
        let stretches = used_ms[0].len();
        let total = |own: &[u64], until: usize| own[..until].iter().sum::<u64>() * MS;
        (0..=stretches)
            .map(|index| CoreReading {
                at_ns: index as u64 * 10 * MS,
                used_ns: used_ms.iter().map(|own| total(own, index)).collect(),
            })
            .collect()
    }

    /// The variants that were disturbed, each with the stretches.
    fn found(used_ms: &[&[u64]], cores: usize) -> Vec<(usize, u64)> {
        let disturbances = occupied(&readings(used_ms), cores);
        disturbances
            .iter()
            .map(|it| {
                assert_eq!(
                    (it.cause, it.to_ns - it.from_ns),
                    (Cause::Neighbor, 10 * MS)
                );
                (it.variant.unwrap(), it.from_ns / (10 * MS))
            })
            .collect()
    }

    #[test]
    fn a_request_that_waits_disturbs_nobody() {
        assert_eq!(found(&[&[1, 0, 0, 1], &[0, 1, 1, 0]], 2), []);
        // A third of a core, as steady work of a few milliseconds a request.
        assert_eq!(found(&[&[3, 4, 3, 3], &[1, 1, 1, 1]], 2), []);
    }

    #[test]
    fn a_request_that_keeps_a_core_busy_disturbs_the_others_and_not_itself() {
        let busy = [0, 4, 10, 10, 10, 3, 0];
        let quiet = [1, 0, 0, 0, 0, 0, 1];
        assert_eq!(
            found(&[&busy, &quiet], 2),
            [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]
        );
        assert_eq!(
            found(&[&busy, &quiet, &quiet], 2).len(),
            10,
            "each of the two others"
        );
        assert_eq!(found(&[&busy, &quiet], 4), [], "there is room for both");
        assert_eq!(found(&[&busy, &quiet], 1).len(), 5);
    }

    #[test]
    fn two_that_are_busy_together_keep_what_they_have() {
        let heavy = [0, 9, 10, 0];
        let quiet = [0, 0, 0, 0];
        assert_eq!(found(&[&heavy, &heavy], 2), []);
        // The third one is disturbed by both.
        assert_eq!(found(&[&heavy, &heavy, &quiet], 2), [(2, 1), (2, 2)]);
    }

    #[test]
    fn several_neighbors_count_together() {
        assert_eq!(found(&[&[5, 0], &[5, 0], &[0, 0]], 2), [(2, 0)]);
        assert_eq!(found(&[&[4, 0], &[4, 0], &[0, 0]], 2), []);
    }

    #[test]
    fn nothing_follows_from_one_reading() {
        assert_eq!(occupied(&[], 2), []);
        assert_eq!(occupied(&readings(&[&[], &[]]), 2), []);
    }
}
