//! The settings of a null server.

use std::time::Duration;

use super::draw::{self, Jitter, Slow};
use super::error::BehaviorError;
use super::stream::NullStream;

/// The behavior of a null server.
#[derive(Clone, Debug, PartialEq)]
pub struct Behavior {
    /// The time until a response.
    pub pace: Pace,
    /// Multiplies the time of each response by a random factor.
    pub jitter: Jitter,
    /// Makes a share of the responses later.
    pub slow: Slow,
    /// Processor time for each request, all handling included. 0 adds no time.
    pub burn: Duration,
    /// [`burn`](Behavior::burn) is spent on every Nth request: 1 for each request. At least 1.
    pub burn_every: u64,
    /// True if the kernel spends [`burn`](Behavior::burn) by reading zeros. False if the program spends it.
    pub burn_in_kernel: bool,
    /// Time that the thread sleeps before each response. No other request is handled meanwhile.
    pub sleep: Duration,
    /// Time that the thread waits before each response for a lock that another thread holds.
    pub lock: Duration,
    /// True if the server opens and closes a connection to itself before each response.
    pub extra_connection: bool,
    /// Bytes of memory to write on each request, one in each cache line. This simulates a neighbor that
    /// evicts caches. 0 for none.
    pub thrash_bytes: usize,
    /// One pause of the server.
    pub stall: Option<Stall>,
    /// Length of a body in bytes. From [`Behavior::JSON_BYTES_MIN`] on it is a GraphQL response.
    pub body_bytes: usize,
    /// The body, instead of a body of that length.
    pub answer: Option<String>,
    /// The content coding of bodies. `None` for plain bodies.
    pub encoding: Option<NullEncoding>,
    /// Every Nth response differs in one byte of its body. At least 1. `None` for no wrong response.
    pub wrong_every: Option<u64>,
    /// Every Nth request gets a reset of its connection instead of a response. At least 1.
    pub reset_every: Option<u64>,
    /// Every Nth request gets no response, and its connection stays open. At least 1.
    pub never_every: Option<u64>,
    /// Number of responses after which the server closes a connection. The last response announces it. At
    /// least 1. `None` for no limit.
    pub close_after: Option<u64>,
    /// The events of each response. `None` for responses in one piece.
    pub stream: Option<NullStream>,
    /// Seed of all random draws.
    pub seed: u64,
}

/// The content coding of a null server's bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullEncoding {
    /// The value of `Content-Encoding`: gzip, deflate, br, zstd, or several with commas.
    pub coding: String,
    /// True if the bytes of each response differ, like the bytes of a server that writes the time into the
    /// gzip header. Only with a coding that ends with `gzip`.
    pub is_varying: bool,
}

/// The time until a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// The response to each request leaves this time after its arrival, independent of other requests.
    Delay(Duration),
    /// The server works on one request at a time for this duration, in order of arrival: a queue with a
    /// single server.
    Service(Duration),
    /// Like `Delay`, with one of several delays drawn for each request.
    Mix(Mix),
}

/// Several delays with weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Sums of the weights up to each delay, with the delay.
    steps: Vec<(u64, u64)>,
    total: u64,
}

/// A pause of the server. Requests that arrive during the pause wait for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Length of the stretch.
    pub length: Duration,
    /// Time from the arrival of the first request to the stretch.
    pub after: Duration,
}

impl Behavior {
    /// The shortest length of a `{"data":{"fill":"xxx"}}` body. A shorter body is `xxx`.
    pub const JSON_BYTES_MIN: usize = 20;

