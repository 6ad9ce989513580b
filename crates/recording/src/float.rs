//! Conversion of counts to floats.

/// A count as a float.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of one run stay far below 2^53"
)]
pub fn float(count: u64) -> f64 {
    count as f64
}
