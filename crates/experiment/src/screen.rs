//! The display of a running load on a terminal: a few lines of text from counts.
//!
//! This file only creates text. The caller writes the lines in place and changes no mode of the terminal, so
//! a killed run leaves a usable terminal.

use std::time::Duration;

use load::{Durations, JobProgress};
use model::Load;

/// Number of rows of the histogram.
const ROWS: usize = 8;

/// The longest bar, in columns.
const BAR: usize = 32;

/// The state of a load at one moment.
pub(crate) struct Look<'a> {
    pub(crate) label: &'a str,
    pub(crate) load: &'a Load,
    pub(crate) elapsed: Duration,
    pub(crate) seen: &'a JobProgress,
    /// Finished requests per second, one entry for each elapsed second.
    pub(crate) rates: &'a [f64],
    pub(crate) is_utf8: bool,
}

impl Look<'_> {
    /// All lines, at most `width` columns long.
    pub(crate) fn text(&self, width: usize) -> String {
        let (counts, latency) = (&self.seen.counts, &self.seen.latency);
        let mut lines = vec![self.label.to_owned(), self.progress(), String::new()];
        lines.push(format!(
            "  outcomes  {} passed, {} mismatched, {} failed, {} missed, {} in flight",
            counts.passed,
            counts.mismatched,
            counts.failed,
            counts.missed,
            counts.under_way()
        ));
        // The first display may come immediately, and would divide by zero.
        let seconds = self.elapsed.as_secs_f64().max(1e-3);
        let last = self
            .rates
            .last()
            .map_or(String::new(), |rate| format!("{rate:.0}/s now, "));
        let mean = counts.ended as f64 / seconds;
        lines.push(format!(
            "  rate      {last}{mean:.0}/s so far  {}",
            self.curve()
        ));
        let quantile = |share| {
            let ns = latency.quantile_ns(share);
            ns.map_or("-".to_owned(), |ns| duration(ns as f64))
        };
        lines.push(format!(
            "  latency   p50 {}, p90 {}, p99 {}, max {} (so far, to 6 %)",
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(1.0)
        ));
        lines.push(String::new());
        lines.extend(self.histogram(latency));
        let cut = lines.iter().map(|line| cut(line, width));
        cut.collect::<Vec<&str>>().join("\n")
    }

    /// The progress of the load, by requests and by time.
    fn progress(&self) -> String {
        let (requests, whole) = extent(self.load);
        let seconds = self.elapsed.as_secs_f64();
        let by_time = whole.map(|whole| seconds / whole.as_secs_f64().max(1e-9));
        let by_count = requests.map(|all| self.seen.counts.ended as f64 / all.max(1) as f64);
        // The first limit that is reached ends the load.
        let share = by_time.unwrap_or(0.0).max(by_count.unwrap_or(0.0)).min(1.0);
        let of = whole.map_or(String::new(), |whole| {
            format!(" of {:.1}", whole.as_secs_f64())
        });
        let bar = self.bar(share, BAR);
        let rest = if self.is_utf8 { "░" } else { "." }.repeat(BAR - bar.chars().count());
        format!("  {bar}{rest} {:3.0} %  {seconds:.1}{of} s", share * 100.0)
    }

    fn bar(&self, share: f64, longest: usize) -> String {
        let filled = (0..longest).filter(|column| (*column as f64) < share * longest as f64);
        let mark = if self.is_utf8 { "█" } else { "#" };
        filled.map(|_| mark).collect()
    }

    /// The rates of the last seconds, relative to the highest of them.
    fn curve(&self) -> String {
        let marks: Vec<char> = match self.is_utf8 {
            true => "▁▂▃▄▅▆▇█".chars().collect(),
            false => "_.-=+*%#".chars().collect(),
        };
        let shown = &self.rates[self.rates.len().saturating_sub(BAR)..];
        let most = shown.iter().copied().fold(1.0, f64::max);
        let top = marks.len() - 1;
        let mark = |rate: &f64| {
            let above = |level: &usize| rate * top as f64 >= most * *level as f64;
            marks[(1..=top).take_while(above).count()]
        };
        shown.iter().map(mark).collect()
    }

    /// A histogram of latencies, with rows of equal width on a logarithmic scale.
    fn histogram(&self, latency: &Durations) -> Vec<String> {
        let cells: Vec<(u64, u64)> = latency
            .cells()
            .map(|(edge_ns, count)| (edge_ns.unwrap_or(1 << 37), count))
            .collect();
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else {
            return vec!["  no answer yet".to_owned()];
        };
        let (low, high) = ((first.0 as f64).ln(), (last.0 as f64).ln());
        let step = ((high - low) / ROWS as f64).max(0.06);
        let edges_ns = (1..=ROWS).map(|row| (low + step * row as f64).exp());
        let mut rows: Vec<(f64, u64)> = edges_ns.map(|edge_ns| (edge_ns, 0)).collect();
        for (edge_ns, count) in cells {
            let row = rows
                .iter()
                .position(|(upper, _)| edge_ns as f64 <= *upper * 1.000_001);
            rows[row.unwrap_or(ROWS - 1)].1 += count;
        }
        let most = rows.iter().map(|row| row.1).max().unwrap_or(0).max(1);
        let all = latency.len().max(1) as f64;
        let line = |(edge_ns, count): (f64, u64)| {
            let edge = duration(edge_ns);
            let bar = self.bar(count as f64 / most as f64, BAR);
            format!(
                "  to {edge:>8}  {bar:BAR$} {:5.1} %",
                count as f64 / all * 100.0
            )
        };
        rows.into_iter().map(line).collect()
    }
}

