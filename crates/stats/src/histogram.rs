//! Counts of durations in nanoseconds, in the format that HdrHistogram tools read.
//!
//! Every value is kept to three significant digits. A bucket is therefore never wider than 0.1 % of its
//! value, and two histograms add up exactly, in any order. Memory is constant (about 270 KiB) for any number
//! of samples.
//!
//! All figures are computed from the buckets, so they are the same before [`Histogram::encode`] and after
//! [`Histogram::decode`]. The format has no place for the exact smallest and largest sample. If a bucket
//! stands for a single value, the conventions of HdrHistogram hold. Quantiles and the maximum are the upper
//! edge of their bucket, the minimum is the lower edge. Other tools then print the same numbers for the same
//! recording.

use std::fmt;
use std::io::Read;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use crate::trimmed;

/// Counted durations in nanoseconds, at most one hour.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
}

/// The reason why a text is not a histogram.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The text is not base64.
    #[error("expected a histogram in base64, found {0}")]
    NotBase64(base64::DecodeError),
    /// The first bytes do not belong to a compressed V2 histogram.
    #[error(
        "expected a compressed HdrHistogram V2 (its text starts with `HISTFAAA`), found another format"
    )]
    OtherFormat,
    /// The compressed part does not inflate.
    #[error("the compressed part of the histogram is damaged: {0}")]
    Damaged(std::io::Error),
    /// The content inflates to more than any histogram needs.
    #[error("the histogram inflates to more than {limit} bytes")]
    TooLarge {
        /// Largest accepted size in bytes.
        limit: u64,
    },
    /// The histogram has more significant digits than ours.
    #[error(
        "expected a histogram of at most {} significant digits, found {digits}",
        Histogram::SIGNIFICANT_DIGITS
    )]
    TooFine {
        /// Significant digits of the decoded histogram.
        digits: u32,
    },
    /// The inflated bytes are not a V2 histogram.
    #[error("the content is not a V2 histogram: {0}")]
    Malformed(String),
}

impl Histogram {
    /// One hour. Larger values are recorded as this one, see [`Histogram::saturated`].
    pub const MAX_NS: u64 = 3_600_000_000_000;

    /// The share of the samples, the shortest first, that the typical latency averages.
    pub const TYPICAL_SHARE: f64 = trimmed::TYPICAL_SHARE;

    const SIGNIFICANT_DIGITS: u8 = 3;

    /// A compressed V2 histogram starts with its cookie, the length of the compressed part, and
    /// that part.
    const COMPRESSED_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

    /// The head, and the largest payload with three digits: 64 x 1,024 counts of 9 bytes.
    const INFLATED_BYTES_MAX: u64 = Self::HEAD_BYTES + 64 * 1024 * 9;

    /// Length in bytes of a V2 histogram's header, before its counts.
    const HEAD_BYTES: u64 = 40;

    /// An empty histogram for values of 0 ns to one hour.
    #[must_use]
    pub fn new() -> Histogram {
        let counts =
            hdrhistogram::Histogram::new_with_bounds(1, Self::MAX_NS, Self::SIGNIFICANT_DIGITS)
                .expect("the bounds are constants that HdrHistogram accepts");
        Histogram { counts }
    }

    /// Counts one duration. Takes a few nanoseconds and never allocates.
    #[inline]
    pub fn record_ns(&mut self, value: u64) {
        // Clipped here, because the library would count a larger value into the last bucket, and that has an
        // edge above one hour.
        self.counts.saturating_record(value.min(Self::MAX_NS));
    }

    /// Counts the same duration several times.
    pub fn record_n_ns(&mut self, value: u64, count: u64) {
        self.counts
            .saturating_record_n(value.min(Self::MAX_NS), count);
    }

    /// Adds all counts of another histogram. The sum is exact, and the order of additions does not matter.
    pub fn add(&mut self, other: &Histogram) {
        self.counts
            .add(&other.counts)
            .expect("all histograms of this type have the same bounds");
    }

