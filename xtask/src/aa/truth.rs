//! The table of planted amounts: the runs that claim each amount, and the runs with the right interval.

use std::fmt::Write as _;

use super::figures::{Difference, median};

/// The results of all runs for one planted amount.
pub(super) struct Row {
    pub(super) planted_us: f64,
    pub(super) subject: String,
    /// One difference for each run.
    pub(super) found: Vec<Difference>,
}

impl Row {
    fn is_right(&self, found: &Difference) -> bool {
        found.contains(self.planted_us)
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
            "| {:.0} us | {} | {} of {all} | {} of {all} | {:+.1} us ±{:.1} |",
            row.planted_us,
            row.subject,
            row.found.iter().filter(|it| it.is_claimed()).count(),
            row.found.iter().filter(|it| row.is_right(it)).count(),
            median_of(|it| it.value),
            median_of(Difference::half_width),
        );
    }
    out
}

/// Number of runs in which every interval contains its planted amount.
pub(super) fn right_together(rows: &[Row]) -> usize {
    let runs = rows.iter().map(|row| row.found.len()).min().unwrap_or(0);
    let is_right = |run: &usize| rows.iter().all(|row| row.is_right(&row.found[*run]));
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
        };
        let rows = [
            row(5.0, [step(4.0, 6.0), step(-1.0, 7.0)]),
            row(20.0, [step(18.0, 21.0), step(21.0, 24.0)]),
        ];
        let table = table("figure", &rows);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| 5 us | typical | 1 of 2 | 2 of 2 | +4.0 us ±2.5 |",
                "| 20 us | typical | 2 of 2 | 1 of 2 | +21.0 us ±1.5 |",
            ]
        );
        assert_eq!(right_together(&rows), 1);
    }
}
