//! Tests of histograms.

use proptest::prelude::*;

use super::*;

fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    for value in values {
        histogram.record_ns(value);
    }
    histogram
}

/// Exponential durations with a mean of 500 us, from a fixed sequence.
#[expect(
    clippy::cast_possible_truncation,
    reason = "whole nanoseconds are enough"
)]
fn exponentials(count: usize) -> Vec<u64> {
    let mut state = 1_u64;
    (0..count)
        .map(|_| {
            // Knuth's MMIX generator. Its upper bits are good enough here.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((state >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            (-uniform.ln() * 500_000.0) as u64
        })
        .collect()
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * expected.abs(),
        "{found} instead of {expected}"
    );
}

#[test]
fn an_empty_histogram_has_no_figures() {
    let empty = Histogram::new();
    assert!(empty.is_empty());
    assert_eq!(empty.len(), 0);
    assert_eq!(empty.min_ns(), None);
    assert_eq!(empty.max_ns(), None);
    assert_eq!(empty.mean_ns(), None);
    assert_eq!(empty.trimmed_mean_ns(0.9), None);
    assert_eq!(empty.stddev_ns(), None);
    assert_eq!(empty.quantile_ns(0.5), None);
    assert_eq!(empty.share_at_or_below_ns(1), None);
    assert_eq!(empty.recorded().count(), 0);
    assert_eq!(empty.saturated(), 0);
}

#[test]
fn small_values_are_exact_and_large_ones_within_a_thousandth() {
    for value in [0, 1, 2, 999, 2_047] {
        let one = of([value]);
        assert_eq!((one.min_ns(), one.max_ns()), (Some(value), Some(value)));
    }
    for value in [2_049, 1_234_567, 987_654_321_012, Histogram::MAX_NS] {
        let one = of([value]);
        let (low, high) = (one.min_ns().unwrap(), one.max_ns().unwrap());
        assert!(low <= value && value <= high, "{low} {value} {high}");
        assert!((high - low) as f64 <= value as f64 / 1_000.0);
        assert_near(one.mean_ns().unwrap(), value as f64, 0.000_5);
    }
}

#[test]
fn a_trimmed_mean_is_that_of_the_shortest() {
    // 18 of 20 are kept: 1 to 18.
    let twenty = of((1..=18).chain([1_000_000, 2_000_000]));
    assert_eq!(twenty.trimmed_mean_ns(0.9), Some(9.5));
    // 13.5 of 15 are kept: 1 to 13, and half of 14.
    let fifteen = of(1..=15);
    assert_near(
        fifteen.trimmed_mean_ns(0.9).unwrap(),
        (91.0 + 7.0) / 13.5,
        1e-12,
    );
    // The cut is inside of a bucket: 1 once, and 3 eight times of nine.
    let ten = of([1].into_iter().chain([3; 9]));
    assert_near(ten.trimmed_mean_ns(0.9).unwrap(), 25.0 / 9.0, 1e-12);
    assert_eq!(of([7]).trimmed_mean_ns(0.9), Some(7.0));
}

#[test]
fn a_trimmed_mean_of_all_is_the_mean() {
    let all = of(exponentials(10_000));
    let mean = all.mean_ns().unwrap();
    assert_near(all.trimmed_mean_ns(1.0).unwrap(), mean, 1e-9);
    assert!(all.trimmed_mean_ns(0.9).unwrap() < mean);
}

#[test]
fn standard_deviation_counts_every_sample() {
    for count in [100, 10_000, 1_000_000] {
        let values = exponentials(count);
        let mean = values.iter().sum::<u64>() as f64 / count as f64;
        let squares: f64 = values
            .iter()
            .map(|value| (*value as f64 - mean).powi(2))
            .sum();
        let expected = (squares / count as f64).sqrt();
        let histogram = of(values);
        assert_near(histogram.mean_ns().unwrap(), mean, 0.000_1);
        assert_near(histogram.stddev_ns().unwrap(), expected, 0.001);
        assert_near(histogram.stddev_ns().unwrap(), 500_000.0, 0.15);
        // The slip of a well-known tool: one squared deviation for each distinct value.
        let slip: f64 = histogram
            .recorded()
            .map(|(value, _)| (value as f64 - mean).powi(2))
            .sum();
        let slip = (slip / count as f64).sqrt();
        assert!(
            count < 1_000_000 || slip < expected / 2.0,
            "{slip} is too near to {expected} for this test to notice the slip"
        );
    }
}

