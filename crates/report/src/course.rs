//! A course of values as bars of characters.

/// Bars from the lowest to the highest.
pub(crate) const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values between the lowest and the highest: `▃▅█▂`. `None` for fewer than three, which show no trend.
pub(crate) fn course(values: &[f64]) -> Option<String> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.len() < 3 || high <= low {
        return None;
    }
    let level = |value: &f64| {
        // The range is the row's own lowest to highest value, because the picture shows the trend and not the
        // size.
        let share = (value - low) / (high - low);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of seven levels"
        )]
        let level = (share * 7.0).round() as usize;
        LEVELS[level.min(7)]
    };
    Some(values.iter().map(level).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_run_from_their_lowest_to_their_highest() {
        assert_eq!(course(&[1.0, 2.0, 8.0]).unwrap(), "▁▂█");
        assert_eq!(course(&[1.0, 1.0, 1.0]), None);
        assert_eq!(course(&[1.0, 2.0]), None);
    }
}
