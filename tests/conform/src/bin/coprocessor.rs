//! `coprocessor build go`, `coprocessor run go`, `coprocessor version go`: the commands of `runners.yaml`,
//! for callers that only have the name of a language, such as the labs.

use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use conform::Runner;

/// Exit code of shells for a missing command.
const NOT_THERE: u8 = 127;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [task @ ("build" | "run" | "version"), name] => prepared(name, task),
        _ => Err((
            2,
            anyhow::anyhow!(
                "expected `build`, `run` or `version` and a language, found `{}`",
                words.join(" ")
            ),
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, error)) => {
            tell(&error);
            ExitCode::from(code)
        }
    }
}

/// Performs the task. Returns an exit code and an error if the language or its programs are missing.
fn prepared(name: &str, task: &str) -> Result<(), (u8, anyhow::Error)> {
    let runner = conform::runner(name).map_err(|error| (NOT_THERE, error))?;
    if let Some(program) = runner.missing() {
        let language = &runner.language;
        let error = anyhow::anyhow!("`{program}` is not installed; {language} needs it");
        return Err((NOT_THERE, error));
    }
    carry_out(&runner, task).map_err(|error| (1, error))
}

fn carry_out(runner: &Runner, task: &str) -> anyhow::Result<()> {
    match task {
        "build" => runner.build(),
        // This process becomes the coprocessor, so that no second process is measured with it.
        "run" => {
            if let (Some(why), true) = (&runner.no_socket, is_told_a_socket()) {
                bail!(
                    "{} does not listen on a Unix socket: {why}",
                    runner.language
                );
            }
            let error = runner.command(&runner.run).exec();
            Err(error).with_context(|| format!("`{}` does not start", runner.run))
        }
        _ => {
            let status = runner.command(&runner.version).status()?;
            if !status.success() {
                bail!("`{}` ended with {status}", runner.version);
            }
            Ok(())
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place in this program that reads the environment"
)]
fn is_told_a_socket() -> bool {
    std::env::var_os("SOCKET").is_some()
}

#[expect(clippy::print_stderr, reason = "the only voice of this program")]
fn tell(error: &anyhow::Error) {
    eprintln!("{error:#}");
}