/// The whole words of a line that fit into the width. A single long word is cut.
fn cut(line: &str, width: usize) -> &str {
    let Some((end, _)) = line.char_indices().nth(width) else {
        return line;
    };
    let fitting = &line[..end];
    if line[end..].starts_with(' ') {
        return fitting;
    }
    let whole = fitting.rfind(' ').map_or("", |space| &fitting[..space]);
    match whole.trim() {
        "" => fitting,
        _ => whole.trim_end_matches([',', ' ']),
    }
}

/// The limits of a load in requests and time, if it has them.
fn extent(load: &Load) -> (Option<u64>, Option<Duration>) {
    match load {
        Load::Closed { stop, .. } => (stop.requests, stop.duration),
        Load::Open {
            phases,
            requests_max,
            ..
        } => (
            *requests_max,
            Some(phases.iter().map(|phase| phase.duration).sum()),
        ),
    }
}

/// A duration in a suitable unit.
fn duration(ns: f64) -> String {
    let us = ns / 1e3;
    if us < 1e3 {
        format!("{us:.0} us")
    } else if us < 1e6 {
        format!("{:.2} ms", us / 1e3)
    } else {
        format!("{:.2} s", us / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use load::Counts;
    use model::Stop;

    use super::*;

    fn load() -> Load {
        Load::Closed {
            connections: 1,
            stop: Stop {
                requests: Some(200),
                duration: None,
            },
        }
    }

    fn look(is_utf8: bool, width: usize) -> String {
        let counts = Counts {
            begun: 52,
            ended: 50,
            passed: 49,
            mismatched: 1,
            ..Counts::default()
        };
        let seen = JobProgress {
            counts,
            ..JobProgress::default()
        };
        let look = Look {
            label: "http://127.0.0.1:8080/",
            load: &load(),
            elapsed: Duration::from_secs(2),
            seen: &seen,
            rates: &[10.0, 40.0],
            is_utf8,
        };
        look.text(width)
    }

    #[test]
    fn a_screen_holds_progress_outcomes_and_rates() {
        let text = look(true, 80);
        for words in [
            "████████░░░░░░░░░░░░░░░░░░░░░░░░  25 %  2.0 s",
            "49 passed, 1 mismatched, 0 failed, 0 missed, 2 in flight",
            "40/s now, 25/s so far  ▂█",
            "p50 -,",
            "no answer yet",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn a_screen_fits_its_terminal_and_may_be_ascii() {
        let text = look(false, 40);
        assert!(text.is_ascii(), "{text}");
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
    }

    #[test]
    fn a_line_is_cut_between_words() {
        assert_eq!(cut("  12 passed, 0 failed", 14), "  12 passed, 0");
        assert_eq!(cut("  12 passed, 0 failed", 13), "  12 passed");
        assert_eq!(cut("  12 passed", 11), "  12 passed");
        assert_eq!(cut("http://127.0.0.1:8080/", 10), "http://127");
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        let all = [512.0, 999_400.0, 1_290_000.0, 2_500_000_000.0].map(duration);
        assert_eq!(all, ["1 us", "999 us", "1.29 ms", "2.50 s"]);
    }
}
