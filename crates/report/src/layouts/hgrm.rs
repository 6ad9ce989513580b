//! Layout of HdrHistogram's percentile table: milliseconds, five rows for every halving of the distance to
//! 100 %.
//!
//! HdrHistogram's plotter and programs for `wrk2 --latency` read it.

use std::fmt::Write as _;

use recording::float;
use stats::Histogram;

const ROWS_PER_HALVING: f64 = 5.0;

pub(super) fn hgrm(latency: &Histogram) -> String {
    let mut out = format!(
        "{:>12} {:>12} {:>12} {:>12}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let total = latency.len();
    let mut counted = 0;
    let mut target = 0.0;
    for (value_ns, count) in latency.recorded() {
        counted += count;
        // One bucket may cover several percentiles, and each gets its row. The bucket that completes the
        // count gets one row here and the last row below.
        while target <= 100.0 * float(counted) / float(total) {
            write_row(&mut out, value_ns, target / 100.0, counted);
            target = next(target);
            // All percentiles beyond the last bucket would be 100. Their single row follows below.
            if counted == total {
                break;
            }
        }
    }
    if let Some(max_ns) = latency.max_ns() {
        write_row(&mut out, max_ns, 1.0, total);
    }
    // HdrHistogram prints 0 for the mean without values.
    let ms = |nanoseconds: Option<f64>| nanoseconds.unwrap_or(0.0) / 1e6;
    let _ = writeln!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {total:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {SUB_BUCKETS:>12}]",
        ms(latency.mean_ns()),
        ms(latency.stddev_ns()),
        ms(latency.max_ns().map(float)),
        buckets(),
    );
    out
}

/// Number of distinct values in a bucket of three significant digits.
const SUB_BUCKETS: u64 = 2048;

/// Number of buckets up to the largest value. Each bucket is twice as wide as the previous one.
fn buckets() -> u32 {
    let mut buckets = 1;
    let mut reach = SUB_BUCKETS;
    while reach <= Histogram::MAX_NS {
        reach *= 2;
        buckets += 1;
    }
    buckets
}

/// The next percentile. The step is halved with every halving of the distance to 100.
fn next(percentile: f64) -> f64 {
    let halvings = (100.0 / (100.0 - percentile)).log2().floor() + 1.0;
    percentile + 100.0 / (ROWS_PER_HALVING * 2f64.powf(halvings))
}

fn write_row(out: &mut String, value_ns: u64, share: f64, counted: u64) {
    let inverse = if share < 1.0 {
        format!("{:.2}", 1.0 / (1.0 - share))
    } else {
        "inf".to_owned()
    };
    let value_ms = float(value_ns) / 1e6;
    let _ = writeln!(
        out,
        "{value_ms:>12.3} {share:>12.6} {counted:>12} {inverse:>12}"
    );
}
