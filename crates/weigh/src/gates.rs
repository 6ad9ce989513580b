//! Gates on the command line, equal for every subcommand that judges.

use analysis::Summary;
use analysis::gate::{self, Judgement};
use clap::ValueEnum;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::gates::Gates;
use model::{Gate, Subject};
use recording::{GatesText, Recording};

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

    /// The gates in the form of a recording. `None` without gates.
    pub(crate) fn recorded(&self) -> Option<GatesText> {
        self.is_any().then(|| GatesText {
            all: self.gates.iter().map(|gate| gate.text.clone()).collect(),
            undecided_passes: self.undecided == Undecided::Pass,
        })
    }

    /// The gates that judged the run of a recording, and the gates of the command line.
    ///
    /// # Errors
    ///
    /// When a recorded gate is not a gate.
    pub(crate) fn with_those_of_run(&self, recording: &Recording) -> Result<GateArgs, Failure> {
        let Some(recorded) = &recording.gates else {
            return Ok(self.clone());
        };
        let mut all = GateArgs::default();
        for text in &recorded.all {
            let gate = text.parse::<Gate>().map_err(|error| {
                Failure::bad_input(format!("the gate `{text}` of the recording: {error}"))
            })?;
            all.gates.push(gate);
        }
        if recorded.undecided_passes || self.undecided == Undecided::Pass {
            all.undecided = Undecided::Pass;
        }
        let new = self.gates.iter().filter(|gate| !all.gates.contains(gate));
        let new: Vec<Gate> = new.cloned().collect();
        all.gates.extend(new);
        Ok(all)
    }

    /// The exit code for the gates of the command line, without other gates among these judgements.
    pub(crate) fn exit_of_own(&self, judgements: &[Judgement]) -> Exit {
        let is_own = |it: &&Judgement| self.gates.iter().any(|gate| gate.text == it.gate);
        let own: Vec<Judgement> = judgements.iter().filter(is_own).cloned().collect();
        exit_of(&own)
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

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    fn of(text: &str) -> GateArgs {
        GateArgs {
            gates: vec![text.parse().unwrap()],
            undecided: Undecided::Fail,
        }
    }

    #[test]
    fn a_report_has_the_gates_of_the_run_and_its_own() {
        let mut recording = SampleRun::open()
            .rounds(12)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let broken = of("mean overhead < 1us");
        recording.gates = broken.recorded();
        let own = of("mean overhead < 900us");
        let all = own.with_those_of_run(&recording).unwrap();
        let texts: Vec<&str> = all.all().iter().map(|gate| gate.text.as_str()).collect();
        assert_eq!(texts, ["mean overhead < 1us", "mean overhead < 900us"]);
        let summary = all.judge(Summary::of(&recording));
        assert_eq!(exit_of(&summary.gates), Exit::GateNotPassed);
        // The run has reported its broken gate. A later report fails only by its own gates.
        assert_eq!(own.exit_of_own(&summary.gates), Exit::Done);
        assert_eq!(broken.exit_of_own(&summary.gates), Exit::GateNotPassed);
        recording.gates = None;
        assert_eq!(own.with_those_of_run(&recording).unwrap().all().len(), 1);
    }
}
