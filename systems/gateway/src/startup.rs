//! From the command line to serving, and from a signal to a stopped gateway.
//!
//! The thread that starts the process keeps it: it accepts connections, looks for changed files
//! and waits for signals, so that workers do nothing but serve.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser as _;
use gateway_config::Listen;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::command_line::{Arguments, Command};
use crate::environment::Environment;
use crate::generation::{self, Generation, GenerationError, Sources};
use crate::health::Health;
use crate::journal;
use crate::listen::{self, Door, Mailbox, Site};
use crate::metrics::Metrics;
use crate::reload::{self, Look};
use crate::worker::{self, Common, Order};

/// The whole program: reads the command line, listens, serves until stopped.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(answer) => {
            // Nobody is left to be told when the stream is closed.
            let _ = answer.print();
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
    };
    journal::open(arguments.log);
    let result = match &arguments.command {
        Some(Command::Check { config }) => check(config, arguments.dev),
        None => serve(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{}", shown(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

/// Mistakes of a file bring their own `error:`.
fn shown(error: &StartError) -> String {
    match error {
        StartError::Generation(GenerationError::Config(mistakes)) => {
            use std::io::IsTerminal as _;
            mistakes.render(io::stderr().is_terminal())
        }
        other => format!("error: {other}"),
    }
}

/// Why nothing is served, or no longer.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("no supergraph: give its file with --supergraph or APOLLO_ROUTER_SUPERGRAPH_PATH")]
    NoSupergraph,
    #[error(transparent)]
    Generation(#[from] GenerationError),
    #[error("cannot listen on `{address}`: {source}; choose another address")]
    Listen { address: Listen, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}

impl StartError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NoSupergraph | Self::Generation(_) => 2,
            Self::Listen { .. } | Self::Serve(_) => 1,
        }
    }
}

fn check(config: &std::path::Path, is_development: bool) -> Result<(), StartError> {
    let environment = Environment::of_process();
    let reading = generation::read_config(Some(config), &environment, is_development)?;
    for warning in reading.warnings {
        announce(&format!("warning: {warning}"));
    }
    announce(&format!("{}: nothing wrong found", config.display()));
    Ok(())
}

fn serve(arguments: &Arguments) -> Result<(), StartError> {
    let supergraph = arguments.supergraph.clone();
    let sources = Sources {
        config: arguments.config.clone(),
        supergraph: supergraph.ok_or(StartError::NoSupergraph)?,
        is_development: arguments.dev,
    };
    let environment = Environment::of_process();
    let generation = Arc::new(Generation::build(&sources, &environment)?);
    let config = Arc::clone(&generation.config);
    let sites = listen::sites(
        &config,
        arguments.listen.as_ref(),
        arguments.health_listen.as_ref(),
    );
    let doors = open(&sites)?;
    // Before the world is told, so that whoever was told can stop it.
    let signals = signals()?;
    let common = Arc::new(Common {
        metrics: Metrics::default(),
        health: Health::new(&config.health_check.readiness),
    });
    let count = arguments.workers.unwrap_or_else(processors);
    let (mailboxes, threads) = start_workers(count, &generation, &common)?;
    for (door, site) in &doors {
        announce(&greeting(door, site, &config.supergraph.path.0.0));
    }
    log::info!("serving with {count} workers");
    let keeper = Keeper {
        is_watching: arguments.hot_reload,
        look: Look::at(&generation.watched(&sources)),
        paths: generation.watched(&sources),
        sources,
        environment,
        mailboxes,
    };
    drop(generation);
    keeper.keep(
        (doors, signals),
        &common,
        config.supergraph.connection_shutdown_timeout.0,
    )?;
    for thread in threads {
        // A worker that panicked has said so already.
        let _ = thread.join();
    }
    log::info!("stopped");
    Ok(())
}

/// CPUs that this process may use, by affinity and by quota.
fn processors() -> usize {
    thread::available_parallelism()
        .map_or(1, usize::from)
        .min(512)
}

fn open(sites: &[(Listen, Site)]) -> Result<Vec<(Door, Site)>, StartError> {
    let doors = sites.iter().map(|(address, site)| {
        let door = Door::open(address).map_err(|source| StartError::Listen {
            address: address.clone(),
            source,
        })?;
        Ok((door, site.clone()))
    });
    doors.collect()
}

