//! `weigh schema`: the JSON Schema of a file, for editors and other programs.

use clap::ValueEnum;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};

/// Print the JSON Schema of a kind of file.
///
/// Editors complete and check a file by its schema. The first line of a lab names the schema:
/// `# yaml-language-server: $schema=lab.schema.json`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind of file.
    #[arg(value_name = "KIND", value_enum, default_value = "lab")]
    kind: Kind,
}

const EXAMPLES: &str = "\
Examples:
  weigh schema > lab.schema.json
  weigh schema recording";

/// A kind of file with a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// A lab file.
    Lab,
    /// A scenario in a file of its own, for `weigh load --scenario`.
    Scenario,
    /// `recording.json` of a run.
    Recording,
    /// A comparison of recordings: `weigh compare --format json`.
    Comparison,
    /// The file of `weigh history`.
    History,
    /// The noise that `weigh tare` keeps.
    Tare,
}

/// The schema of lab files.
pub(super) const LAB: &str = include_str!("../../../../schemas/lab.schema.json");

impl Kind {
    fn schema(self) -> &'static str {
        match self {
            Kind::Lab => LAB,
            Kind::Scenario => include_str!("../../../../schemas/scenario.schema.json"),
            Kind::Recording => include_str!("../../../../schemas/recording.schema.json"),
            Kind::Comparison => include_str!("../../../../schemas/comparison.schema.json"),
            Kind::History => include_str!("../../../../schemas/history.schema.json"),
            Kind::Tare => include_str!("../../../../schemas/tare.schema.json"),
        }
    }
}

/// Prints the schema.
///
/// # Errors
///
/// None. The result has the type of all commands.
#[expect(clippy::unnecessary_wraps, reason = "all commands have one type")]
pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    console.answer(args.kind.schema());
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn each_schema_describes_a_file() {
        for kind in Kind::value_variants() {
            let schema: Value = serde_json::from_str(kind.schema()).unwrap();
            let dialect = schema["$schema"].as_str().unwrap_or_default();
            assert!(dialect.contains("json-schema.org"), "{kind:?}");
            assert!(kind.schema().ends_with('\n'), "{kind:?}");
        }
        assert_eq!(
            lab::schema(),
            serde_json::from_str::<Value>(Kind::Lab.schema()).unwrap()
        );
    }
}
