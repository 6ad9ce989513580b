//! `cargo xtask attack`: hostile clients against each service. It checks if other clients were served
//! meanwhile.
//!
//! Main idea: the same well-behaved client sends requests before, during and after each attack. Every result
//! is then a comparison of a service with itself on the same machine. Each attack gets a new process with few
//! descriptors. Attackers use another address of loopback.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::clock::{now, pause};
use crate::process::{Holding, Process};
use crate::repository::root;
use crate::{bench, page};

mod attacks;
mod carry_out;
mod dialect;
pub(crate) mod exchange;
mod graphql;
mod http2;
mod judge;
mod links;
mod neighbor;
mod seen;
mod services;
pub(crate) mod soak;
mod sockets;
mod table;

use attacks::Attack;
use judge::Row;
use services::{DESCRIPTORS, Running, Service};

/// Services, attacks and lengths.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Services to attack. The default is all services.
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    service: Vec<Service>,
    /// Attacks to carry out. The default is all attacks.
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    attack: Vec<Attack>,
    /// Length of one attack, in seconds. The well-behaved client sends requests for the same time
    /// before and after it.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Use the services from this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Write the tables and their summary into docs/attacks.md. Tables of other services stay
    /// unchanged.
    #[arg(long, conflicts_with = "attack")]
    write: bool,
    /// Write only the summary of the tables in docs/attacks.md, without an attack.
    #[arg(long, conflicts_with_all = ["service", "attack", "write"])]
    readme: bool,
}

/// The document with the tables.
const DOCUMENT: &str = "docs/attacks.md";

/// Title of the rules in the document.
const RULES: &str = "rules";

/// The document with the summary, and the title of the summary.
const SUMMARY: (&str, &str) = ("docs/attacks.md", "attacks");

/// Number of descriptors that this program needs. It is more than the services have, because of the sockets
/// to them.
const OWN_DESCRIPTORS: u64 = 4 * DESCRIPTORS;

/// Time that a service has to release the resources of an attack.
const RECOVERY: Duration = Duration::from_secs(20);

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.readme {
        return write_summary();
    }
    raise_descriptors()?;
    let stop = stop_signal()?;
    let programs = programs(args.programs.as_deref())?;
    let services = chosen(&args.service, Service::value_variants());
    if args.write {
        page::write(DOCUMENT, RULES, &judge::rules())?;
    }
    let mut failed = Vec::new();
    for service in services {
        if let Some(why) = service.missing(&programs) {
            bench::say(&format!("{}: left out: {why}", service.word()));
            continue;
        }
        let rows = match attacked(args, service, &programs, &stop) {
            Ok(rows) => rows,
            // A service that does not start must not prevent the tables of the other services.
            Err(error) if !stop.load(Ordering::Relaxed) => {
                bench::say(&format!("{}: no table: {error:#}", service.word()));
                failed.push(service.word());
                continue;
            }
            Err(error) => return Err(error),
        };
        let table = table::table(&rows);
        bench::say(&format!("\n{}\n\n{table}", service.word()));
        if args.write {
            page::write(DOCUMENT, &service.word(), &table)?;
            write_summary()?;
        }
    }
    bench::say(&judge::rules());
    if !failed.is_empty() {
        bail!("no table of {}", failed.join(", "));
    }
    Ok(())
}

fn write_summary() -> anyhow::Result<()> {
    let document = fs::read_to_string(root().join(DOCUMENT)).context(DOCUMENT)?;
    page::write(SUMMARY.0, SUMMARY.1, &table::summary(&document))
}

/// Becomes true at Ctrl-C. Every started process ends when its owner is dropped, so the signal only needs to
/// be noticed.
pub(crate) fn stop_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// The folder with the services.
fn programs(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    match given {
        Some(folder) => folder.canonicalize().context("the folder of --programs"),
        None => built(),
    }
}

/// The requested items, or all items.
fn chosen<T: Copy>(asked: &[T], all: &[T]) -> Vec<T> {
    if asked.is_empty() { all } else { asked }.to_vec()
}