fn greeting(door: &Door, site: &Site, path: &str) -> String {
    let url = door.url();
    if site.graphql {
        return format!("listening on {url}{path}");
    }
    let paths = [site.health.as_deref(), site.metrics.as_deref()];
    let paths: Vec<String> = paths
        .into_iter()
        .flatten()
        .map(|path| format!("{url}{path}"))
        .collect();
    format!("also {}", paths.join(" and "))
}

/// One line on standard output, for the person or the program that started the gateway.
fn announce(line: &str) {
    // Serving goes on when nobody reads standard output.
    let _ = writeln!(io::stdout(), "{line}");
}

type Workers = (Vec<Mailbox>, Vec<JoinHandle<()>>);

fn start_workers(
    count: usize,
    generation: &Arc<Generation>,
    common: &Arc<Common>,
) -> io::Result<Workers> {
    let (mut mailboxes, mut threads) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (orders, inbox) = mpsc::unbounded_channel();
        let open = Arc::default();
        mailboxes.push(Mailbox {
            orders,
            open: Arc::clone(&open),
        });
        let (generation, common) = (Arc::clone(generation), Arc::clone(common));
        let work = move || {
            if let Err(error) = worker::run(generation, common, inbox, open) {
                log::error!("a worker cannot run: {error}");
            }
        };
        let name = format!("worker-{number}");
        threads.push(thread::Builder::new().name(name).spawn(work)?);
    }
    Ok((mailboxes, threads))
}

/// What the first thread does while the workers serve.
struct Keeper {
    sources: Sources,
    environment: Environment,
    is_watching: bool,
    paths: Vec<PathBuf>,
    look: Look,
    mailboxes: Vec<Mailbox>,
}

impl Keeper {
    /// Accepts connections and reloads until a signal says stop; then tells the workers.
    fn keep(
        mut self,
        (doors, signals): (Vec<(Door, Site)>, UnboundedReceiver<i32>),
        common: &Common,
        limit: Duration,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(1)
            .build()?;
        for (door, site) in doors {
            runtime.spawn(listen::accept(door, site, self.mailboxes.clone()));
        }
        runtime.block_on(self.watch(signals));
        common.health.stopping();
        // Ends the acceptors: from here on nobody can connect.
        drop(runtime);
        for mailbox in &self.mailboxes {
            // Fails only when the worker has ended already.
            let _ = mailbox.orders.send(Order::Stop(limit));
        }
        Ok(())
    }

    async fn watch(&mut self, mut signals: UnboundedReceiver<i32>) {
        loop {
            match tokio::time::timeout(reload::INTERVAL, signals.recv()).await {
                Ok(Some(SIGHUP)) => self.reload("SIGHUP"),
                Ok(_) => return,
                Err(_) if self.is_watching => {
                    let look = Look::at(&self.paths);
                    if look != self.look {
                        self.look = look;
                        self.reload("files changed");
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Builds a new generation and hands it out; what is wrong with it is only said.
    fn reload(&mut self, reason: &str) {
        match Generation::build(&self.sources, &self.environment) {
            Ok(generation) => {
                self.paths = generation.watched(&self.sources);
                self.look = Look::at(&self.paths);
                let generation = Arc::new(generation);
                for mailbox in &self.mailboxes {
                    let order = Order::Generation(Arc::clone(&generation));
                    let _ = mailbox.orders.send(order);
                }
                log::info!("reloaded: {reason}");
            }
            Err(error) => log::error!("not reloaded, what ran before runs on: {error}"),
        }
    }
}

/// Signals as messages. A second SIGTERM or SIGINT ends the process at once.
fn signals() -> io::Result<UnboundedReceiver<i32>> {
    let (told, signals) = mpsc::unbounded_channel();
    let mut arriving = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        let mut is_stopping = false;
        for signal in arriving.forever() {
            if signal != SIGHUP && std::mem::replace(&mut is_stopping, true) {
                log::error!("aborted by a second signal");
                std::process::exit(1);
            }
            if signal != SIGHUP {
                log::info!("stopping; a second signal aborts");
            }
            let _ = told.send(signal);
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)?;
    Ok(signals)
}
