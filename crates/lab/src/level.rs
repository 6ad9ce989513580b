//! One load of a sweep.

use std::fmt;

use model::Rate;
use yaml_with_places::Misspelling;

use crate::formats::Format;

/// One load of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// An open loop at this rate, above 0.
    Rate(Rate),
    /// A closed loop with this number of connections, at least 1.
    Connections(u32),
}

impl Level {
    /// Returns the amount of load: requests per second, or connections.
    #[must_use]
    pub fn amount(self) -> f64 {
        match self {
            Level::Rate(rate) => rate.per_second(),
            Level::Connections(connections) => f64::from(connections),
        }
    }
}

/// Writes a level such as `100/s` or `8 connections`.
impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Rate(rate) => write!(formatter, "{rate}"),
            Level::Connections(1) => formatter.write_str("1 connection"),
            Level::Connections(connections) => write!(formatter, "{connections} connections"),
        }
    }
}

impl Format for Level {
    const NAME: &'static str = "level";
    const EXAMPLE: Option<&'static str> = Some("100/s");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if let Ok(connections) = text.parse::<u32>()
            && connections > 0
        {
            return Ok(Level::Connections(connections));
        }
        match Rate::read(text) {
            Ok(rate) if rate > Rate::ZERO => Ok(Level::Rate(rate)),
            _ => Err(Misspelling::new(
                format!("`{text}` is not a level of load"),
                "write a rate such as `100/s` for an open loop, or a number of connections such as `8` for a closed loop",
            )),
        }
    }
}
