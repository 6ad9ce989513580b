//! The factorial design of a recorded lab.

use model::{FactorSet, FactorialDesign};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Factors with two levels each, and the variants of their design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorsText {
    /// The factors. Those with a generator are last.
    pub factors: Vec<FactorText>,
    /// The generators of a fraction: each of the last factors is a product of earlier factors. Absent if the
    /// variants are all combinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorText>,
    /// The variants of all runs, the baseline first. The first factor changes fastest.
    pub variants: Vec<String>,
}

/// A setting that the variants of a design change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorText {
    /// The name of the factor in reports.
    pub name: String,
    /// The setting, with its system if it belongs to one.
    pub setting: String,
    /// The first level and the second level. The baseline has the first level of every factor.
    pub levels: [String; 2],
}

/// A factor of a fraction. It is at its second level if an odd number of other factors is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorText {
    /// The name of the factor.
    pub factor: String,
    /// The names of these other factors.
    pub product_of: Vec<String>,
}

impl FactorsText {
    /// The names of the factors, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.factors.iter().map(|it| it.name.as_str()).collect()
    }

    /// The design. `None` if its parts do not fit together, which no `weigh` writes.
    #[must_use]
    pub fn design(&self) -> Option<FactorialDesign> {
        let names = self.names();
        let place = |name: &String| names.iter().position(|it| it == name);
        let basic = names.len().checked_sub(self.generators.len())?;
        let added = self.generators.iter().enumerate();
        let generators = added.map(|(index, generator)| {
            let factors: Option<Vec<usize>> = generator.product_of.iter().map(place).collect();
            let is_next = place(&generator.factor)? == basic + index;
            // No design has as many factors as a set can hold.
            let fits = |factors: &Vec<usize>| factors.iter().all(|it| *it < basic.min(32));
            factors.filter(|it| is_next && fits(it)).map(FactorSet::of)
        });
        let design = FactorialDesign::generated(basic, generators.collect::<Option<_>>()?)?;
        (design.runs().len() == self.variants.len()).then_some(design)
    }
}
