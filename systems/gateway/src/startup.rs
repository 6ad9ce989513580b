//! From the command line to serving, and from a signal to a stopped gateway.
//!
//! The thread that starts the process keeps it: it accepts connections, looks for changed files
//! and waits for signals, so that workers do nothing but serve.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser as _;
use gateway_config::{Config, Listen, RemoteSchema};
use gateway_remote::SourceSchema;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::runtime::{LocalOptions, LocalRuntime};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::command_line::{Arguments, Command};
use crate::environment::Environment;
use crate::generation::{self, Generation, GenerationError, Sources};
use crate::health::Health;
use crate::listen::{self, Listener, Mailbox, Site};
use crate::loader::Loader;
use crate::metrics::Metrics;
use crate::reload::{self, Look};
use crate::remotes;
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
    telemetry::log::open(arguments.log.into());
    let result = match &arguments.command {
        Some(Command::Check { config }) => check(config, arguments.dev),
        Some(Command::Import { folder }) => import(folder),
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
    #[error(transparent)]
    Generation(#[from] GenerationError),
    #[error("`{0}` is no metadata folder of Hasura 2: expected a `version.yaml` in it")]
    NoMetadata(String),
    #[error("cannot listen on `{address}`: {source}; choose another address")]
    Listen { address: Listen, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}

impl StartError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Generation(_) | Self::NoMetadata(_) => 2,
            Self::Listen { .. } | Self::Serve(_) => 1,
        }
    }
}

fn check(config: &Path, is_development: bool) -> Result<(), StartError> {
    let environment = Environment::of_process();
    let reading = generation::read_config(Some(config), &environment, is_development)?;
    for warning in reading.warnings {
        telemetry::announce(&format!("warning: {warning}"));
    }
    telemetry::announce(&format!("{}: nothing wrong found", config.display()));
    Ok(())
}

/// The answer is on standard output, the talk on standard error.
fn import(folder: &Path) -> Result<(), StartError> {
    let inner = folder.join("metadata");
    let folder = if inner.is_dir() { &inner } else { folder };
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    if read("version.yaml").is_none() {
        return Err(StartError::NoMetadata(folder.display().to_string()));
    }
    let import = gateway_config::import(&read).map_err(GenerationError::Config)?;
    // Nobody is left to be told when a stream is closed.
    let _ = write!(io::stdout(), "{}", import.yaml);
    for note in import.notes {
        let _ = writeln!(io::stderr(), "not carried over: {note}");
    }
    Ok(())
}

