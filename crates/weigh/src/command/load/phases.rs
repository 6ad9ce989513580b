//! Rates and phases in the syntax of the command line.

use model::{Phase, Rate};

/// The form of phases, for messages.
const PHASES_HELP: &str = "Write phases as 10s@100/s,20s@100/s..500/s";

/// Phases in order. A type of its own, because clap would treat a plain list as a repeatable flag.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phases(pub(super) Vec<Phase>);

/// Reads a rate above 0. Without a unit it is per second, as in other load generators.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    if text.parse::<f64>().is_ok() {
        lab::rate(&format!("{text}/s"))
    } else {
        lab::rate(text)
    }
}

/// Reads phases such as `10s@100/s,20s@100/s..500/s`.
pub(super) fn phases(text: &str) -> Result<Phases, String> {
    text.split(',')
        .map(phase)
        .collect::<Result<_, _>>()
        .map(Phases)
}

fn phase(text: &str) -> Result<Phase, String> {
    let (duration, rates) = text
        .trim()
        .split_once('@')
        .ok_or_else(|| format!("expected a phase with `@`, found `{text}`. {PHASES_HELP}"))?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    Ok(Phase {
        duration: lab::duration(duration.trim())?,
        from: bound(from.trim())?,
        to: bound(to.trim())?,
    })
}

/// Reads an end of a ramp, which may be 0.
fn bound(text: &str) -> Result<Rate, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    match number.parse::<f64>() {
        // Only allowed here, because a whole load with this rate would send no requests.
        Ok(0.0) => Ok(Rate::ZERO),
        _ => rate(text),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn per_second(rate: f64) -> Rate {
        Rate::new(rate).unwrap()
    }

    #[test]
    fn steps_and_ramps_are_read() {
        let expected = [
            Phase::constant(Duration::from_secs(10), per_second(100.0)),
            Phase {
                duration: Duration::from_millis(1500),
                from: Rate::ZERO,
                to: per_second(500.0),
            },
            Phase::constant(Duration::from_secs(60), per_second(0.5)),
        ];
        assert_eq!(
            phases("10s@100/s, 1500ms@0/s..500,1m@0.5/s"),
            Ok(Phases(expected.to_vec()))
        );
    }

    #[test]
    fn what_is_no_phase_is_said_so() {
        for (text, words) in [
            ("100/s", "Write phases as 10s@100/s"),
            ("10@100/s", "the unit is missing"),
            ("10s@fast", "`fast`"),
            ("10s@1/s,", "expected a phase with `@`"),
        ] {
            let error = phases(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