#[test]
fn a_quantile_is_the_sample_at_its_rank() {
    let hundred = of(1..=100);
    for (quantile, value) in [
        (0.0, 1),
        (0.001, 1),
        (0.01, 1),
        (0.07, 7),
        (0.5, 50),
        (0.501, 51),
        (0.9, 90),
        (0.99, 99),
        (0.999, 100),
        (1.0, 100),
        (-1.0, 1),
        (2.0, 100),
    ] {
        assert_eq!(hundred.quantile_ns(quantile), Some(value), "{quantile}");
    }
}

#[test]
fn a_share_is_the_inverse_of_a_quantile() {
    let hundred = of(1..=100);
    assert_eq!(hundred.share_at_or_below_ns(0), Some(0.0));
    assert_eq!(hundred.share_at_or_below_ns(25), Some(0.25));
    assert_eq!(hundred.share_at_or_below_ns(1_000), Some(1.0));
}

#[test]
fn values_of_an_hour_and_more_are_counted_as_such() {
    let histogram = of([1, Histogram::MAX_NS, Histogram::MAX_NS + 1, u64::MAX]);
    assert_eq!(histogram.len(), 4);
    assert_eq!(histogram.saturated(), 3);
    let read = Histogram::decode(&histogram.encode()).unwrap();
    assert_eq!(read.saturated(), 3);
}

#[test]
fn the_text_is_the_one_other_tools_read() {
    // Read by Python's HdrHistogram 0.10.8 with the same count, minimum, maximum, mean,
    // deviation and quantiles.
    let text = of([0, 1, 5, 5, 1_000, 123_456, 9_999_999, 250_000_000, u64::MAX]).encode();
    assert!(text.starts_with("HISTFAAA"), "{text}");
    let read = Histogram::decode(&text).unwrap();
    assert_eq!(read.len(), 9);
    assert_eq!(read.quantile_ns(0.5), Some(1_000));
}

#[test]
fn histograms_of_other_tools_are_read_whatever_their_layout() {
    // Written by Python's HdrHistogram with a range of 1 to 10,000,000 and two digits. The values are 0, 1,
    // 5, 5, 1,000, 123,456 and 9,999,999.
    let text = "HISTFAAAACt4nJNpmSzMwMDAywABTFCaEUzOmNZg/wEqwcTK8pyd6TUv02keJgCUcQcE";
    let found: Vec<(u64, u64)> = Histogram::decode(text).unwrap().recorded().collect();
    assert_eq!(
        found,
        [
            (0, 1),
            (1, 1),
            (5, 2),
            (1_003, 1),
            (123_903, 1),
            (10_027_007, 1)
        ]
    );
}

#[test]
fn what_is_no_histogram_is_refused_with_the_reason() {
    let why = |text: &str| Histogram::decode(text).unwrap_err().to_string();
    assert!(why("not base64!").starts_with("expected a histogram in base64"));
    assert!(why("aGVsbG8gd29ybGQ=").starts_with("expected a compressed HdrHistogram V2"));
    assert!(why("").starts_with("expected a compressed HdrHistogram V2"));
    let text = of([1, 2, 3]).encode();
    let mut bytes = BASE64.decode(&text).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 0xff;
    assert!(Histogram::decode(&BASE64.encode(&bytes)).is_err());
    bytes.truncate(half);
    assert!(why(&BASE64.encode(&bytes)).starts_with("expected a compressed HdrHistogram V2"));
}

/// A compressed V2 text around any content.
fn wrap(v2: &[u8]) -> String {
    use std::io::Write as _;
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    deflated.write_all(v2).unwrap();
    let deflated = deflated.finish().unwrap();
    let mut bytes = Histogram::COMPRESSED_COOKIE.to_vec();
    bytes.extend(u32::try_from(deflated.len()).unwrap().to_be_bytes());
    bytes.extend(deflated);
    BASE64.encode(bytes)
}