    /// Number of durations that were recorded.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// True if the histogram has no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Number of recorded durations of one hour (to three digits) or more. They count as one hour in every
    /// other figure.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.counts.count_at(Self::MAX_NS)
    }

    /// Shortest duration, to three digits (lower edge of its bucket). `None` when empty.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.counts.min())
    }

    /// Longest duration, to three digits (upper edge of its bucket). `None` when empty.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.counts.max())
    }

    /// Mean over all samples. `None` when empty.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.mean())
    }

    /// Mean over the share `kept` of all samples, the shortest first (a trimmed mean, cut on one side).
    /// `None` when empty. If the cut is inside of a bucket or a sample, the bucket or sample counts in part.
    ///
    /// # Panics
    /// If `kept` is not above 0 and at most 1.
    #[must_use]
    pub fn trimmed_mean_ns(&self, kept: f64) -> Option<f64> {
        let buckets = self.counts.iter_recorded().map(|bucket| {
            // The middle of a bucket, as in the mean over all samples.
            let middle = self.counts.median_equivalent(bucket.value_iterated_to());
            (middle as f64, bucket.count_at_value() as f64)
        });
        trimmed::mean_of_sorted(buckets, self.len() as f64, kept)
    }

    /// Standard deviation per sample of the mean over the share `kept`, in nanoseconds. For the mean of `n`
    /// independent samples, divide it by the square root of `n`. `None` when empty.
    ///
    /// It is the standard deviation of the samples cut off at the quantile `kept`, divided by `kept`. The
    /// source is Tukey and McLaughlin, "Less vulnerable confidence and significance procedures for location
    /// based on a single sample", 1963, for a cut on one side.
    ///
    /// # Panics
    /// If `kept` is not above 0 and at most 1.
    #[must_use]
    pub fn trimmed_spread_ns(&self, kept: f64) -> Option<f64> {
        assert!(kept > 0.0 && kept <= 1.0, "{kept} of the samples");
        let cut = self.quantile_ns(kept)?;
        let (mut sum, mut squares) = (0.0, 0.0);
        for (value, count) in self.recorded() {
            let (value, count) = (value.min(cut) as f64, count as f64);
            sum += value * count;
            squares += value * value * count;
        }
        let all = self.len() as f64;
        let mean = sum / all;
        Some((squares / all - mean * mean).max(0.0).sqrt() / kept)
    }

    /// The typical latency of a mixture of requests, in nanoseconds. `None` without samples. Each request is
    /// cut for itself (see [`Histogram::TYPICAL_SHARE`]) and counts by its weight. A request without samples
    /// does not count. One cut over all requests together would remove only the slowest request.
    #[must_use]
    pub fn typical_of_mixture_ns(
        requests: impl IntoIterator<Item = (f64, Histogram)>,
    ) -> Option<f64> {
        let requests = requests.into_iter();
        trimmed::weighted_mean(requests.map(|(weight, request)| {
            let typical = request.trimmed_mean_ns(Histogram::TYPICAL_SHARE);
            (weight, typical)
        }))
    }

    /// Standard deviation over all samples, every sample counted once (the divisor is the number of samples).
    /// `None` when empty.
    #[must_use]
    pub fn stddev_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.stdev())
    }

    /// The smallest duration (upper edge of its bucket) that at least the share `quantile` of all samples
    /// does not exceed. `None` when empty. Shares outside of 0 to 1 count as 0 and 1.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        // For the quantile 0 the library returns the first bucket's upper edge. The minimum is the lower
        // edge.
        if quantile <= 0.0 {
            return self.min_ns();
        }
        let total = self.len() as f64;
        // 0.07 of 100 samples is 7.000000000000001 in binary, but means the 7th sample.
        let exact = quantile.min(1.0) * total;
        let rank = (exact - exact * 4.0 * f64::EPSILON).ceil().max(1.0);
        // The library rounds up again. Half a rank below, it cannot reach the next rank.
        Some(self.counts.value_at_quantile((rank - 0.5) / total))
    }

    /// Share of the samples (0 to 1) that are at or below `value`, to three digits. `None` when empty.
    #[must_use]
    pub fn share_at_or_below_ns(&self, value: u64) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.quantile_below(value))
    }

    /// Every bucket that is not empty, in rising order, as (upper edge in ns, number of samples).
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    /// The histogram as text: HdrHistogram V2, deflated, in base64, as in HdrHistogram's own log
    /// files. Lossless: the decoded histogram is equal to this one.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.counts, &mut bytes)
            .expect("writing to memory does not fail and every count fits");
        BASE64.encode(bytes)
    }

    /// Reads the text of [`Histogram::encode`] or of another HdrHistogram library. A histogram with another
    /// range or a coarser resolution is recorded again with our layout.
    ///
    /// # Errors
    /// If the text is not a compressed V2 histogram.
    pub fn decode(text: &str) -> Result<Histogram, DecodeError> {
        let bytes = BASE64.decode(text.trim()).map_err(DecodeError::NotBase64)?;
        let v2 = inflate(&bytes)?;
        let decoded: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut v2.as_slice())
            .map_err(|error| DecodeError::Malformed(error.to_string()))?;
        Ok(Histogram::adopt(decoded))
    }

    fn adopt(decoded: hdrhistogram::Histogram<u64>) -> Histogram {
        /// An empty histogram, made once. A report decodes hundreds, and each new one clears 270 KiB.
        static EMPTY: LazyLock<Histogram> = LazyLock::new(Histogram::new);
        let own = &EMPTY.counts;
        let is_same_layout = decoded.low() == own.low()
            && decoded.high() == own.high()
            && decoded.sigfig() == own.sigfig();
        // The same layout keeps every count unchanged. Another layout is recorded again, at the upper edges.
        if is_same_layout {
            return Histogram { counts: decoded };
        }
        let mut ours = Histogram::new();
        for bucket in decoded.iter_recorded() {
            ours.record_n_ns(bucket.value_iterated_to(), bucket.count_at_value());
        }
        ours
    }
}

