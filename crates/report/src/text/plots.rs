//! Small pictures of characters: the overhead with its interval.

use analysis::summary::{Summary, VariantSummary};
use model::Metric;
use recording::digits;

/// Width of the widest picture, in columns.
const WIDTH_MAX: usize = 60;
/// Minimum width of a useful picture, in columns.
const WIDTH_MIN: usize = 24;
/// The overhead in the headline metric, one line per variant on one scale, with the axis below: `├──●──┤`.
/// Empty without intervals or if the terminal is too narrow.
pub(super) fn intervals(summary: &Summary, width: usize) -> String {
    let lines: Vec<(String, [f64; 3])> = summary
        .variants
        .iter()
        .filter_map(|row| Some((row.title(), ends(row, summary.headline)?)))
        .collect();
    let name_width = lines.iter().map(|(name, _)| name.chars().count()).max();
    // Names take at most a third of the width, so that the picture has enough space.
    let name_width = name_width.unwrap_or(0).min(width / 3);
    let columns = width.saturating_sub(name_width + 2).min(WIDTH_MAX);
    // Both folds begin at 0, so that zero is always on the scale.
    let low = lines.iter().map(|(_, ends)| ends[0]).fold(0.0, f64::min);
    let high = lines.iter().map(|(_, ends)| ends[2]).fold(0.0, f64::max);
    if columns < WIDTH_MIN || high <= low {
        return String::new();
    }
    let unit = match summary.headline {
        Metric::Requests => " %".to_owned(),
        metric => format!(" {}", summary.unit(metric).sign()),
    };
    let scale = Scale { low, high, columns };
    let mut out = String::new();
    for (name, ends) in &lines {
        out += &format!(
            "{:<name_width$}  {}\n",
            cut(name, name_width),
            scale.line(*ends)
        );
    }
    out + &format!("{:name_width$}  {}\n", "", scale.axis(&unit))
}

/// The low end, the estimate and the high end. For requests, it is a change in percent, otherwise a
/// difference in the shown unit.
fn ends(row: &VariantSummary, metric: Metric) -> Option<[f64; 3]> {
    let overhead = row.metric(metric)?.overhead.as_ref()?;
    if metric == Metric::Requests {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        return Some([
            percent(overhead.ratio_low?),
            percent(overhead.ratio?),
            percent(overhead.ratio_high?),
        ]);
    }
    let unit = row.unit(metric);
    Some([
        unit.shown(overhead.difference_low?),
        unit.shown(overhead.difference),
        unit.shown(overhead.difference_high?),
    ])
}

struct Scale {
    low: f64,
    high: f64,
    columns: usize,
}

impl Scale {
    fn column(&self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of at most some hundred columns"
        )]
        // The index of the last column is one less than their number. Otherwise the high end would lie
        // outside.
        let column = (share.clamp(0.0, 1.0) * (self.columns - 1) as f64).round() as usize;
        column
    }

    fn line(&self, [low, estimate, high]: [f64; 3]) -> String {
        let mut cells = vec![' '; self.columns];
        let (from, to) = (self.column(low), self.column(high));
        cells[from..=to].fill('─');
        cells[self.column(0.0)] = if (from..=to).contains(&self.column(0.0)) {
            '┼'
        } else {
            '│'
            // In this order, the estimate overwrites an end, and an end overwrites zero, if they share a
            // column.
        };
        cells[from] = '├';
        cells[to] = '┤';
        cells[self.column(estimate)] = '●';
        cells.into_iter().collect::<String>().trim_end().to_owned()
    }

    /// Labels for zero and the ends of the scale, if there is space between them.
    fn axis(&self, unit: &str) -> String {
        // A tenth of the scale defines the digits, because a column is never finer than a sixtieth.
        let step = (self.high - self.low) / 10.0;
        let label = |value: f64| {
            let sign = if value > 0.0 { "+" } else { "" };
            format!("{sign}{}{unit}", digits::tick(value, step))
        };
        let mut cells = vec![' '; self.columns];
        let mut put = |text: &str, middle: usize| {
            let length = text.chars().count();
            let from = middle
                .saturating_sub(length / 2)
                .min(self.columns.saturating_sub(length));
            // Two columns of space surround a label. Otherwise two labels would look like one.
            let room = from.saturating_sub(2)..(from + length + 2).min(self.columns);
            if cells[room].iter().all(|cell| *cell == ' ') {
                for (cell, character) in cells[from..].iter_mut().zip(text.chars()) {
                    *cell = character;
                }
            }
        };
        // Zero comes first, because it must stay if there is not enough space for all labels.
        put("0", self.column(0.0));
        if self.low < 0.0 {
            put(&label(self.low), 0);
        }
        if self.high > 0.0 {
            put(&label(self.high), self.columns - 1);
        }
        cells.into_iter().collect::<String>().trim_end().to_owned()
    }
}

fn cut(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    name.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(low: f64, high: f64) -> Scale {
        Scale {
            low,
            high,
            columns: 25,
        }
    }

    #[test]
    fn an_interval_stands_where_its_figures_say() {
        let line = scale(-10.0, 14.0).line([2.0, 6.0, 14.0]);
        assert_eq!(line, "          │ ├───●───────┤");
        let line = scale(-10.0, 14.0).line([-10.0, -2.0, 4.0]);
        assert_eq!(line, "├───────●─┼───┤");
        assert_eq!(scale(-10.0, 14.0).axis(" ms"), "-10 ms    0        +14 ms");
    }
}