/// Runs all attacks on one service.
fn attacked(
    args: &Args,
    service: Service,
    programs: &Path,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<Row>> {
    let dialect = service.dialect();
    let attacks = chosen(&args.attack, Attack::value_variants());
    let mut rows = Vec::new();
    let (mut loaded, mut crowded) = (None, None);
    for attack in attacks {
        if !attack.suits(dialect.as_ref()) {
            continue;
        }
        let length = Duration::from_secs(args.seconds);
        let row = one(service, attack, programs, length, stop)
            .with_context(|| format!("{} against {}", attack.word(), service.word()))?;
        // Honest clients come first, and the attacks are compared with them.
        let p99 = row.beside.p99().filter(|_| row.beside.failed == 0);
        match attack {
            Attack::Load => loaded = p99,
            Attack::Crowd => crowded = p99,
            _ => {}
        }
        let loaded = match attack {
            Attack::Crowd | Attack::SlowReader => crowded.max(loaded),
            _ => loaded,
        };
        let row = Row { loaded, ..row };
        bench::say(&format!(
            "{} {}: others served: {}, recovered: {}",
            service.word(),
            row.attack,
            row.were_others_served(),
            row.has_recovered()
        ));
        rows.push(row);
    }
    Ok(rows)
}

/// Runs one attack on a new process of the service.
fn one(
    service: Service,
    attack: Attack,
    programs: &Path,
    length: Duration,
    stop: &AtomicBool,
) -> anyhow::Result<Row> {
    let running = Running::start(service, attack, programs, stop)?;
    let (address, request) = (running.address, running.request());
    let ask = |length| neighbor::ask(address, &request, length, stop);
    let before = ask(length);
    let held_before = running
        .process
        .holding()
        .context("it has ended before the attack")?;
    running.process.forget_peak();
    let is_over = AtomicBool::new(false);
    let (victim, until) = (running.victim(), now() + length);
    let (seen, beside, most) = thread::scope(|scope| {
        let attackers = scope.spawn(|| carry_out::carry_out(attack, &victim, until, stop));
        let watcher = scope.spawn(|| watch(&running.process, &is_over));
        let beside = ask(length);
        let seen = attackers.join().unwrap_or_default();
        is_over.store(true, Ordering::Relaxed);
        (seen, beside, watcher.join().unwrap_or_default())
    });
    let peak = Holding {
        memory: running.process.peak(),
        descriptors: 0,
    };
    let held_after = settled(&running.process, held_before, stop);
    let after = ask(length);
    if stop.load(Ordering::Relaxed) {
        bail!("stopped; what was started has been ended");
    }
    Ok(Row {
        attack: attack.word(),
        loaded: None,
        seen: seen.in_words(),
        before,
        beside,
        after,
        held_before,
        held_most: most.most(peak).most(held_before),
        // The process may have ended since.
        held_after: held_after.and(running.process.holding()),
    })
}

/// Samples the resources of a process until the end, and returns the largest values.
fn watch(process: &Process, is_over: &AtomicBool) -> Holding {
    let mut most = Holding::default();
    while !is_over.load(Ordering::Relaxed) {
        most = most.most(process.holding().unwrap_or_default());
        pause(Duration::from_millis(50));
    }
    most
}

/// Resources of a process after it has released them, or after its time limit for that.
fn settled(process: &Process, before: Holding, stop: &AtomicBool) -> Option<Holding> {
    let patience = now() + RECOVERY;
    loop {
        let held = process.holding()?;
        if held.is_back_at(before) || now() > patience || stop.load(Ordering::Relaxed) {
            return Some(held);
        }
        pause(Duration::from_millis(100));
    }
}

fn raise_descriptors() -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit
        .current
        .is_none_or(|current| current >= OWN_DESCRIPTORS)
    {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(OWN_DESCRIPTORS),
        ..limit
    };
    setrlimit(Resource::Nofile, raised)
        .with_context(|| format!("{OWN_DESCRIPTORS} descriptors are needed; raise `ulimit -n`"))
}

/// Builds the services with the release profile. Returns their folder.
fn built() -> anyhow::Result<PathBuf> {
    let services = [
        "gateway",
        "planets",
        "graphql-server",
        "catalog",
        "ratelimiter",
        "route-webhook",
    ];
    bench::programs("release", &services)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_a_place_for_every_service() {
        let words: Vec<String> = Service::value_variants()
            .iter()
            .map(|it| it.word())
            .collect();
        let titles: Vec<&str> = words.iter().map(String::as_str).chain([RULES]).collect();
        page::assert_places(DOCUMENT, &titles);
    }

    #[test]
    fn the_readme_says_what_the_tables_come_to() {
        let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
        let readme = read(SUMMARY.0);
        let (_, told) = page::place(&readme, SUMMARY.1).unwrap();
        let document = read(DOCUMENT);
        let expected = table::summary(&document);
        assert_eq!(told, expected.trim(), "run `cargo xtask attack --readme`");
    }

    #[test]
    fn services_that_are_ours_are_called_as_their_programs() {
        for (service, program) in [
            (Service::Gateway, "gateway"),
            (
                Service::GraphqlServerJuniperNtex,
                "graphql-server-juniper-ntex",
            ),
            (
                Service::GraphqlServerAsyncGraphqlActixWeb,
                "graphql-server-async-graphql-actix-web",
            ),
            (Service::RouteWebhook, "route-webhook"),
        ] {
            assert_eq!(service.word(), program);
        }
    }
}