/// Inflates the compressed part and checks the lengths that it states. The library allocates the stated
/// length before it checks that the data exists.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let compressed = bytes
        .strip_prefix(&Histogram::COMPRESSED_COOKIE)
        .and_then(|rest| rest.split_first_chunk::<4>())
        .and_then(|(length, rest)| rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?))
        .ok_or(DecodeError::OtherFormat)?;
    let mut v2 = Vec::new();
    ZlibDecoder::new(compressed)
        // One byte more than allowed, to distinguish a size above the limit from the limit itself.
        .take(Histogram::INFLATED_BYTES_MAX + 1)
        .read_to_end(&mut v2)
        .map_err(DecodeError::Damaged)?;
    if v2.len() as u64 > Histogram::INFLATED_BYTES_MAX {
        return Err(DecodeError::TooLarge {
            limit: Histogram::INFLATED_BYTES_MAX,
        });
    }
    let word = |place: usize| {
        let bytes = v2.get(place..place + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    // Each further digit needs ten times the buckets. With five digits, a text of a few bytes would take 50
    // MB of counts and seconds of work.
    let digits = word(12).filter(|digits| *digits > u32::from(Histogram::SIGNIFICANT_DIGITS));
    if let Some(digits) = digits {
        return Err(DecodeError::TooFine { digits });
    }
    let is_complete =
        word(4).is_some_and(|stated| v2.len() as u64 >= u64::from(stated) + Histogram::HEAD_BYTES);
    if !is_complete {
        return Err(DecodeError::Malformed(
            "it is shorter than its header states".to_owned(),
        ));
    }
    // A run of 2^63 zeros. It is impossible in a histogram, and the library negates it unchecked.
    if v2.windows(9).any(|window| window == [0xff; 9]) {
        return Err(DecodeError::Malformed("a count is impossible".to_owned()));
    }
    Ok(v2)
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Histogram")
            .field("len", &self.len())
            .field("min_ns", &self.min_ns())
            .field("max_ns", &self.max_ns())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
