//! The share of the combinations of factors that a lab measures.

use crate::formats::{Format, Misspelling};

/// A share of all combinations: `1/2`, `1/4` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    /// The number of times that all combinations are halved. At least 1.
    pub(crate) halvings: usize,
}

impl Format for Fraction {
    const NAME: &'static str = "fraction";
    const EXAMPLE: Option<&'static str> = Some("1/2");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let of = text.trim().strip_prefix("1/");
        let share = of.and_then(|of| of.parse::<u32>().ok());
        match share.filter(|share| *share >= 2 && share.is_power_of_two()) {
            Some(share) => Ok(Self {
                halvings: share.ilog2() as usize,
            }),
            None => Err(Misspelling::new(
                format!("`{text}` is not a fraction of a design"),
                "write `1/2`, `1/4` or `1/8`",
            )),
        }
    }
}

impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1/{}", 1_u64 << self.halvings)
    }
}
