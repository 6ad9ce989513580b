//! One phase of an open plan. It computes the time at which a given number of requests has been planned.
//!
//! Counts and times are fixed-point numbers with 64 fractional bits (`Q64`), not floating point. After 72
//! million requests (20,000/s for an hour), a sum of floats is off by microseconds. Even a product loses
//! nanoseconds. Only ramps use floats, in a form without cancellation. Its error stays below a thousandth of
//! a nanosecond.

use model::Phase;

/// A count of requests, or nanoseconds, in units of 2^-64.
pub(crate) type Q64 = u128;

/// Rates below one request in 31 years count as zero.
const RATE_MIN: f64 = 1e-9;

/// Maximum rate. At more than one request per nanosecond, due times would coincide.
pub(crate) const RATE_MAX: f64 = 1e9;

const NANOSECONDS: u64 = 1_000_000_000;
const HALF: Q64 = 1 << 63;
/// 2^64.
const ONE: f64 = ONE_Q64 as f64;
const ONE_Q64: Q64 = 1 << 64;

/// A phase that sends at least one request.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Offset of the segment's start, in ns.
    start: u64,
    /// Requests planned before the segment, as a real number.
    before: Q64,
    /// Requests planned until the end of the segment, as a real number.
    pub(crate) after: Q64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// The rate is constant, with `gap` nanoseconds per request.
    Constant { gap: Q64 },
    /// The rate changes linearly.
    Ramp {
        length: f64,
        /// The lower of the two end rates, per ns.
        low: f64,
        /// Change of the rate per ns, per ns. Always positive.
        slope: f64,
        is_rising: bool,
    },
}

impl Segment {
    /// Prepares a phase of `length` ns that begins at `start`, after `before` requests. `None` if it sends no
    /// request. Both rates are at most [`RATE_MAX`].
    pub(crate) fn new(phase: &Phase, start: u64, length: u64, before: Q64) -> Option<Segment> {
        let [from, to] = [phase.from, phase.to].map(|rate| {
            let per_second = rate.per_second();
            if per_second < RATE_MIN {
                0.0
            } else {
                per_second
            }
        });
        // A linear ramp plans as many requests as its mean rate.
        let mean = (from_float(from) + from_float(to)) / 2;
        let requests = Q64::from(length / NANOSECONDS) * mean
            + Q64::from(length % NANOSECONDS) * mean / Q64::from(NANOSECONDS);
        if requests == 0 {
            return None;
        }
        // The bits of equally written rates are equal.
        let shape = if from.to_bits() == to.to_bits() {
            Shape::Constant {
                gap: divide(Q64::from(NANOSECONDS) << 64, mean),
            }
        } else {
            let length = length as f64;
            let per_ns = |rate: f64| rate / NANOSECONDS as f64;
            Shape::Ramp {
                length,
                low: per_ns(from.min(to)),
                slope: per_ns((to - from).abs()) / length,
                is_rising: from < to,
            }
        };
        Some(Segment {
            start,
            before,
            after: before + requests,
            shape,
        })
    }

    /// Offset in ns at which `count` requests have been planned. Requires `before <= count < after`.
    #[inline]
    pub(crate) fn when(&self, count: Q64) -> u64 {
        debug_assert!(self.before <= count && count < self.after);
        let offset = match self.shape {
            Shape::Constant { gap } => {
                let requests = count - self.before;
                let whole = (requests >> 64) * gap;
                let fraction = scale(gap, fraction_of(requests));
                // Rounded to the nearest nanosecond.
                whole_of(whole + fraction + HALF)
            }
            Shape::Ramp {
                length,
                low,
                slope,
                is_rising,
            } => {
                // Solves low * t + slope * t^2 / 2 = requests for t, counted from the end with the lower
                // rate. This form has no difference of nearly equal numbers.
                let requests = if is_rising {
                    to_float(count - self.before)
                } else {
                    to_float(self.after - count)
                };
                let root = (low * low + 2.0 * slope * requests).sqrt();
                // Before the first request of a ramp from 0, the quotient is 0 / 0.
                let time = if requests > 0.0 {
                    (2.0 * requests / (low + root)).min(length)
                } else {
                    0.0
                };
                let time = if is_rising { time } else { length - time };
                nearest(time)
            }
        };
        self.start + offset
    }
}

/// `value * fraction / 2^64`, rounded down.
fn scale(value: Q64, fraction: u64) -> Q64 {
    let fraction = Q64::from(fraction);
    (value >> 64) * fraction + (((value & (ONE_Q64 - 1)) * fraction) >> 64)
}

/// `numerator * 2^64 / divisor`, rounded down. Requires that `divisor` is below 2^127 and that the result
/// fits.
fn divide(numerator: u128, divisor: u128) -> u128 {
    let mut quotient = numerator / divisor;
    let mut remainder = numerator % divisor;
    // Long division, because the numerator shifted by 64 bits does not fit into 128.
    for _ in 0..64 {
        quotient <<= 1;
        remainder <<= 1;
        if remainder >= divisor {
            remainder -= divisor;
            quotient |= 1;
        }
    }
    quotient
}

/// The whole part of a fixed-point number.
pub(crate) fn whole_of(value: Q64) -> u64 {
    u64::try_from(value >> 64).expect("half of 128 bits fit into 64")
}

/// The part below one, in units of 2^-64.
pub(crate) fn fraction_of(value: Q64) -> u64 {
    u64::try_from(value & (ONE_Q64 - 1)).expect("half of 128 bits fit into 64")
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounds a time that is not negative and far below 2^64"
)]
fn nearest(time: f64) -> u64 {
    (time + 0.5) as u64
}

/// Exact for rates above 2^-11. Below, the truncated part is less than 2^-64.
#[expect(
    clippy::cast_possible_truncation,
    reason = "cuts off what is below 2^-64 of a request per second"
)]
fn from_float(value: f64) -> Q64 {
    (value * ONE) as Q64
}

fn to_float(value: Q64) -> f64 {
    value as f64 * (1.0 / ONE)
}
