//! Estimates the cost of operations, and rejects operations that are too expensive (`demand_control`).

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use gateway_config::{DemandControl, DemandMode};
use gateway_extensions::Context;
use gateway_extensions::cost::{ACTUAL, BUCKETS, ESTIMATED, RESULT, STRATEGY};
use gateway_federation::{GraphqlError, Prepared, Variables};

/// Results of a cost check, for clients, stages and metrics.
const OK: &str = "COST_OK";
const TOO_EXPENSIVE: &str = "COST_ESTIMATED_TOO_EXPENSIVE";
const ACTUALLY_TOO_EXPENSIVE: &str = "COST_ACTUAL_TOO_EXPENSIVE";
const NO_ESTIMATE: &str = "COST_QUERY_PARSE_FAILURE";

/// The cost limit, and the counts of its configuration.
#[derive(Debug)]
pub(crate) struct CostLimit {
    max: f64,
    is_enforced: bool,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    ok: AtomicU64,
    too_expensive: AtomicU64,
    without: AtomicU64,
    estimated: Histogram,
    actual: Histogram,
}

/// A histogram of costs.
#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS.len() + 1],
    /// The bits of an `f64`, because a cost may exceed every integer.
    sum: AtomicU64,
}

/// A histogram for a scrape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) buckets: [u64; BUCKETS.len() + 1],
    pub(crate) sum: f64,
}

/// All cost metrics for a scrape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CostCounts {
    pub(crate) ok: u64,
    pub(crate) too_expensive: u64,
    pub(crate) without: u64,
    pub(crate) estimated: Costs,
    pub(crate) actual: Costs,
}

impl CostLimit {
    /// `None` if costs are not estimated.
    pub(crate) fn new(config: &DemandControl) -> Option<Self> {
        let strategy = config.strategy.filter(|_| config.enabled)?;
        Some(Self {
            max: strategy.static_estimated.max,
            is_enforced: config.mode == DemandMode::Enforce,
            counts: Counts::default(),
        })
    }

    /// Estimates the cost of an operation, and records it for stages and metrics.
    ///
    /// # Errors
    /// Returns the client's error if the cost exceeds an enforced limit.
    pub(crate) fn judge(
        &self,
        prepared: &Prepared,
        variables: &Variables,
        context: &Context,
    ) -> Result<(), GraphqlError> {
        let Some(estimate) = prepared.estimate(variables) else {
            return Ok(());
        };
        context.insert(STRATEGY, "static_estimated".into());
        let (counter, result, error) = match estimate {
            Ok(cost) => {
                self.counts.estimated.add(cost);
                context.insert(ESTIMATED, cost.into());
                if cost <= self.max {
                    (&self.counts.ok, OK, None)
                } else {
                    let error = too_expensive(cost, self.max);
                    (&self.counts.too_expensive, TOO_EXPENSIVE, Some(error))
                }
            }
            Err(reason) => {
                let message = format!("could not estimate the cost: {}", reason.0);
                let error = GraphqlError::new(message, NO_ESTIMATE);
                (&self.counts.without, NO_ESTIMATE, Some(error))
            }
        };
        add(counter);
        context.insert(RESULT, result.into());
        match error.filter(|_| self.is_enforced) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Records the actual cost of a response for stages and metrics.
    pub(crate) fn answered(
        &self,
        prepared: &Prepared,
        variables: &Variables,
        body: &Bytes,
        context: &Context,
    ) {
        let Some(Some(cost)) = prepared.actual_cost(variables, body) else {
            return;
        };
        self.counts.actual.add(cost);
        context.insert(ACTUAL, cost.into());
        let was_ok = context.text(RESULT).is_some_and(|it| it == OK);
        if was_ok && cost > self.max {
            context.insert(RESULT, ACTUALLY_TOO_EXPENSIVE.into());
        }
    }

    pub(crate) fn counts(&self) -> CostCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CostCounts {
            ok: read(&self.counts.ok),
            too_expensive: read(&self.counts.too_expensive),
            without: read(&self.counts.without),
            estimated: self.counts.estimated.read(),
            actual: self.counts.actual.read(),
        }
    }
}

fn too_expensive(cost: f64, max: f64) -> GraphqlError {
    let message = format!("query estimated cost {cost} exceeded configured maximum {max}");
    GraphqlError::new(message, TOO_EXPENSIVE)
        .with("cost.estimated", cost)
        .with("cost.max", max)
}

fn add(counter: &AtomicU64) {
    // Relaxed: the counter is only displayed and guards no memory.
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Histogram {
    fn add(&self, cost: f64) {
        let bucket = BUCKETS.partition_point(|bound| *bound < cost);
        add(&self.buckets[bucket]);
        let add = |sum| {
            let sum = f64::from_bits(sum) + cost;
            Some(sum.min(f64::MAX).to_bits())
        };
        // The update always succeeds. Relaxed, as above.
        let _ = self
            .sum
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn read(&self) -> Costs {
        let mut costs = Costs::default();
        for (to, from) in costs.buckets.iter_mut().zip(&self.buckets) {
            *to = from.load(Ordering::Relaxed);
        }
        costs.sum = f64::from_bits(self.sum.load(Ordering::Relaxed));
        costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_costs_goes_no_lower_by_any_cost() {
        let histogram = Histogram::default();
        let mut before = 0.0;
        for cost in [1.5, 1e15, 1e15, 1e30, f64::MAX, f64::MAX] {
            histogram.add(cost);
            let sum = histogram.read().sum;
            assert!(sum >= before && sum >= cost && sum.is_finite(), "{sum}");
            before = sum;
        }
        assert_eq!(histogram.read().buckets.iter().sum::<u64>(), 6);
    }
}
