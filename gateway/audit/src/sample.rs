//! Environment variables that let a person run more queries than CI.

use std::env;

use crate::corpus::Corpus;

/// Number of generated queries if `CORPUS` names one corpus.
const MANY: usize = 3000;

/// Choice of the generated queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The seed of the generator.
    pub seed: u64,
    /// Number of queries for each corpus.
    pub queries: usize,
    /// True if `CORPUS` names one corpus.
    pub is_of_one: bool,
}

impl Sample {
    /// Reads `SEED=number` and `CORPUS=name`. Without them, `seed` and `queries` apply. With `CORPUS`, only
    /// this corpus stays in `corpora`, with 3,000 queries.
    ///
    /// # Panics
    ///
    /// If the seed is not a number, or if no corpus has the name.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test programs have no other way to be told"
    )]
    pub fn of(corpora: &mut Vec<Corpus>, seed: u64, queries: usize) -> Sample {
        let said = env::var("SEED").ok();
        let seed = said.map_or(seed, |said| {
            said.parse()
                .unwrap_or_else(|_| panic!("SEED: expected a number, found `{said}`"))
        });
        let only = env::var("CORPUS").ok();
        if let Some(only) = &only {
            corpora.retain(|corpus| corpus.name == *only);
            assert!(
                !corpora.is_empty(),
                "CORPUS: no folder of corpus/ is named `{only}`"
            );
        }
        Sample {
            seed,
            queries: if only.is_some() { MANY } else { queries },
            is_of_one: only.is_some(),
        }
    }
}
