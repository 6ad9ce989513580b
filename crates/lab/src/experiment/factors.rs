//! The factorial design of a lab, if its variants are combinations of factors.

use model::FactorialDesign;

/// Factors with two levels each, and the variants of their design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factors {
    /// At least two. Names are unique.
    pub factors: Vec<Factor>,
    /// The name of the variant of each run, in the order of [`FactorialDesign::runs`]. The first is the
    /// baseline.
    pub variants: Vec<String>,
    /// The combinations of levels.
    pub design: FactorialDesign,
}

/// A setting that the variants of a design change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// The word of reports.
    pub name: String,
    /// The setting, as `NAME` or `SYSTEM.NAME`.
    pub setting: String,
    /// The first level and the second level, as they are written.
    pub levels: [String; 2],
}

impl Factors {
    /// The names of the factors, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.factors.iter().map(|it| it.name.as_str()).collect()
    }
}
