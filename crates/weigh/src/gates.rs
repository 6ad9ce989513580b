//! Gates on the command line, equal for every subcommand that judges.

use analysis::Summary;
use analysis::gate::{self, Judgement};
use clap::ValueEnum;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::gates::Gates;
use model::{Gate, Subject};

/// Limits that must be kept.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GateArgs {
    /// A limit, such as `rhai p99 overhead < 0.2ms`. May be repeated.
    #[arg(long = "gate", value_name = "GATE", long_help = long_help())]
    gates: Vec<Gate>,
    /// The result of an undecided gate.
    #[arg(
        long,
        value_enum,
        value_name = "END",
        default_value = "fail",
        hide_short_help = true
    )]
    undecided: Undecided,
}

fn long_help() -> String {
    format!(
        "A limit, judged by the interval. Repeat the flag for several limits. If a gate does not pass, \
         the exit code is 4.\n\n{}",
        model::gate_grammar()
    )
}

/// What an undecided gate does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Undecided {
    /// An undecided gate fails.
    #[default]
    Fail,
    /// Only a broken gate fails.
    Pass,
}

impl GateArgs {
    /// Checks that every gate names an existing variant.
    ///
    /// # Errors
    ///
    /// When a gate names a variant that is not in `names`.
    pub(crate) fn check(&self, names: &[&str]) -> Result<(), Failure> {
        let is_unknown = |gate: &&Gate| !names.iter().any(|name| gate.is_about(name));
        self.gates.iter().find(is_unknown).map_or(Ok(()), |gate| {
            Err(Failure::bad_input(format!(
                "the gate `{}` names a variant that does not exist. The variants are {}",
                gate.text,
                names.join(", ")
            )))
        })
    }

    /// Checks that a single load can decide every gate.
    ///
    /// # Errors
    ///
    /// When a gate limits a difference, or names a variant.
    pub(crate) fn check_load(&self) -> Result<(), Failure> {
        for gate in &self.gates {
            if gate.subject != Subject::Value {
                return Err(Failure::bad_input(format!(
                    "the gate `{}` needs a difference, but a single load has no baseline. Write `{} \
                     value …`, or compare two servers with `weigh ab`",
                    gate.text,
                    gate.metric.name()
                )));
            }
            if let Some(variant) = &gate.variant {
                return Err(Failure::bad_input(format!(
                    "the gate `{}` names the variant `{variant}`, but a single load has no \
                     variants. Remove the name",
                    gate.text
                )));
            }
        }
        Ok(())
    }

    /// The gates of the command line.
    pub(crate) fn all(&self) -> &[Gate] {
        &self.gates
    }

    /// True if the command line has a gate.
    pub(crate) fn is_any(&self) -> bool {
        !self.gates.is_empty()
    }

    /// The gates for these variants.
    pub(crate) fn about(&self, names: &[&str]) -> GateArgs {
        let is_about = |gate: &&Gate| names.iter().any(|name| gate.is_about(name));
        GateArgs {
            gates: self.gates.iter().filter(is_about).cloned().collect(),
            undecided: self.undecided,
        }
    }

    /// The gates of a lab and of the command line, for the remaining variants of the lab.
    pub(crate) fn with_those_of(&self, lab: &lab::Lab) -> GateArgs {
        let mut all = GateArgs {
            gates: lab.gates.clone(),
            undecided: self.undecided,
        };
        // A gate that appears in both counts once.
        let new = self.gates.iter().filter(|gate| !lab.gates.contains(gate));
        all.gates.extend(new.cloned());
        all.about(&lab.names())
    }

    /// The gates of an experiment.
    pub(crate) fn to_gates(&self) -> Gates {
        Gates {
            all: self.gates.clone(),
            undecided: self.undecided(),
        }
    }

    /// Judges the gates on a summary.
    pub(crate) fn judge(&self, summary: Summary) -> Summary {
        summary.judged(&self.gates, self.undecided())
    }

    /// Judges the gates on a comparison.
    pub(crate) fn judge_comparison(
        &self,
        comparison: analysis::Comparison,
    ) -> analysis::Comparison {
        comparison.judged(&self.gates, self.undecided())
    }

    fn undecided(&self) -> gate::Undecided {
        match self.undecided {
            Undecided::Fail => gate::Undecided::Fails,
            Undecided::Pass => gate::Undecided::Passes,
        }
    }
}

/// Prints the result of each gate to stderr, for layouts that do not contain gates.
pub(crate) fn say(judgements: &[Judgement], console: Console) {
    for judgement in judgements {
        let (ruling, gate) = (judgement.ruling, &judgement.gate);
        let why = report::why(judgement);
        console.say(format_args!("weigh: gate {ruling}: {gate}: {why}"));
    }
}

/// The exit code for these results.
pub(crate) fn exit_of(judgements: &[Judgement]) -> Exit {
    if judgements.iter().all(|judgement| judgement.is_passed) {
        Exit::Done
    } else {
        Exit::GateNotPassed
    }
}
