//! Comparison of an overhead with the noise floor that `weigh tare` measured on the machine.
//!
//! If the null server is measured against itself, the difference is at most the floor. A smaller difference
//! in a lab may be computed correctly and is still no finding. The rounds of one lab do not show how the
//! machine affects two equal systems.

use super::check::{Check, CheckName, CheckState, Limits};
use super::estimate::{ClaimName, MetricSummary};
use crate::digits;
use crate::metric::Metric;
use crate::recording::NoiseFloor;

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
pub(super) fn remark(checks: &[Check], headline: Metric) -> Option<&'static str> {
    let is_below =
        |check: &&Check| check.name == CheckName::NoiseFloor && check.state != CheckState::Ok;
    checks.iter().find(is_below).map(|_| match headline {
        Metric::Mean => "below the noise floor",
        _ => "its mean latency is below the noise floor",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use crate::{Recording, Summary};

    const REMARK: &str = "below the noise floor";

    /// Variants of 680 and about 700 us on a machine with this floor.
    fn recording(floor_us: f64) -> Recording {
        let mut recording = Sample::open()
            .variant("baseline", 680.0)
            .variant("same", 680.0)
            .variant("rhai", 700.0)
            .build();
        recording.environment.noise_floor = Some(NoiseFloor {
            made_at: "2026-02-01T09:00:00Z".to_owned(),
            requests_per_s: 1000.0,
            rounds: 10,
            latency_us_mean: floor_us,
            latency_us_p50: floor_us,
            latency_us_p99: floor_us,
        });
        recording
    }

    #[test]
    fn a_difference_below_the_floor_is_marked_in_every_rendering() {
        let recording = recording(50.0);
        let summary = Summary::of(&recording);
        let check = |name: &str| {
            let checks = &summary.variant(name).unwrap().checks;
            checks
                .iter()
                .find(|check| check.name == CheckName::NoiseFloor)
        };
        let found = check("rhai").unwrap();
        assert_eq!(found.state, CheckState::Weak, "{found:#?}");
        assert!(found.text.contains("differ by up to 50"), "{}", found.text);
        // If no difference is claimed, there is no warning.
        assert_eq!(check("same"), None);
        assert_eq!(check("baseline"), None);
        for rendered in [
            crate::text(&recording, &summary, crate::Terminal::plain(120)),
            crate::markdown(&recording, &summary),
            crate::html(&recording, &summary),
            crate::json(&recording, &summary),
            crate::csv(&recording, &summary),
        ] {
            let marks = rendered.matches(REMARK).count();
            assert!(marks > 0, "{rendered}");
        }
        let text = crate::text(&recording, &summary, crate::Terminal::plain(160));
        let row = text.lines().find(|line| line.starts_with("rhai")).unwrap();
        assert!(row.ends_with(REMARK), "{row}");
        let same = text.lines().find(|line| line.starts_with("same")).unwrap();
        assert!(!same.contains(REMARK), "{same}");
    }

    #[test]
    fn a_difference_above_the_floor_is_not_marked() {
        let recording = recording(5.0);
        let summary = Summary::of(&recording);
        let rhai = summary.variant("rhai").unwrap();
        assert!(!rhai.verdict_text.contains(REMARK), "{}", rhai.verdict_text);
        let check = rhai
            .checks
            .iter()
            .find(|check| check.name == CheckName::NoiseFloor);
        assert_eq!(check.unwrap().state, CheckState::Ok);
        let text = crate::full_text(&recording, &summary, crate::Terminal::plain(120));
        assert!(text.contains("noise floor: mean 5"), "{text}");
    }
}
