//! Comparison of an overhead with the noise floor that `weigh tare` measured on the machine.
//!
//! If the null server is measured against itself, the difference is at most the floor. A smaller difference
//! in a lab may be computed correctly and is still no finding. The rounds of one lab do not show how the
//! machine affects two equal systems.

use model::Metric;
use recording::NoiseFloor;

use super::check::{Check, CheckFacts, CheckName, CheckState, Limits};
use super::estimate::{ClaimName, MetricSummary};
use super::verdict::Remark;

/// Compares the mean overhead with the floor. `None` without an overhead, or if no difference is claimed.
pub(super) fn check(floor: Option<&NoiseFloor>, mean: Option<&MetricSummary>) -> Option<Check> {
    let (floor, overhead) = (floor?, mean?.overhead.as_ref()?);
    if !matches!(overhead.claim, ClaimName::Higher | ClaimName::Lower) {
        return None;
    }
    // The floor has no direction, because two equal systems may differ either way.
    let overhead_us = overhead.difference.abs();
    let facts = CheckFacts::NoiseFloor {
        overhead_us,
        floor_us: floor.latency_us_mean,
        made_at: floor.made_at.clone(),
    };
    // The check is weak and never failed. The figures stand, and only the finding does not.
    let figure = floor.latency_us_mean - overhead_us;
    Some(Limits::only_weak(0.0).judge(CheckName::NoiseFloor, figure, facts))
}

/// Remark on the verdict of a variant with an overhead below the floor.
pub(super) fn remark(checks: &[Check], headline: Metric) -> Option<Remark> {
    let is_below =
        |check: &&Check| check.name == CheckName::NoiseFloor && check.state != CheckState::Ok;
    checks.iter().find(is_below).map(|_| match headline {
        Metric::Mean => Remark::BelowNoiseFloor,
        _ => Remark::MeanBelowNoiseFloor,
    })
}
