//! Differences below the noise floor of the machine.

use recording::NoiseFloor;
use recording::sample::SampleRun;

use super::*;

const REMARK: &str = "below the noise floor";

/// Variants of 680 and about 700 us on a machine with this floor.
fn recording(floor_us: f64) -> Recording {
    let mut recording = SampleRun::open()
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
    let words = crate::check_text(found);
    assert!(words.contains("differ by up to 50"), "{words}");
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
    let text = crate::verdict_text(rhai);
    assert!(!text.contains(REMARK), "{text}");
    let check = rhai
        .checks
        .iter()
        .find(|check| check.name == CheckName::NoiseFloor);
    assert_eq!(check.unwrap().state, CheckState::Ok);
    let text = crate::full_text(&recording, &summary, crate::Terminal::plain(120));
    assert!(text.contains("noise floor: mean 5"), "{text}");
}
