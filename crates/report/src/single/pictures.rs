//! Small pictures of characters for a single load: the distribution of its latencies, and its rate over time.

use model::Unit;
use recording::{Windows, digits, float};
use stats::Histogram;

use crate::cell;
use crate::course::LEVELS;

/// Number of steps of latency, one per row of the histogram.
const ROWS: u32 = 8;
/// Length of the longest bar, and of the rate over time, in columns.
const COLUMNS: usize = 40;
/// Columns of a row of the histogram next to its bar.
const BESIDE: usize = 29;
/// Shortest length of the longest bar, on a narrow terminal.
const COLUMNS_MIN: usize = 10;

/// The length of the longest bar on a terminal of this width.
fn bar_columns(width: usize) -> usize {
    width.saturating_sub(BESIDE).clamp(COLUMNS_MIN, COLUMNS)
}

/// Numbers of requests by latency, in steps of equal ratio from the fastest to the slowest. So a tail of a
/// hundred times the median fits next to the bulk. Empty if all latencies are equal.
pub(super) fn histogram(latency: &Histogram, times: Unit, width: usize) -> String {
    let longest = bar_columns(width);
    let (Some(min), Some(max)) = (latency.min_ns(), latency.max_ns()) else {
        return String::new();
    };
    let ratio = float(max) / float(min.max(1));
    if ratio < 1.1 {
        return String::new();
    }
    let end = |row: u32| float(min.max(1)) * ratio.powf(f64::from(row + 1) / f64::from(ROWS));
    let mut counts = [0_u64; ROWS as usize];
    for (value, count) in latency.recorded() {
        // The slowest request belongs to the last row, even if rounding moves the row's end.
        let row = (0..ROWS - 1)
            .find(|row| float(value) <= end(*row))
            .unwrap_or(ROWS - 1);
        counts[row as usize] += count;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let line = |(row, count): (u32, u64)| {
        let bar = "█".repeat(length(float(count) / float(most), longest));
        // A row with few requests must not look empty.
        let bar = if count > 0 && bar.is_empty() {
            "▏".to_owned()
        } else {
            bar
        };
        format!(
            "  {:>13} {bar:<longest$} {:>12}\n",
            format!(
                "<= {}",
                cell::latency(Some(end(row).min(float(max)) / 1e3), times)
            ),
            digits::count(count)
        )
    };
    let lines: String = (0..ROWS).zip(counts).map(line).collect();
    format!("  Requests by latency\n{lines}\n")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the columns is within them"
)]
fn length(share: f64, longest: usize) -> usize {
    (share.clamp(0.0, 1.0) * longest as f64).round() as usize
}

/// Responses per second from the beginning to the end of the load. All columns cover equal times. Empty if
/// the load is too short for two columns.
pub(super) fn rate(windows: &Windows, width: usize) -> String {
    // The last window may be cut short and would look like a drop.
    let whole = windows.completed.len().saturating_sub(1);
    if whole < 2 {
        return String::new();
    }
    let each = whole.div_ceil(bar_columns(width));
    let seconds = float(windows.width_us) / 1e6;
    let rates: Vec<f64> = windows.completed[..whole]
        .chunks_exact(each)
        .map(|part| float(part.iter().sum()) / (float(part.len() as u64) * seconds))
        .collect();
    let (low, high) = rates
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), rate| {
            (low.min(*rate), high.max(*rate))
        });
    if rates.len() < 2 || high <= 0.0 {
        return String::new();
    }
    // The scale starts at zero, so that a variation of some percent does not look large.
    let drawn: String = rates.iter().map(|rate| level(rate / high)).collect();
    format!(
        "  {:>13} {drawn}   {} to {}/s, from 0 s to {}\n\n",
        "Rate",
        digits::value(low, None),
        digits::value(high, None),
        digits::duration_ns(float((whole / each * each) as u64) * seconds * 1e9)
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of eight levels is within them"
)]
fn level(share: f64) -> char {
    LEVELS[((share * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_one_row_and_the_tail_is_seen() {
        let mut latency = Histogram::new();
        latency.record_n_ns(100_000, 10_000);
        latency.record_n_ns(200_000, 5_000);
        latency.record_ns(10_000_000);
        insta::assert_snapshot!(histogram(&latency, Unit::Microseconds, 100), @"
        Requests by latency
            <= 178 us ████████████████████████████████████████       10,000
            <= 316 us ████████████████████                            5,000
            <= 562 us                                                     0
          <= 1,000 us                                                     0
          <= 1,780 us                                                     0
          <= 3,160 us                                                     0
          <= 5,620 us                                                     0
         <= 10,000 us ▏                                                   1
        ");
        assert_eq!(histogram(&Histogram::new(), Unit::Microseconds, 100), "");
        let mut alike = Histogram::new();
        alike.record_n_ns(100_000, 10);
        assert_eq!(histogram(&alike, Unit::Microseconds, 100), "");
    }

    #[test]
    fn a_pause_is_a_gap_in_the_rate() {
        let mut completed = vec![100; 61];
        completed[30..33].fill(0);
        let windows = Windows {
            width_us: 100_000,
            errors: vec![0; 61],
            latency_sum_ns: vec![0; 61],
            completed,
        };
        insta::assert_snapshot!(rate(&windows, 100), @"
                   Rate ███████████████▁▄█████████████   0 to 1,000/s, from 0 s to 6.00 s
        ");
        let short = Windows {
            completed: vec![100, 3],
            ..windows
        };
        assert_eq!(rate(&short, 100), "");
    }
}
