//! `weigh completions`: shell scripts that complete subcommands and flags.

use clap_complete::Shell;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  weigh completions bash > ~/.local/share/bash-completion/completions/weigh
  weigh completions zsh > ~/.zfunc/_weigh
  weigh completions fish > ~/.config/fish/completions/weigh.fish";

/// Prints the completions of `command`.
///
/// # Errors
///
/// Fails if the script is not text, which is a bug.
pub(crate) fn run(
    args: &Args,
    mut command: clap::Command,
    console: Console,
) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "weigh", &mut script);
    let script = String::from_utf8(script).map_err(|error| Failure::bug(error.to_string()))?;
    console.answer(&script);
    Ok(Exit::Done)
}
