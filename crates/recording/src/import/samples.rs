//! Figures from files that contain every request. Their quantiles are exact, and the number of omitted
//! requests is clear.

use model::Metric;
use stats::sample;

use super::{ForeignRun, Missing};

impl ForeignRun {
    /// Stores figures of single latencies. The file has them in a unit of `unit_us` microseconds.
    pub(super) fn put_samples(&mut self, unit_us: f64, values: &[f64]) {
        let quantile = |share: f64| sample::quantile(values, share);
        self.put_all(
            unit_us,
            [
                (Metric::Min, sample::min(values)),
                (Metric::Mean, sample::mean(values)),
                (Metric::Stdev, sample::stddev(values)),
                (Metric::P50, quantile(0.5)),
                (Metric::P75, quantile(0.75)),
                (Metric::P90, quantile(0.9)),
                (Metric::P95, quantile(0.95)),
                (Metric::P99, quantile(0.99)),
                (Metric::P999, quantile(0.999)),
                (Metric::Max, sample::max(values)),
            ],
        );
    }
}

/// The rows of a comma-separated table, with their lines in the file. A broken row is an error.
pub(super) fn rows(
    text: &str,
    has_header: bool,
) -> impl Iterator<Item = Result<(usize, csv::StringRecord), Missing>> {
    let reader = csv::ReaderBuilder::new()
        .has_headers(has_header)
        // The reader of the format rejects rows of other lengths, because it can name the missing field.
        .flexible(true)
        .from_reader(std::io::Cursor::new(text.to_owned()));
    // Lines are counted as in an editor, with the header as line 1.
    let first = 1 + usize::from(has_header);
    reader
        .into_records()
        .enumerate()
        .map(move |(index, row)| match row {
            Ok(row) => Ok((index + first, row)),
            Err(error) => Err(Missing(format!("row {} is broken: {error}", index + first))),
        })
}

/// The index of a column, from the names in the first line.
pub(super) fn column(text: &str, name: &str) -> Option<usize> {
    let header = text.lines().next()?;
    header.split(',').position(|known| known.trim() == name)
}

#[cfg(test)]
mod tests {
    use model::Metric::{Max, Mean, Min, P50, Requests};

    use crate::import::tests::{claims, is_noted, one};

    #[test]
    fn the_table_of_k6_leaves_out_what_setup_sent() {
        let run = one(include_str!("../../samples/k6-points.csv"));
        assert_eq!(run.shape, "k6 --out csv");
        claims(
            &run,
            &[(Mean, 3.992_945), (Max, 10.629_866), (Requests, 40.0)],
            Some((40, 1)),
        );
        is_noted(
            &run,
            "1 requests of `setup()` and `teardown()` are left out",
        );
    }

    #[test]
    fn the_lists_of_hey_and_ab_have_exact_figures() {
        let hey = one(include_str!("../../samples/hey.csv"));
        assert_eq!(hey.shape, "hey -o csv");
        claims(
            &hey,
            &[(Mean, 4.076_667), (Max, 10.3), (Requests, 59.0 / 0.095)],
            Some((59, 1)),
        );
        let ab = one(include_str!("../../samples/ab.tsv"));
        assert_eq!(ab.shape, "ab -g");
        claims(&ab, &[(Min, 2.0), (Mean, 4.716_667), (Max, 8.0)], None);
    }

    #[test]
    fn the_hits_of_vegeta_mean_the_same_in_both_kinds() {
        let json = one(include_str!("../../samples/vegeta-hits.json"));
        let csv = one(include_str!("../../samples/vegeta-hits.csv"));
        assert_eq!(
            (json.shape, csv.shape),
            ("vegeta encode", "vegeta encode -to=csv")
        );
        assert_eq!(json.figures, csv.figures);
        // The time from the first send to the last response is 40 ms.
        claims(
            &json,
            &[
                (Min, 1.0),
                (P50, 2.65),
                (Mean, 4.075),
                (Max, 10.0),
                (Requests, 75.0),
            ],
            Some((3, 1)),
        );
        is_noted(&csv, "503 Service Unavailable");
    }

    #[test]
    fn a_broken_row_is_named() {
        for (text, what) in [
            (
                "metric_name,timestamp,metric_value,group\nhttp_reqs,then,1,\n",
                "row 2 has no time, found `then`",
            ),
            (
                "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n0.1,x\n",
                "row 2 does not have three numbers",
            ),
        ] {
            let message = crate::import::read(text).unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
        }
    }
}
