//! Flags, with environment variables and a `.env` file as their defaults.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, Parser};

/// Maximum number of worker threads by default.
const WORKERS_MAX: u16 = 512;

/// Reads flags, then environment variables, then `.env` in the working folder, if the file exists.
///
/// # Errors
/// Fails for invalid values, an unreadable `.env`, and requests for help or the version.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place in services that reads the environment beside clap"
)]
pub fn read<C: Parser>(words: impl Iterator<Item = OsString>) -> Result<C, clap::Error> {
    use std::io::ErrorKind::{IsADirectory, NotFound};
    let file = match std::fs::read_to_string(".env") {
        Ok(text) => text,
        // Python keeps its environments in folders with this name.
        Err(error) if matches!(error.kind(), NotFound | IsADirectory) => String::new(),
        Err(error) => {
            let kind = clap::error::ErrorKind::Io;
            let message = format!("cannot read the file `.env`: {error}\n");
            return Err(clap::Error::raw(kind, message));
        }
    };
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let own: Vec<OsString> = words.collect();
    let all = with_file::<C>(own.clone(), &file, is_set);
    parsed(all).map_err(|error| {
        let place = |name: &str| match is_set(name) {
            true => format!("the environment variable `{name}`"),
            false => format!("`{name}` in the file `.env`"),
        };
        with_source::<C>(error, &own, place)
    })
}

/// Reads flags, then environment variables. An empty variable counts as unset, because deployments write an
/// optional value that way.
///
/// # Errors
/// Fails for invalid values, and for requests for help or the version.
pub fn parse<C: Parser>(words: impl IntoIterator<Item = OsString>) -> Result<C, clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    parsed(words.clone()).map_err(|error| {
        let place = |name: &str| format!("the environment variable `{name}`");
        with_source::<C>(error, &words, place)
    })
}

/// An error about a value, with the place of the value if it is not on the command line. Its text names the
/// flag, which the user may never have written.
fn with_source<C: CommandFactory>(
    mut error: clap::Error,
    own: &[OsString],
    place: impl Fn(&str) -> String,
) -> clap::Error {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let long = shown.split([' ', '=']).next().unwrap_or_default();
    let command = C::command();
    let mut arguments = command.get_arguments();
    let argument = arguments.find(|it| {
        let name = it.get_long().map(|name| format!("--{name}"));
        name.is_some_and(|name| name == long)
    });
    let name = argument.and_then(|it| it.get_env()?.to_str());
    let Some(name) = name else {
        return error;
    };
    let short = argument.and_then(clap::Arg::get_short);
    let is_own = own.iter().filter_map(|word| word.to_str()).any(|word| {
        let is_long = word.split('=').next() == Some(long);
        is_long || short.is_some_and(|short| word.starts_with(&format!("-{short}")))
    });
    if !is_own {
        let tip = StyledStr::from(format!("the value is from {}", place(name)));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn parsed<C: Parser>(words: Vec<OsString>) -> Result<C, clap::Error> {
    let mut command = without_empty_variables(C::command());
    let mut matches = command.try_get_matches_from_mut(words)?;
    let read = C::from_arg_matches_mut(&mut matches);
    read.map_err(|error| error.format(&mut command))
}

/// A command whose flags do not read empty environment variables.
#[expect(
    clippy::disallowed_methods,
    reason = "the place in services that reads the environment beside clap"
)]
pub fn without_empty_variables(command: Command) -> Command {
    command.mut_args(|argument| {
        let value = argument.get_env().and_then(std::env::var_os);
        match value {
            Some(value) if value.is_empty() => argument.env(Resettable::Reset),
            _ => argument,
        }
    })
}

