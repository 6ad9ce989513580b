//! Comparison of an overhead with the noise floor that `weigh tare` measured on the machine.
//!
//! If the null server is measured against itself, the difference is at most the floor. A smaller difference
//! in a lab may be computed correctly and is still no finding. The rounds of one lab do not show how the
//! machine affects two equal systems.

use model::Metric;
use recording::{NoiseFloor, digits};

use super::check::{Check, CheckName, CheckState, Limits};
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
    let (found, limit) = (
        digits::duration_ns(overhead_us * 1e3),
        digits::duration_ns(floor.latency_us_mean * 1e3),
    );
    // The date of an RFC 3339 time. Another text is shown unchanged.
    let made_at = floor.made_at.get(..10).unwrap_or(&floor.made_at);
    let text = if overhead_us < floor.latency_us_mean {
        format!(
            "the mean latency differs by {found}, but two equal systems differ by up to {limit} on \
             this machine (`weigh tare` of {made_at}), so this difference shows nothing"
        )
    } else {
        format!(
            "the mean latency differs by {found}, two equal systems by at most {limit} (`weigh \
             tare` of {made_at})"
        )
    };
    // The check is weak and never failed. The figures stand, and only the finding does not.
    let figure = floor.latency_us_mean - overhead_us;
    Some(Limits::only_weak(0.0).judge(CheckName::NoiseFloor, figure, text))
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
