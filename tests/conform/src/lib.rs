//! Tests every coprocessor of `services/coprocessors` with the same cases.
//!
//! Main idea: `runners.yaml` lists the languages and `cases/` contains their expected responses. The code
//! here does not depend on a language. After the cases, each coprocessor works for the gateway, and the tests
//! check the result at the gateway's client and origin.

mod cases;
mod claims;
mod gateway;
mod http;
mod process;
mod programs;
mod runners;

use anyhow::anyhow;

pub use cases::Case;
pub use gateway::PROOFS;
pub use http::Address;
pub use process::{Running, Transport};
pub use runners::Runner;

/// The result of one language over one transport.
#[derive(Debug)]
pub enum Verdict {
    /// Every case and claim holds. Contains their number.
    Passed(usize),
    /// It was not started, for this reason.
    NotRun(String),
    /// The failed cases and claims, a line each.
    Failed(Vec<String>),
}

/// Builds the named languages (all languages if `names` is empty) and tests each against the contract over
/// TCP and over a Unix socket.
///
/// # Errors
///
/// If `runners.yaml` or a case cannot be read, or a name is not in the list.
pub fn conform(names: &[String]) -> anyhow::Result<Vec<(String, Verdict)>> {
    let runners = runners::all()?;
    let cases = cases::all()?;
    for name in names {
        if !runners.iter().any(|runner| runner.name == *name) {
            return Err(stranger(&runners, name));
        }
    }
    let mut verdicts = Vec::new();
    for runner in &runners {
        if !names.is_empty() && !names.contains(&runner.name) {
            continue;
        }
        let built = runner.missing().is_none().then(|| runner.build());
        for transport in [Transport::Tcp, Transport::Unix] {
            let verdict = match &built {
                Some(Err(error)) => Verdict::Failed(vec![format!("it cannot be built: {error:#}")]),
                _ => hold(runner, transport, &cases),
            };
            verdicts.push((format!("{} over {transport}", runner.language), verdict));
        }
    }
    Ok(verdicts)
}

/// Returns the entry of a language in `runners.yaml`.
///
/// # Errors
///
/// If `runners.yaml` cannot be read, or has no such entry.
pub fn runner(name: &str) -> anyhow::Result<Runner> {
    let mut runners = runners::all()?;
    match runners.iter().position(|runner| runner.name == name) {
        Some(index) => Ok(runners.swap_remove(index)),
        None => Err(stranger(&runners, name)),
    }
}

fn stranger(runners: &[Runner], name: &str) -> anyhow::Error {
    let known: Vec<&str> = runners.iter().map(|runner| runner.name.as_str()).collect();
    anyhow!(
        "expected one of {} of runners.yaml, found `{name}`",
        known.join(", ")
    )
}

fn hold(runner: &Runner, transport: Transport, cases: &[Case]) -> Verdict {
    if let Some(program) = runner.missing() {
        return Verdict::NotRun(format!("`{program}` is not installed; ./setup installs it"));
    }
    if let (Transport::Unix, Some(why)) = (transport, &runner.no_socket) {
        return Verdict::NotRun(format!("by its own word: {why}"));
    }
    match failures(runner, transport, cases) {
        Ok(failures) if failures.is_empty() => {
            Verdict::Passed(cases.len() + PROOFS.len() + claims::ALL.len())
        }
        Ok(failures) => Verdict::Failed(failures),
        Err(error) => Verdict::Failed(vec![format!("{error:#}")]),
    }
}

fn failures(runner: &Runner, transport: Transport, cases: &[Case]) -> anyhow::Result<Vec<String>> {
    let mut running = Running::start(runner, transport)?;
    let mut failures = Vec::new();
    for case in cases {
        if let Err(error) = case.holds(&running) {
            failures.push(format!("{}: {error:#} ({})", case.name, case.why));
        }
    }
    for (name, proof) in PROOFS {
        if let Err(error) = proof(&running.address) {
            failures.push(format!("{name}: {error:#}"));
        }
    }
    for (name, claim) in claims::ALL {
        if let Err(error) = claim(&mut running) {
            failures.push(format!("{name}: {error:#}"));
        }
    }
    Ok(failures)
}
