//! Two-level factorial designs: each factor has two levels, and each run sets all factors.
//!
//! A full design of `k` factors has all `2^k` combinations. A fraction `1/2^p` keeps the runs in which each
//! added factor is the product of earlier factors, its generator. An effect is then confounded with other
//! effects, its aliases: their sum is measured, and not each of them.
//!
//! The generators are those that the books list. They have the highest possible resolution, which is the
//! length of the shortest defining word. Sources: Box, Hunter and Hunter, "Statistics for Experimenters", 2nd
//! edition, 2005, chapter 6. Wu and Hamada, "Experiments: Planning, Analysis, and Optimization", 2nd edition,
//! 2009, chapters 4 and 5. NIST/SEMATECH, "e-Handbook of Statistical Methods", section 5.3.3.4.7, has the same
//! list.
//!
//! The first run has all factors at their first level, because it is the baseline of a lab. The books use
//! the fraction with all factors at their second level. So a word of odd length has the opposite sign here.

/// The standard generators: the number of basic factors, and the basic factors in the product of each added
/// factor. Factors count from 1, as in the book.
const STANDARD: [(usize, &[&str]); 18] = [
    (2, &["12"]),
    (3, &["123"]),
    (3, &["12", "13"]),
    (3, &["12", "13", "23"]),
    (3, &["12", "13", "23", "123"]),
    (4, &["1234"]),
    (4, &["123", "234"]),
    (4, &["123", "234", "134"]),
    (4, &["234", "134", "123", "124"]),
    (4, &["123", "234", "134", "124", "1234"]),
    (4, &["123", "234", "134", "124", "1234", "12"]),
    (4, &["123", "234", "134", "124", "1234", "12", "13"]),
    (5, &["12345"]),
    (5, &["1234", "1245"]),
    (5, &["123", "124", "2345"]),
    (5, &["2345", "1345", "1245", "1235"]),
    (5, &["1234", "1235", "1245", "1345", "2345"]),
    (5, &["123", "234", "345", "134", "145", "245"]),
];

/// An effect: the factors in it, or the factors at their second level in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FactorSet(u32);

impl FactorSet {
    /// No factor. As a run, it is the baseline.
    pub const NONE: Self = Self(0);

    /// Returns the set of these factors, counted from 0.
    ///
    /// # Panics
    /// If a number is not below 32.
    #[must_use]
    pub fn of(factors: impl IntoIterator<Item = usize>) -> Self {
        let bits = factors.into_iter().map(|factor| {
            assert!(factor < 32, "{factor}");
            1 << factor
        });
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// The number of its factors. It is the order of an effect.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// True without factors.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if the factor is in the set.
    #[must_use]
    pub fn has(self, factor: usize) -> bool {
        factor < 32 && self.0 >> factor & 1 == 1
    }

    /// Iterates over its factors, in their order.
    pub fn factors(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |factor| self.has(*factor))
    }

    /// The product of two effects. Factors in both cancel out.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// The effect in words: `log × tls`. `names` are the names of all factors.
    ///
    /// # Panics
    /// If a factor has no name.
    #[must_use]
    pub fn named(self, names: &[&str]) -> String {
        let each: Vec<&str> = self.factors().map(|factor| names[factor]).collect();
        each.join(" × ")
    }

    /// True if an odd number of factors is in both sets.
    fn is_odd_in(self, other: Self) -> bool {
        (self.0 & other.0).count_ones() % 2 == 1
    }

    /// The order of tables: fewer factors first, then the order of the factors.
    fn place(self) -> (usize, Vec<usize>) {
        (self.len(), self.factors().collect())
    }
}

/// An effect that another one is confounded with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alias {
    /// The factors of the confounded effect.
    pub effect: FactorSet,
    /// The share of it in the measured figure. An interaction of `m` factors is the sum of `2^m` figures with
    /// signs, so its share in an effect of fewer factors is below 1.
    pub share: f64,
}

/// A two-level factorial design, full or a regular fraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorialDesign {
    /// Factors with all combinations. They are the first factors.
    basic: usize,
    /// The basic factors in the product of each further factor.
    generators: Vec<FactorSet>,
}

impl FactorialDesign {
    /// The largest number of runs, because all variants of a lab share a machine.
    pub const RUNS_MAX: usize = 32;

    /// Returns the standard design of a number of factors: the fraction `1/2^halvings` of all combinations.
    /// `None` if it has more than [`RUNS_MAX`](Self::RUNS_MAX) runs, fewer than two factors, or no fraction
    /// that keeps main effects apart.
    #[must_use]
    pub fn standard(factors: usize, halvings: usize) -> Option<Self> {
        let basic = factors.checked_sub(halvings)?;
        if factors < 2 || basic > 5 {
            return None;
        }
        if halvings == 0 {
            return Self::generated(basic, Vec::new());
        }
        let (_, words) = STANDARD
            .iter()
            .find(|(known, words)| *known == basic && words.len() == halvings)?;
        let generators = words.iter().map(|word| {
            let digits = word.bytes().map(|digit| usize::from(digit - b'1'));
            FactorSet::of(digits)
        });
        Self::generated(basic, generators.collect())
    }

    /// Returns the design with these generators. `None` if a generator has a factor that is not basic or
    /// fewer than two factors, or if there are more than [`RUNS_MAX`](Self::RUNS_MAX) runs.
    #[must_use]
    pub fn generated(basic: usize, generators: Vec<FactorSet>) -> Option<Self> {
        let is_possible = (1..=5).contains(&basic) && basic + generators.len() <= 32;
        let fits = |word: &FactorSet| word.len() >= 2 && word.factors().all(|it| it < basic);
        (is_possible && generators.iter().all(fits)).then_some(Self { basic, generators })
    }

