//! Durations as text in messages.

use std::time::Duration;

/// Returns a duration in seconds or minutes: `48 s`, `2 min 30 s`.
pub(super) fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, _) => format!("{:.0} s", time.as_secs_f64()),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_seconds_or_minutes() {
        let text = |seconds| duration_text(Duration::from_secs(seconds));
        assert_eq!(text(48), "48 s");
        assert_eq!(text(120), "2 min");
        assert_eq!(text(150), "2 min 30 s");
    }
}
