//! Flags, with environment variables and a `.env` file as their defaults.

use std::collections::HashMap;
use std::ffi::OsString;

use clap::{CommandFactory, Parser};

/// Most threads that are started by default.
const WORKERS_MAX: u16 = 512;

/// Reads flags, then environment variables, then `.env` in the working folder, if there is such a
/// file.
///
/// # Errors
/// Mistakes in them, a `.env` that cannot be read, and requests for help or the version.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place in services that reads the environment beside clap"
)]
pub fn read<C: Parser>(words: impl Iterator<Item = OsString>) -> Result<C, clap::Error> {
    use std::io::ErrorKind::{IsADirectory, NotFound};
    let file = match std::fs::read_to_string(".env") {
        Ok(text) => text,
        // Python keeps its environments in folders of this name.
        Err(error) if matches!(error.kind(), NotFound | IsADirectory) => String::new(),
        Err(error) => {
            let kind = clap::error::ErrorKind::Io;
            let message = format!("cannot read the file `.env`: {error}\n");
            return Err(clap::Error::raw(kind, message));
        }
    };
    let is_set = |name: &str| std::env::var_os(name).is_some();
    C::try_parse_from(with_file::<C>(words.collect(), &file, is_set))
}

/// The words of the command line, preceded by a flag for each variable that the file has and the
/// environment lacks.
pub fn with_file<C: CommandFactory>(
    words: Vec<OsString>,
    file: &str,
    is_set: impl Fn(&str) -> bool,
) -> Vec<OsString> {
    let lines = file
        .lines()
        .map(str::trim)
        // No more of the format than `docker` reads: comments, and one pair a line.
        .filter(|line| !line.starts_with('#'));
    let pairs: HashMap<&str, &str> = lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim(), unquoted(value.trim())))
        .collect();
    // As flags in front, where later ones of the user win, and where clap checks their values like
    // any other. Setting the environment would race with other threads.
    let command = C::command();
    let flags = command.get_arguments().filter_map(|argument| {
        let name = argument.get_env()?.to_str()?;
        let value = pairs.get(name).filter(|_| !is_set(name))?;
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

/// Threads that serve requests: as many as asked for, else one for each processor.
pub fn workers(asked: Option<u16>) -> u16 {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(|| {
        u16::try_from(processors())
            .unwrap_or(WORKERS_MAX)
            .min(WORKERS_MAX)
    })
}
