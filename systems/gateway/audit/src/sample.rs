//! What a person who looks for more than CI does says in the environment of the tests.

use std::env;

use crate::corpus::Corpus;

/// Made-up queries of one corpus, where one is named.
const MANY: usize = 3000;

/// Which made-up queries to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The seed of what is made up.
    pub seed: u64,
    /// Queries of each corpus.
    pub queries: usize,
    /// Whether one corpus was named.
    pub is_of_one: bool,
}

impl Sample {
    /// What `SEED=number` and `CORPUS=name` say; `seed` and `queries` where they say nothing. Leaves
    /// of the corpora the one that was named, of which 3,000 queries are asked.
    ///
    /// # Panics
    ///
    /// When the seed is no number, or no corpus has the name.
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
