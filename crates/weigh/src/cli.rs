//! The command line: the subcommands, and the exit code of their results.

#[cfg(test)]
mod reference;

use std::io::ErrorKind;

use clap::{CommandFactory as _, Parser, Subcommand};
use experiment::console::Console;
use experiment::environment;
use experiment::exit::{self, Exit};
use experiment::stop::StopSignal;

use crate::command::{
    ab, bisect, book, check, compare, completions, demo, explain, generator, history, init, lab,
    load, man_pages, merge, null_server, pr, report, schema, tare, up,
};
use crate::debug_log;

/// Measures the cost of a layer in an API stack.
///
/// `weigh lab` starts a system with and without the layer, proves that each variant does its work, sends
/// the same requests to all variants side by side, and reports the difference with a confidence
/// interval. Results go to stdout, diagnostics to stderr.
#[derive(Debug, Parser)]
#[command(name = "weigh", version = environment::VERSION, after_help = exit::TABLE)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,
    /// Use no colors. A non-empty NO_COLOR in the environment does the same.
    #[arg(long, global = true, env = "NO_COLOR", hide_env = true, value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    no_color: bool,
    /// Print plain lines instead of a live screen on a terminal.
    #[arg(long, global = true, hide_short_help = true)]
    no_tui: bool,
    /// Log actions and waits to stderr. -vv logs more.
    ///
    /// The variable WEIGH_LOG selects levels by target: `debug`, `rig=trace,weigh=debug`.
    #[arg(short = 'v', long, global = true, hide_short_help = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Demo(demo::Args),
    Init(init::Args),
    Lab(lab::LabArgs),
    Ab(Box<ab::Args>),
    Pr(Box<pr::Args>),
    Bisect(Box<bisect::Args>),
    Load(Box<load::Args>),
    Merge(merge::Args),
    Check(check::Args),
    Up(up::Args),
    Compare(compare::Args),
    Report(report::Args),
    History(history::Args),
    Tare(tare::Args),
    Book(book::Args),
    Explain(explain::Args),
    Schema(schema::Args),
    NullServer(null_server::Args),
    Completions(completions::Args),
    ManPages(man_pages::Args),
    Generator(generator::Args),
}

/// Runs the whole program and returns its exit code.
pub(crate) fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let console = Console::new(cli.no_color, cli.no_tui);
    // Before any other work, so that the log is complete.
    let wanted = environment::inherited(debug_log::VARIABLE);
    if let Err(failure) = debug_log::start(cli.verbose, wanted.as_deref()) {
        console.error(&failure.message);
        return failure.exit;
    }
    let stop = match StopSignal::listen() {
        Ok(stop) => stop,
        Err(error) => {
            console.error(format_args!("cannot catch Ctrl-C: {error}"));
            return Exit::Bug;
        }
    };
    let ended = match cli.command {
        Subcommands::Demo(args) => demo::run(&args, console, &stop),
        Subcommands::Init(args) => init::run(&args, console),
        Subcommands::Lab(args) => lab::run(&args, console, &stop),
        Subcommands::Ab(args) => ab::run(&args, console, &stop),
        Subcommands::Pr(args) => pr::run(&args, console, &stop),
        Subcommands::Bisect(args) => bisect::run(&args, console, &stop),
        Subcommands::Load(args) => load::run(&args, console, &stop),
        Subcommands::Merge(args) => merge::run(&args, console),
        Subcommands::Check(args) => check::run(&args, console, &stop),
        Subcommands::Up(args) => up::run(&args, console, &stop),
        Subcommands::Compare(args) => compare::run(&args, console),
        Subcommands::Report(args) => report::run(&args, console),
        Subcommands::History(args) => history::run(&args, console),
        Subcommands::Tare(args) => tare::run(&args, console, &stop),
        Subcommands::Book(args) => book::run(&args, console),
        Subcommands::Explain(args) => explain::run(&args, console),
        Subcommands::Schema(args) => schema::run(&args, console),
        Subcommands::NullServer(args) => null_server::run(&args, console, &stop),
        Subcommands::Completions(args) => completions::run(&args, Cli::command(), console),
        Subcommands::ManPages(args) => man_pages::run(&args, Cli::command()),
        Subcommands::Generator(args) => generator::run(&args, console, &stop),
    };
    let exit = ended.unwrap_or_else(|failure| {
        console.error(&failure.message);
        failure.exit
    });
    // The command failed if its result could not be written.
    match Console::is_unwritten() {
        true => exit.max(Exit::NotReady),
        false => exit,
    }
}

/// Prints clap's output. Help and version are results, and the rest is diagnostics.
fn refuse(error: &clap::Error) -> Exit {
    match error.print() {
        Err(broken) if broken.kind() != ErrorKind::BrokenPipe => Exit::NotReady,
        _ if error.use_stderr() => Exit::BadInput,
        _ => Exit::Done,
    }
}