    /// Checks that the behavior is possible.
    ///
    /// # Errors
    /// See [`BehaviorError`].
    pub fn check(&self) -> Result<(), BehaviorError> {
        if self.wrong_every.is_some() && self.body().is_empty() {
            return Err(BehaviorError::NothingToBeWrong);
        }
        if let Some(encoding) = &self.encoding {
            crate::encoded(&encoding.coding, b"")?;
            if encoding.is_varying && !encoding.coding.ends_with("gzip") {
                return Err(BehaviorError::Varying(encoding.coding.clone()));
            }
        }
        let counts = [
            self.wrong_every,
            self.reset_every,
            self.never_every,
            self.close_after,
            Some(self.burn_every),
            self.stream.as_ref().map(|stream| stream.events),
        ];
        if counts.contains(&Some(0)) {
            return Err(BehaviorError::Never);
        }
        Ok(())
    }

    /// Returns the body of a correct response.
    pub(super) fn body(&self) -> String {
        match (
            &self.answer,
            self.body_bytes.checked_sub(Behavior::JSON_BYTES_MIN),
        ) {
            (Some(answer), _) => answer.clone(),
            (None, Some(fill)) => format!("{{\"data\":{{\"fill\":\"{}\"}}}}", "x".repeat(fill)),
            (None, None) => "x".repeat(self.body_bytes),
        }
    }
}

impl Default for Behavior {
    /// Returns the default: correct responses without delay.
    fn default() -> Behavior {
        Behavior {
            pace: Pace::Delay(Duration::ZERO),
            jitter: Jitter::default(),
            slow: Slow::default(),
            burn: Duration::ZERO,
            burn_every: 1,
            burn_in_kernel: false,
            sleep: Duration::ZERO,
            lock: Duration::ZERO,
            extra_connection: false,
            thrash_bytes: 0,
            stall: None,
            body_bytes: Behavior::JSON_BYTES_MIN,
            answer: None,
            encoding: None,
            wrong_every: None,
            reset_every: None,
            never_every: None,
            close_after: None,
            stream: None,
            seed: 1,
        }
    }
}

impl Mix {
    /// Returns delays with their weights.
    ///
    /// # Errors
    /// [`BehaviorError::Weights`] if no weight is above 0, or their sum has more than 32 bits.
    pub fn new(parts: &[(u32, Duration)]) -> Result<Mix, BehaviorError> {
        let mut total = 0;
        let steps = parts
            .iter()
            .map(|(weight, delay)| {
                total += u64::from(*weight);
                (total, crate::clock::to_ns(*delay))
            })
            .collect();
        // Within 32 bits, so that the product of a draw and the total fits into 64.
        if total == 0 || total > u64::from(u32::MAX) {
            return Err(BehaviorError::Weights);
        }
        Ok(Mix { steps, total })
    }

    /// Returns the delay of request `index`, equal in every run with an equal seed.
    pub(super) fn delay_ns(&self, seed: u64, index: u64) -> u64 {
        let drawn = draw::below(self.total, seed, index);
        // A weight of 0 has an empty range, which no draw falls into.
        let place = self.steps.partition_point(|(below, _)| *below <= drawn);
        self.steps[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_draws_by_weight_and_repeats_itself() {
        let parts = [
            (90, Duration::from_millis(1)),
            (0, Duration::from_secs(9)),
            (10, Duration::from_millis(20)),
        ];
        let mix = Mix::new(&parts).unwrap();
        let slow = (0..100_000)
            .filter(|index| match mix.delay_ns(7, *index) {
                1_000_000 => false,
                20_000_000 => true,
                other => panic!("{other} ns has weight 0"),
            })
            .count();
        // 10,000 expected, standard deviation 95.
        assert!((9_500..10_500).contains(&slow), "{slow}");
        assert_eq!(mix.delay_ns(7, 3), mix.delay_ns(7, 3));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        assert_eq!(Mix::new(&[]), Err(BehaviorError::Weights));
        let wrong = Behavior {
            wrong_every: Some(3),
            body_bytes: 0,
            ..Behavior::default()
        };
        assert_eq!(wrong.check(), Err(BehaviorError::NothingToBeWrong));
        let never = Behavior {
            close_after: Some(0),
            ..Behavior::default()
        };
        assert_eq!(never.check(), Err(BehaviorError::Never));
    }
}