    /// The numbers of halvings that give a standard design of this number of factors.
    pub fn halvings(factors: usize) -> impl Iterator<Item = usize> {
        (0..factors).filter(move |halvings| Self::standard(factors, *halvings).is_some())
    }

    /// Number of factors.
    #[must_use]
    pub fn factors(&self) -> usize {
        self.basic + self.generators.len()
    }

    /// Number of factors with all combinations.
    #[must_use]
    pub fn basic(&self) -> usize {
        self.basic
    }

    /// The basic factors in the product of each further factor. Empty for a full design.
    #[must_use]
    pub fn generators(&self) -> &[FactorSet] {
        &self.generators
    }

    /// True if the design has all combinations.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.generators.is_empty()
    }

    /// The factors at their second level in each run. The first run has none. The first factor changes
    /// fastest.
    #[must_use]
    pub fn runs(&self) -> Vec<FactorSet> {
        let run = |bits: u32| {
            let basic = FactorSet(bits);
            let added = self.generators.iter().enumerate();
            let added = added.filter(|(_, word)| word.is_odd_in(basic));
            let added = added.map(|(index, _)| self.basic + index);
            basic.times(FactorSet::of(added))
        };
        (0..1 << self.basic).map(run).collect()
    }

    /// The defining words: products of factors that are constant over all runs. Empty for a full design.
    #[must_use]
    pub fn words(&self) -> Vec<FactorSet> {
        let own = self.generators.iter().enumerate();
        let own = own.map(|(index, word)| word.times(FactorSet::of([self.basic + index])));
        // All products of the words of the generators.
        let mut all = vec![FactorSet::NONE];
        for word in own {
            let products: Vec<FactorSet> = all.iter().map(|it| it.times(word)).collect();
            all.extend(products);
        }
        all.remove(0);
        all.sort_by_key(|word| word.place());
        all
    }

    /// The length of the shortest defining word. `None` for a full design.
    #[must_use]
    pub fn resolution(&self) -> Option<usize> {
        self.words().first().map(|word| word.len())
    }

    /// The effects that an effect is confounded with. Effects of few factors come first.
    #[must_use]
    pub fn aliases(&self, effect: FactorSet) -> Vec<Alias> {
        let alias = |word: FactorSet| {
            let other = effect.times(word);
            // The runs fix the product of the signs of a word of odd length to -1.
            let sign = if word.len() % 2 == 1 { -1.0 } else { 1.0 };
            Alias {
                effect: other,
                share: sign * power(effect.len()) / power(other.len()),
            }
        };
        let mut aliases: Vec<Alias> = self.words().into_iter().map(alias).collect();
        aliases.sort_by_key(|alias| alias.effect.place());
        aliases
    }

    /// The sum that a figure is, if the effect is confounded with effects of at most two factors:
    /// `log - 1/2 (tls × auth)`. `None` if it is not. Interactions of more factors are left out.
    ///
    /// # Panics
    /// If a factor has no name.
    #[must_use]
    pub fn confounded(&self, effect: FactorSet, names: &[&str]) -> Option<String> {
        let aliases = self.aliases(effect).into_iter();
        let near: Vec<Alias> = aliases.filter(|alias| alias.effect.len() <= 2).collect();
        let part = |alias: &Alias| {
            let sign = if alias.share < 0.0 { "-" } else { "+" };
            let name = alias.effect.named(names);
            // Shares are powers of two.
            match alias.share.abs() {
                whole if whole >= 1.0 => format!(" {sign} {name}"),
                share => format!(" {sign} 1/{:.0} ({name})", 1.0 / share),
            }
        };
        let parts: String = near.iter().map(part).collect();
        (!near.is_empty()).then(|| effect.named(names) + &parts)
    }

    /// The effects of up to `order` factors that the design tells apart. Of confounded effects, it is the
    /// first.
    #[must_use]
    pub fn effects(&self, order: usize) -> Vec<FactorSet> {
        let mut all: Vec<FactorSet> = (1..1_u32 << self.factors())
            .map(FactorSet)
            .filter(|effect| effect.len() <= order)
            .collect();
        all.sort_by_key(|effect| effect.place());
        let words = self.words();
        let mut found: Vec<FactorSet> = Vec::new();
        for effect in all {
            let is_known = |word: &FactorSet| found.contains(&effect.times(*word));
            // An effect that is a defining word is confounded with the mean.
            if !words.contains(&effect) && !words.iter().any(is_known) {
                found.push(effect);
            }
        }
        found
    }

    /// The runs in pairs, as places in [`runs`](Self::runs). The effect adds to the first run of a pair and
    /// not to the second. All pairs differ in the same factors, and in as few as possible. Empty if the
    /// effect is confounded with the mean.
    #[must_use]
    pub fn pairs(&self, effect: FactorSet) -> Vec<[usize; 2]> {
        let runs = self.runs();
        let odd = runs.iter().filter(|run| effect.is_odd_in(**run));
        let Some(step) = odd.min_by_key(|run| run.place()).copied() else {
            return Vec::new();
        };
        let place = |run: FactorSet| runs.iter().position(|it| *it == run);
        // With all its factors at the second level, an effect is positive.
        let is_positive = |run: &FactorSet| effect.is_odd_in(*run) == (effect.len() % 2 == 1);
        runs.iter()
            .enumerate()
            .filter(|(_, run)| is_positive(run))
            // The runs are closed under products, so the other run of a pair exists.
            .filter_map(|(index, run)| Some([index, place(run.times(step))?]))
            .collect()
    }
}

/// The number of combinations of this number of factors.
fn power(factors: usize) -> f64 {
    factors
        .try_into()
        .map_or(f64::INFINITY, |factors| 2_f64.powi(factors))
}

#[cfg(test)]
mod tests;