/// The command line, preceded by a flag for each variable in the file that the environment lacks.
pub fn with_file<C: CommandFactory>(
    words: Vec<OsString>,
    file: &str,
    is_set: impl Fn(&str) -> bool,
) -> Vec<OsString> {
    let lines = file
        .lines()
        .map(str::trim)
        // Only the part of the format that `docker` supports: comments, and one pair per line.
        .filter(|line| !line.starts_with('#'));
    let pairs: HashMap<&str, &str> = lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim(), unquoted(value.trim())))
        .collect();
    // As flags in front: later flags of the user take precedence, and clap checks the values. Setting the
    // environment would race with other threads.
    let command = C::command();
    let flags = command.get_arguments().filter_map(|argument| {
        let name = argument.get_env()?.to_str()?;
        let value = pairs
            .get(name)
            .filter(|value| !value.is_empty() && !is_set(name))?;
        Some(OsString::from(format!(
            "--{}={value}",
            argument.get_long()?
        )))
    });
    let mut words = words.into_iter();
    words.next().into_iter().chain(flags).chain(words).collect()
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// Number of threads that serve requests: the configured number, or one per processor.
pub fn workers(asked: Option<u16>) -> u16 {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(|| {
        u16::try_from(processors())
            .unwrap_or(WORKERS_MAX)
            .min(WORKERS_MAX)
    })
}

/// The reason why a time is invalid. The text follows the flag's name and the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The number or a known unit is missing.
    #[error("expected a whole number and a unit (ms, s), such as 500ms")]
    Shape,
    /// The time is too short or too long.
    #[error("expected a time from {least_ms}ms to {most_s}s")]
    Range {
        /// The minimum in milliseconds.
        least_ms: u128,
        /// The maximum in seconds.
        most_s: u64,
    },
}

/// Parses a time with its unit, such as `500ms` or `5s`, in whole milliseconds.
///
/// # Errors
/// Fails for another form, or a time outside of `range`.
pub fn time(text: &str, range: RangeInclusive<Duration>) -> Result<Duration, TimeError> {
    // A number without a unit is refused, because 500 could be milliseconds or seconds.
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.ok_or(TimeError::Shape)?);
    let number: u64 = number.parse().map_err(|_| TimeError::Shape)?;
    let time = match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => return Err(TimeError::Shape),
    };
    if !range.contains(&time) {
        return Err(TimeError::Range {
            least_ms: range.start().as_millis(),
            most_s: range.end().as_secs(),
        });
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_its_unit_and_has_bounds() {
        let read = |text| time(text, Duration::from_millis(1)..=Duration::from_secs(3_600));
        assert_eq!(read("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(read("3600s"), Ok(Duration::from_secs(3_600)));
        for wrong in ["0s", "3601s"] {
            let told = read(wrong).unwrap_err().to_string();
            assert_eq!(told, "expected a time from 1ms to 3600s", "{wrong}");
        }
        for wrong in ["5", "ms", "5us", "0.5s", "-1s", ""] {
            assert_eq!(read(wrong), Err(TimeError::Shape), "{wrong}");
        }
    }
    #[derive(Debug, Parser)]
    struct Flags {
        #[arg(long, short, env = "CHASSIS_TEST_BAN")]
        ban: Option<u8>,
        #[arg(long)]
        other: Option<u8>,
    }

    #[test]
    fn a_wrong_value_is_told_with_its_variable() {
        // The words of the file come first, and the words of the user after them.
        let told = |file: &[&str], own: &[&str]| {
            let words = |words: &[&str]| -> Vec<OsString> {
                let words = words.iter().map(OsString::from);
                std::iter::once("test".into()).chain(words).collect()
            };
            let error = parsed::<Flags>(words(&[file, own].concat())).unwrap_err();
            with_source::<Flags>(error, &words(own), |name| format!("`{name}`")).to_string()
        };
        let tip = "the value is from `CHASSIS_TEST_BAN`";
        let from_file = told(&["--ban=ten"], &[]);
        assert!(
            from_file.contains("invalid value 'ten' for '--ban"),
            "{from_file}"
        );
        assert!(from_file.contains(tip), "{from_file}");
        for own in [
            &["--ban=ten"][..],
            &["--ban", "ten"],
            &["-bten"],
            &["--other=ten"],
        ] {
            let told = told(&[], own);
            assert!(told.contains("invalid value 'ten'"), "{told}");
            assert!(!told.contains("the value is from"), "{told}");
        }
    }
}