/// A V2 histogram with our layout, a stated length and these encoded counts.
fn v2(stated: u32, counts: &[u8]) -> Vec<u8> {
    let mut bytes = 0x1c84_9313_u32.to_be_bytes().to_vec();
    bytes.extend(stated.to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
    bytes.extend(3_u32.to_be_bytes());
    bytes.extend(1_u64.to_be_bytes());
    bytes.extend(Histogram::MAX_NS.to_be_bytes());
    bytes.extend(1.0_f64.to_be_bytes());
    bytes.extend(counts);
    bytes
}

#[test]
fn a_text_cannot_ask_for_more_memory_than_a_histogram_needs() {
    let why = |v2: &[u8]| Histogram::decode(&wrap(v2)).unwrap_err().to_string();
    assert_eq!(
        why(&v2(u32::MAX, &[2])),
        "the content is not a V2 histogram: it is shorter than its header states"
    );
    assert_eq!(
        why(&[0; 1024 * 1024]),
        "the histogram inflates to more than 589864 bytes"
    );
    assert_eq!(
        why(&v2(9, &[0xff; 9])),
        "the content is not a V2 histogram: a count is impossible"
    );
    assert_eq!(Histogram::decode(&wrap(&v2(1, &[2]))).unwrap(), of([0]));
}

#[test]
fn a_histogram_finer_than_ours_is_refused_before_any_of_its_work() {
    let mut fine = v2(1, &[2]);
    fine[15] = 5;
    let error = Histogram::decode(&wrap(&fine)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a histogram of at most 3 significant digits, found 5"
    );
}

fn arb_values() -> impl Strategy<Value = Vec<u64>> {
    let value = prop_oneof![0..3_000_u64, 0..10_000_000_000_u64, any::<u64>()];
    prop::collection::vec(value, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_keeps_everything(values in arb_values()) {
        let histogram = of(values);
        let read = Histogram::decode(&histogram.encode()).unwrap();
        prop_assert_eq!(read.min_ns(), histogram.min_ns());
        prop_assert_eq!(read.max_ns(), histogram.max_ns());
        prop_assert_eq!(read.encode(), histogram.encode());
        prop_assert_eq!(read, histogram);
    }

    #[test]
    fn the_order_of_merging_does_not_matter(
        parts in prop::collection::vec(arb_values(), 1..6), turn in any::<prop::sample::Index>()
    ) {
        let merge = |parts: &[Vec<u64>]| {
            parts.iter().fold(Histogram::new(), |mut sum, part| {
                sum.add(&of(part.iter().copied()));
                sum
            })
        };
        let at_once = of(parts.iter().flatten().copied());
        let mut turned = parts.clone();
        turned.rotate_left(turn.index(parts.len()));
        prop_assert_eq!(merge(&parts), at_once.clone());
        prop_assert_eq!(merge(&turned), at_once);
    }

    #[test]
    fn quantiles_match_the_sorted_samples(values in arb_values(), share in 0.0_f64..=1.0) {
        prop_assume!(!values.is_empty());
        let mut sorted: Vec<u64> = values.iter().map(|value| (*value).min(Histogram::MAX_NS)).collect();
        sorted.sort_unstable();
        // The smallest value that enough samples do not exceed, by counting.
        let needed = share * sorted.len() as f64;
        let expected = (1..)
            .zip(&sorted)
            .find(|(rank, _)| f64::from(*rank) >= needed)
            .map(|(_, value)| *value as f64)
            .unwrap();
        let found = of(values).quantile_ns(share).unwrap() as f64;
        prop_assert!((found - expected).abs() <= expected / 1_000.0, "{} {}", found, expected);
    }

    #[test]
    fn damaged_text_is_never_a_crash(values in arb_values(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), text in ".{0,80}") {
        let _ = Histogram::decode(&text);
        let mut bytes = BASE64.decode(of(values).encode()).unwrap();
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = Histogram::decode(&BASE64.encode(bytes));
    }

    #[test]
    fn any_content_is_never_a_crash(counts in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xff), Just(1)], 0..100)) {
        let stated = u32::try_from(counts.len()).unwrap();
        let _ = Histogram::decode(&wrap(&v2(stated, &counts)));
    }
}

#[test]
fn the_spread_of_a_cut_mean_is_the_error_that_it_has() {
    let mut random = crate::random::Random::new(23);
    // Exponential: a long tail, and the cut leaves out a quarter of the samples.
    let mut draw = || {
        let uniform = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some milliseconds"
        )]
        let nanoseconds = (1e6 - 1e5 * (1.0 - uniform).ln()) as u64;
        nanoseconds
    };
    let sample = |draw: &mut dyn FnMut() -> u64, size: usize| {
        let mut histogram = Histogram::new();
        (0..size).for_each(|_| histogram.record_ns(draw()));
        histogram
    };
    let promised = sample(&mut draw, 100_000)
        .trimmed_spread_ns(0.75)
        .expect("samples");
    let means: Vec<f64> = (0..2_000)
        .map(|_| {
            sample(&mut draw, 200)
                .trimmed_mean_ns(0.75)
                .expect("samples")
        })
        .collect();
    let mean = means.iter().sum::<f64>() / 2_000.0;
    let squares: f64 = means.iter().map(|it| (it - mean).powi(2)).sum();
    let found = (squares / 1_999.0).sqrt() * 200_f64.sqrt();
    assert!((found / promised - 1.0).abs() < 0.06, "{found} {promised}");
    // All samples: the ordinary standard deviation.
    let all = sample(&mut draw, 1_000);
    let ordinary = all.stddev_ns().expect("samples");
    let spread = all.trimmed_spread_ns(1.0).expect("samples");
    assert!((spread / ordinary - 1.0).abs() < 0.01);
    assert_eq!(Histogram::new().trimmed_spread_ns(0.75), None);
}
