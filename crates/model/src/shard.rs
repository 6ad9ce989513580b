//! Shards: parts of a load that several generators share.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a load: every `of`th slot from slot number `number` on. All shards together are the load, and no
/// shard depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ShardText", into = "ShardText")]
#[schemars(with = "ShardText")]
pub struct Shard {
    index: u32,
    of: u32,
}

/// The serialized form of a shard.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ShardText {
    /// Number of the shard, from 1.
    number: u32,
    /// Number of all shards of the load.
    of: u32,
}

/// Error for a text or a pair of numbers that is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a shard such as 2/4, with a number from 1 to the number of shards, found {found}"
)]
pub struct ShardError {
    found: String,
}

impl Shard {
    /// The only shard of a load that is not divided.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// Maximum number of shards. A larger number is a mistake.
    pub const MOST: u32 = 10_000;

    /// Returns shard `number` of `of`, counted from 1.
    ///
    /// # Errors
    /// When there is no such shard, or when `of` exceeds [`Shard::MOST`].
    pub fn new(number: u32, of: u32) -> Result<Shard, ShardError> {
        if (1..=of).contains(&number) && of <= Shard::MOST {
            return Ok(Shard {
                index: number - 1,
                of,
            });
        }
        let found = format!("{number}/{of}");
        Err(ShardError { found })
    }

    /// Index of the shard, from 0.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }

    /// Number of shards. At least 1.
    #[must_use]
    pub fn of(self) -> u32 {
        self.of
    }

    /// True if the shard is the whole load.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// The shard's part of a total that need not be divisible. It is the number of the shard's indices below
    /// `total`.
    #[must_use]
    pub fn part_of(self, total: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of));
        total / of + u64::from(index < total % of)
    }

    /// The shard's part of the connections of a load. Generators and threads share connections like slots.
    #[must_use]
    pub fn connections(self, total: u32) -> u32 {
        let own = self.part_of(u64::from(total));
        u32::try_from(own).expect("a part of 32 bits is no more")
    }

    /// The part of this shard that thread `index` of `of` threads sends, as a shard of the whole load.
    ///
    /// # Panics
    /// When `index` is not below `of`, or when the number of all parts does not fit into 32 bits.
    #[must_use]
    pub fn thread(self, index: u32, of: u32) -> Shard {
        assert!(index < of, "thread {index} of {of} does not exist");
        let all = self.of.checked_mul(of).expect("few shards of few threads");
        Shard {
            // The thread sends every `of`th slot of this shard, numbered over the whole load.
            index: self.index + self.of * index,
            of: all,
        }
    }
}

impl TryFrom<ShardText> for Shard {
    type Error = ShardError;

    fn try_from(text: ShardText) -> Result<Shard, ShardError> {
        Shard::new(text.number, text.of)
    }
}

impl From<Shard> for ShardText {
    fn from(shard: Shard) -> ShardText {
        ShardText {
            number: shard.index + 1,
            of: shard.of,
        }
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            let read = |text: &str| text.trim().parse::<u32>().ok();
            read(number).zip(read(of))
        });
        let found = || ShardError {
            found: format!("`{text}`"),
        };
        let (number, of) = numbers.ok_or_else(found)?;
        Shard::new(number, of).map_err(|_| found())
    }
}

/// The written form: `2/4`.
impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index + 1, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_read_as_it_is_written_and_recorded_by_its_number() {
        for text in ["1/1", "2/4", "10000/10000"] {
            let shard: Shard = text.parse().unwrap();
            assert_eq!(shard.to_string(), text);
            let json = serde_json::to_string(&shard).unwrap();
            assert_eq!(serde_json::from_str::<Shard>(&json).unwrap(), shard);
        }
        assert_eq!("1/1".parse(), Ok(Shard::WHOLE));
        for wrong in [
            "", "1", "0/4", "5/4", "1/0", "a/b", "1/10001", "-1/4", "1/2/3",
        ] {
            let error = wrong.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(&format!("found `{wrong}`")), "{error}");
        }
        assert!(serde_json::from_str::<Shard>(r#"{"number":0,"of":0}"#).is_err());
    }

    #[test]
    fn every_index_is_in_one_thread_of_one_shard() {
        for (of, threads, total) in [(1, 1, 7), (3, 2, 100), (4, 3, 5), (8, 1, 0)] {
            let mut seen = Vec::new();
            for number in 1..=of {
                let shard = Shard::new(number, of).unwrap();
                let mut own = 0;
                for thread in 0..threads {
                    let part = shard.thread(thread, threads);
                    let step = usize::try_from(part.of()).unwrap();
                    let indices = (u64::from(part.index())..total).step_by(step);
                    let before = seen.len();
                    seen.extend(indices);
                    let count = (seen.len() - before) as u64;
                    assert_eq!(count, part.part_of(total));
                    own += count;
                }
                assert_eq!(own, shard.part_of(total));
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..total).collect::<Vec<_>>());
        }
    }
}
