//! The factorial design of a lab, as its recording has it.

use lab::Factors;
use recording::{FactorText, FactorsText, GeneratorText};

/// The design of a lab.
pub(super) fn text(factors: &Factors) -> FactorsText {
    let names = factors.names();
    let added = factors.design.generators().iter().enumerate();
    let generators = added.map(|(index, word)| GeneratorText {
        factor: names[factors.design.basic() + index].to_owned(),
        product_of: word.factors().map(|it| names[it].to_owned()).collect(),
    });
    let each = factors.factors.iter().map(|factor| FactorText {
        name: factor.name.clone(),
        setting: factor.setting.clone(),
        levels: factor.levels.clone(),
    });
    FactorsText {
        factors: each.collect(),
        generators: generators.collect(),
        variants: factors.variants.clone(),
    }
}