fn serve(arguments: &Arguments) -> Result<(), StartError> {
    let sources = Sources {
        config: arguments.config.clone(),
        supergraph: arguments.supergraph.clone(),
        is_development: arguments.dev,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .build_local(LocalOptions::default())?;
    let mut loader = Loader::new(sources, Environment::of_process());
    let generation = runtime.block_on(loader.load())?;
    let config = Arc::clone(&generation.config);
    let sites = listen::sites(
        &config,
        arguments.listen.as_ref(),
        arguments.health_listen.as_ref(),
    );
    let listeners = open(&sites)?;
    // Before the world is told, so that whoever was told can stop it.
    let (sender, events) = mpsc::unbounded_channel();
    signals(sender.clone())?;
    let common = Arc::new(Common {
        metrics: Metrics::default(),
        health: Health::new(&config.health_check.readiness),
    });
    common.health.missing(loader.missing(&generation));
    let count = arguments.workers.unwrap_or_else(processors);
    let (mailboxes, threads) = start_workers(count, &generation, &common)?;
    for (listener, site) in &listeners {
        telemetry::announce(&greeting(listener, site, &config.supergraph.path.0.0));
    }
    log::info!("serving with {count} workers");
    let paths = generation.watched(&loader.sources);
    let keeper = Keeper {
        is_watching: arguments.hot_reload,
        look: Look::at(&paths),
        paths,
        loader,
        config: Arc::clone(&config),
        mailboxes,
        common,
        sender,
        round: Arc::default(),
    };
    drop(generation);
    let limit = config.supergraph.connection_shutdown_timeout.0;
    keeper.keep(runtime, (listeners, events), limit);
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

fn open(sites: &[(Listen, Site)]) -> Result<Vec<(Listener, Site)>, StartError> {
    let listeners = sites.iter().map(|(address, site)| {
        let listener = Listener::open(address).map_err(|source| StartError::Listen {
            address: address.clone(),
            source,
        })?;
        Ok((listener, site.clone()))
    });
    listeners.collect()
}

fn greeting(listener: &Listener, site: &Site, path: &str) -> String {
    let url = listener.url();
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

/// What the first thread learns while the workers serve.
enum Event {
    /// A signal came.
    Signal(i32),
    /// A service that was missing said what it has.
    SchemaLoaded(Box<(RemoteSchema, SourceSchema)>),
}

/// What the first thread does while the workers serve.
struct Keeper {
    loader: Loader,
    config: Arc<Config>,
    is_watching: bool,
    paths: Vec<PathBuf>,
    look: Look,
    mailboxes: Vec<Mailbox>,
    common: Arc<Common>,
    sender: UnboundedSender<Event>,
    /// Goes when another configuration is used: who still asks for the old one stops.
    round: Arc<()>,
}

impl Keeper {
    /// Accepts connections and reloads until a signal says stop; then tells the workers.
    fn keep(
        mut self,
        runtime: LocalRuntime,
        (listeners, events): (Vec<(Listener, Site)>, UnboundedReceiver<Event>),
        limit: Duration,
    ) {
        for (listener, site) in listeners {
            runtime.spawn_local(listen::accept(listener, site, self.mailboxes.clone()));
        }
        runtime.block_on(self.watch(events));
        self.common.health.stopping();
        // Ends the acceptors: from here on nobody can connect.
        drop(runtime);
        for mailbox in &self.mailboxes {
            // Fails only when the worker has ended already.
            let _ = mailbox.orders.send(Order::Stop(limit));
        }
    }

    async fn watch(&mut self, mut events: UnboundedReceiver<Event>) {
        self.ask_the_missing();
        loop {
            match tokio::time::timeout(reload::INTERVAL, events.recv()).await {
                Ok(Some(Event::Signal(SIGHUP))) => self.reload("SIGHUP").await,
                Ok(Some(Event::SchemaLoaded(loaded))) => self.schema_loaded(*loaded),
                Ok(_) => return,
                Err(_) if self.is_watching => {
                    let look = Look::at(&self.paths);
                    if look != self.look {
                        self.look = look;
                        self.reload("files changed").await;
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Builds a new generation and hands it out; what is wrong with it is only said.
    async fn reload(&mut self, reason: &str) {
        match self.loader.load().await {
            Ok(generation) => {
                self.paths = generation.watched(&self.loader.sources);
                self.look = Look::at(&self.paths);
                self.config = Arc::clone(&generation.config);
                self.hand_out(&generation);
                self.ask_the_missing();
                log::info!("reloaded: {reason}");
            }
            Err(error) => log::error!("not reloaded, what ran before runs on: {error}"),
        }
    }

    fn hand_out(&self, generation: &Arc<Generation>) {
        for mailbox in &self.mailboxes {
            let order = Order::Generation(Arc::clone(generation));
            let _ = mailbox.orders.send(order);
        }
        let missing = self.loader.missing(generation);
        self.common.health.missing(missing);
    }

    /// Asks the services that are missing until they answer, in the background.
    fn ask_the_missing(&mut self) {
        self.round = Arc::default();
        for remote in &self.config.remote_schemas {
            if !self.loader.is_missing(&remote.name) {
                continue;
            }
            let (remote, config) = (remote.clone(), Arc::clone(&self.config));
            let (client, sender) = (self.loader.client.clone(), self.sender.clone());
            let round = Arc::downgrade(&self.round);
            tokio::task::spawn_local(async move {
                let schema = remotes::ask_until_loaded(&client, &config, &remote, &round).await;
                if let Some(schema) = schema {
                    // Nobody listens when the gateway stops.
                    let _ = sender.send(Event::SchemaLoaded(Box::new((remote, schema))));
                }
            });
        }
    }

    /// Takes in what a service said that was missing.
    fn schema_loaded(&mut self, (remote, schema): (RemoteSchema, SourceSchema)) {
        let is_wanted = self
            .config
            .remote_schemas
            .iter()
            .any(|it| it.name == remote.name);
        if !is_wanted || !self.loader.is_missing(&remote.name) {
            return;
        }
        self.loader.schema_loaded(&remote, schema);
        match self.loader.build(&self.config) {
            Ok(generation) => {
                self.hand_out(&generation);
                log::info!("the remote schema `{}` is there now", remote.name);
            }
            Err(error) => log::error!("not taken in, what ran before runs on: {error}"),
        }
    }
}

/// Signals as messages. A second SIGTERM or SIGINT ends the process at once.
fn signals(sender: UnboundedSender<Event>) -> io::Result<()> {
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
            let _ = sender.send(Event::Signal(signal));
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)?;
    Ok(())
}
