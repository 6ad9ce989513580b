//! The table of planted amounts: the runs that claim each amount, and the runs with the right interval.

use std::fmt::Write as _;

use super::figures::{Difference, median};

/// The results of all runs for one planted amount.
pub(super) struct Row {
    pub(super) planted_us: f64,
    pub(super) subject: String,
    /// One difference for each run.
    pub(super) found: Vec<Difference>,
    /// The time in microseconds that the servers of each run added to the planted amount. Empty if they did not
    /// measure it.
    pub(super) added_us: Vec<f64>,
}

impl Row {
    /// The true difference of a run, in microseconds.
    fn truth_us(&self, run: usize) -> f64 {
        self.planted_us + self.added_us.get(run).copied().unwrap_or_default()
    }

    fn is_right(&self, run: usize) -> bool {
        self.found[run].contains(self.truth_us(run))
    }

    /// The planted amount, with the median of the added time if the servers measured it.
    fn planted(&self) -> String {
        match self.added_us.is_empty() {
            true => format!("{:.0} us", self.planted_us),
            // The sum with 0 turns -0.0 into 0.0.
            false => {
                let added_us = (median(&self.added_us) * 10.0).round() / 10.0 + 0.0;
                format!("{:.0} us {added_us:+.1}", self.planted_us)
            }
        }
    }
}

/// The table, with a heading for its subjects.
pub(super) fn table(heading: &str, rows: &[Row]) -> String {
    let mut out = format!(
        "| planted | {heading} | claimed in | inside the interval in | typical result |\n\
         |---|---|---|---|---|\n"
    );
    for row in rows {
        let all = row.found.len();
        let median_of = |of: fn(Difference) -> f64| {
            let values = row.found.iter().copied().map(of);
            median(&values.collect::<Vec<f64>>())
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} of {all} | {} of {all} | {:+.1} us ±{:.1} |",
            row.planted(),
            row.subject,
            row.found.iter().filter(|it| it.is_claimed()).count(),
            (0..all).filter(|run| row.is_right(*run)).count(),
            median_of(|it| it.value),
            median_of(Difference::half_width),
        );
    }
    out
}

/// Number of runs in which every interval contains its true difference.
pub(super) fn right_together(rows: &[Row]) -> usize {
    let runs = rows.iter().map(|row| row.found.len()).min().unwrap_or(0);
    let is_right = |run: &usize| rows.iter().all(|row| row.is_right(*run));
    (0..runs).filter(is_right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_count_alone_and_together() {
        let step = |low: f64, high: f64| Difference {
            value: f64::midpoint(low, high),
            low,
            high,
        };
        let row = |planted_us: f64, found: [Difference; 2]| Row {
            planted_us,
            subject: "typical".to_owned(),
            found: found.to_vec(),
            added_us: Vec::new(),
        };
        let rows = [
            row(5.0, [step(4.0, 6.0), step(-1.0, 7.0)]),
            row(20.0, [step(18.0, 21.0), step(21.0, 24.0)]),
        ];
        let table_of = |rows: &[Row]| table("figure", rows);
        let all = table_of(&rows);
        let lines: Vec<&str> = all.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| 5 us | typical | 1 of 2 | 2 of 2 | +4.0 us ±2.5 |",
                "| 20 us | typical | 2 of 2 | 1 of 2 | +21.0 us ±1.5 |",
            ]
        );
        assert_eq!(right_together(&rows), 1);

        // The second server took 1 us more for its responses than the first.
        let mut rows = rows;
        rows[1].added_us = vec![1.0, 1.0];
        assert_eq!(right_together(&rows), 2);
        assert!(table_of(&rows[1..]).contains("| 20 us +1.0 | typical | 2 of 2 | 2 of 2 |"));
    }
}
