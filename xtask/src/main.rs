//! `cargo xtask …`: the chores of the repository.

mod chores;
#[cfg(test)]
mod tidy;

use clap::Parser;

/// Chores of the repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Run everything that CI runs, in the same order: format, lints, all tests.
    Ci,
    /// Check the rules of the house: directions, purity, names, words, sizes.
    Tidy,
    /// Write the generated files again: JSON Schemas and the lab reference.
    Schema,
}

fn main() -> anyhow::Result<()> {
    match Chore::parse() {
        Chore::Ci => chores::ci(),
        Chore::Tidy => chores::tidy(),
        Chore::Schema => chores::schema(),
    }
}
