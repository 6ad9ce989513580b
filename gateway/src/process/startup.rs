//! Starts the gateway from the command line, and stops it after a signal.
//!
//! The main thread accepts connections, checks for changed files and waits for signals. So workers only serve
//! requests.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chassis::{ConnectionTable, Most};
use gateway_config::{Config, Listen, RemoteSchema};
use gateway_remote::SourceSchema;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::runtime::{LocalOptions, LocalRuntime};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::graphql::planning::Planning;
use crate::http::connections;
use crate::http::health::Health;
use crate::merged::importing::{self, ImportError};
use crate::merged::remotes;
use crate::process::checking;
use crate::process::command_line::{Arguments, Command, ConfigCommand};
use crate::process::environment::Environment;
use crate::process::exporting::Exporting;
use crate::process::generation::{Generation, GenerationError, Sources};
use crate::process::listen::{self, Listener};
use crate::process::loader::Loader;
use crate::process::log_form;
use crate::process::mailbox::{Mailbox, Order};
use crate::process::metrics::Metrics;
use crate::process::process_state::ProcessState;
use crate::process::reload::{self, FileStates};
use crate::process::sites::{self, Site};
use crate::process::token_keys::{self, Polled};
use crate::process::worker;

/// Limits for connections to health and metrics, in total and per address.
const OPERATORS: Most = Most {
    total: 128,
    per_address: 128,
};

/// Limits for connections to the address for callbacks of subgraphs.
const SUBGRAPHS: Most = Most {
    total: 1024,
    per_address: 1024,
};

/// The whole program: reads the command line, opens its sockets, and serves until it is stopped.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match chassis::parse::<Arguments>(words) {
        Ok(arguments) => arguments,
        Err(answer) => {
            // If the stream is closed, there is no other place for the message.
            let _ = answer.print();
            // clap uses two exit codes, 0 and 2. Both fit.
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
    };
    telemetry::log::open(arguments.log);
    telemetry::log::panics();
    let result = match &arguments.command {
        Some(Command::Check { config, supergraph }) => {
            check(config, supergraph.clone(), arguments.dev)
        }
        Some(Command::Config(ConfigCommand::Validate { config })) => {
            check(config, None, arguments.dev)
        }
        Some(Command::Config(ConfigCommand::Schema)) => {
            // If the stream is closed, there is no other place for the text.
            let _ = writeln!(io::stdout(), "{:#}", gateway_config::schema());
            Ok(())
        }
        Some(Command::Import {
            metadata,
            without_restrictions,
        }) => importing::import(metadata, *without_restrictions).map_err(StartError::from),
        None => {
            if Environment::has_log_filter() {
                log::warn!(
                    "RUST_LOG has no effect; write `--log LEVEL` or APOLLO_ROUTER_LOG=LEVEL"
                );
            }
            serve(&arguments)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{}", shown(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

/// The text of an error. Errors in a file start with `error:` already.
fn shown(error: &StartError) -> String {
    match error {
        StartError::Generation(GenerationError::Config(mistakes))
        | StartError::Import(ImportError::Mistakes(mistakes)) => {
            use std::io::IsTerminal as _;
            mistakes.render(io::stderr().is_terminal())
        }
        other => format!("error: {other}"),
    }
}

/// The reason why the gateway did not start, or stopped.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Generation(#[from] GenerationError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error("cannot listen on `{address}`: {source}; choose another address")]
    Listen { address: Listen, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}

impl StartError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Generation(_) | Self::Import(_) => 2,
            Self::Listen { .. } | Self::Serve(_) => 1,
        }
    }
}

fn check(
    config: &Path,
    supergraph: Option<PathBuf>,
    is_development: bool,
) -> Result<(), StartError> {
    let sources = Sources {
        config: Some(config.to_owned()),
        supergraph,
        is_development,
    };
    checking::check(config, &sources).map_err(StartError::from)
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
        // No code blocks here after the start, but tokio requires at least one thread.
        .max_blocking_threads(1)
        .build_local(LocalOptions::default())?;
    let mut loader = Loader::new(sources, Environment::of_process());
    let generation = runtime.block_on(loader.load())?;
    let config = Arc::clone(&generation.config);
    let sites = sites::sites(
        &config,
        arguments.listen.as_ref(),
        arguments.health_listen.as_ref(),
    );
    // After the configuration is valid and before any worker runs, so that an address in use ends the start
    // at once.
    let listeners = open(&sites)?;
    // Before the addresses are printed. A process that waits for the addresses can then stop the gateway.
    let (sender, events) = mpsc::unbounded_channel();
    signals(sender.clone())?;
    let count = arguments.workers.unwrap_or_else(processors);
    let metrics = Metrics::default();
    let process = Arc::new(ProcessState {
        planning: Arc::new(Planning::start(count, metrics.planning())?),
        metrics,
        health: Arc::new(Health::new(&config.health_check.readiness)),
        connections: ConnectionTable::new(connections::most(&config)),
        traffic: Arc::default(),
        subscriptions: Arc::default(),
        callbacks: Arc::default(),
        workers: count,
        exported: Arc::clone(&loader.exported),
    });
    process.health.missing(loader.missing(&generation));
    let keys = generation.extensions.token_keys();
    process.health.keys(keys.clone());
    log_form::choose(&config, &loader.environment);
    let (mailboxes, threads) = start_workers(count, &generation, &process)?;
    let exporting = Exporting::start(&generation, &process).map_err(GenerationError::Export)?;
    announce(&listeners, &generation);
    log::info!("serving with {count} workers");
    let paths = watched(&generation, &loader.sources, arguments.hot_reload);
    let supervisor = Supervisor {
        is_watching: arguments.hot_reload,
        look: FileStates::at(&paths),
        paths,
        loader,
        config: Arc::clone(&config),
        keys,
        mailboxes,
        process,
        sender,
        round: Arc::default(),
        exporting,
    };
    // The workers hold the generation. Without this drop, a replaced generation would stay in memory.
    drop(generation);
    let limit = config.supergraph.connection_shutdown_timeout.0;
    let exporting = supervisor.supervise(runtime, listeners, events, limit);
    for thread in threads {
        // The panic message of a worker is printed already.
        let _ = thread.join();
    }
    // Last, so that the spans of all requests are exported.
    exporting.finish();
    log::info!("stopped");
    Ok(())
}

/// CPUs that this process may use, by affinity and by quota.
fn processors() -> usize {
    thread::available_parallelism()
        .map_or(1, usize::from)
        // The limit of `--workers`. If the machine reports no CPU count, there is one worker.
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

/// The files to watch: all files with `--hot-reload`, and the operation list if its own hot reload is on.
fn watched(generation: &Generation, sources: &Sources, is_everything: bool) -> Vec<PathBuf> {
    if is_everything {
        return generation.watched(sources);
    }
    if generation.config.persisted_queries.hot_reload {
        return generation.manifests();
    }
    Vec::new()
}

/// Prints the addresses for the person or program that started the gateway.
fn announce(listeners: &[(Listener, Site)], generation: &Generation) {
    for (listener, site) in listeners {
        let path = &generation.config.supergraph.path.0.0;
        let mut said = greeting(listener, site, path);
        if generation.tls.is_some() && site.graphql {
            said = said.replacen("http://", "https://", 1);
        }
        telemetry::announce(&said);
    }
}

fn greeting(listener: &Listener, site: &Site, path: &str) -> String {
    let url = listener.url();
    if site.graphql {
        return format!("listening on {url}{path}");
    }
    let paths = [
        site.health.as_deref(),
        site.metrics.as_deref(),
        site.invalidation.as_deref(),
        site.callback.as_deref(),
    ];
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
    process: &Arc<ProcessState>,
) -> io::Result<Workers> {
    let (mut mailboxes, mut threads) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (orders, inbox) = mpsc::unbounded_channel();
        let open = Arc::default();
        mailboxes.push(Mailbox {
            orders,
            open: Arc::clone(&open),
        });
        let (generation, process) = (Arc::clone(generation), Arc::clone(process));
        let work = move || {
            if let Err(error) = worker::run(generation, process, inbox, open) {
                log::error!("a worker cannot run: {error}");
            }
        };
        let name = format!("worker-{number}");
        threads.push(thread::Builder::new().name(name).spawn(work)?);
    }
    Ok((mailboxes, threads))
}

/// Messages to the main thread while the workers run.
enum Event {
    /// A signal, by its number.
    Signal(i32),
    /// A missing service has returned its schema.
    SchemaLoaded(Box<(RemoteSchema, SourceSchema)>),
}

/// The main thread's state while the workers run.
struct Supervisor {
    loader: Loader,
    config: Arc<Config>,
    keys: Vec<Polled>,
    is_watching: bool,
    paths: Vec<PathBuf>,
    look: FileStates,
    mailboxes: Vec<Mailbox>,
    process: Arc<ProcessState>,
    sender: UnboundedSender<Event>,
    /// Replaced with each new configuration. The background tasks of the old configuration then notice that
    /// theirs is gone, and stop.
    round: Arc<()>,
    exporting: Exporting,
}

impl Supervisor {
    /// Accepts connections and reloads files until a stop signal arrives. Then stops the workers. The exports
    /// continue.
    fn supervise(
        mut self,
        runtime: LocalRuntime,
        listeners: Vec<(Listener, Site)>,
        events: UnboundedReceiver<Event>,
        limit: Duration,
    ) -> Exporting {
        for (listener, site) in listeners {
            // Health and metrics respond even if clients use all other connections.
            let table = if site.graphql {
                Arc::clone(&self.process.connections)
            } else if site.callback.is_some() {
                ConnectionTable::new(SUBGRAPHS)
            } else {
                ConnectionTable::new(OPERATORS)
            };
            let workers = self.mailboxes.clone();
            runtime.spawn_local(listen::accept(listener, site, workers, table));
        }
        runtime.block_on(self.watch(events));
        // First, so that a load balancer sees the gateway as not ready while it finishes.
        self.process.health.stopping();
        let delay = self.config.supergraph.drain_delay.0;
        if !delay.is_zero() {
            log::info!("draining for {delay:?}: not ready, and still serving");
            // The acceptors continue during the delay.
            runtime.block_on(async { tokio::time::sleep(delay).await });
        }
        // Ends the acceptors. From here on, new connections are refused.
        drop(runtime);
        for mailbox in &self.mailboxes {
            // Fails only if the worker has ended already.
            let _ = mailbox.orders.send(Order::Stop(limit));
        }
        self.exporting
    }

    async fn watch(&mut self, mut events: UnboundedReceiver<Event>) {
        self.ask_in_background();
        loop {
            match tokio::time::timeout(reload::INTERVAL, events.recv()).await {
                Ok(Some(Event::Signal(SIGHUP))) => self.reload("SIGHUP").await,
                Ok(Some(Event::SchemaLoaded(loaded))) => {
                    let (remote, schema) = *loaded;
                    self.schema_loaded(&remote, schema);
                }
                // SIGTERM or SIGINT. `None` is impossible, because this object holds a sender.
                Ok(_) => return,
                Err(_) if !self.paths.is_empty() => {
                    let look = FileStates::at(&self.paths);
                    if look != self.look {
                        // Before the reload, so that invalid files are not read again every half second until
                        // they are repaired.
                        self.look = look;
                        self.reload("files changed").await;
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Builds a new generation and sends it to the workers. If that fails, logs the reason and keeps the old
    /// generation.
    async fn reload(&mut self, reason: &str) {
        match self.loader.load().await {
            Ok(generation) => {
                self.paths = watched(&generation, &self.loader.sources, self.is_watching);
                // Checked again, because the new configuration may contain other files.
                self.look = FileStates::at(&self.paths);
                self.config = Arc::clone(&generation.config);
                self.keys = generation.extensions.token_keys();
                self.hand_out(&generation);
                self.ask_in_background();
                log::info!("reloaded: {reason}");
            }
            Err(error) => {
                log::error!("not reloaded, the former configuration stays in use: {error}")
            }
        }
    }

    fn hand_out(&mut self, generation: &Arc<Generation>) {
        log_form::choose(&generation.config, &self.loader.environment);
        self.exporting.use_generation(generation);
        let most = connections::most(&generation.config);
        self.process.connections.set(most);
        for mailbox in &self.mailboxes {
            let order = Order::Generation(Arc::clone(generation));
            // Fails only if the worker has ended already.
            let _ = mailbox.orders.send(order);
        }
        let missing = self.loader.missing(generation);
        self.process.health.missing(missing);
        self.process.health.keys(self.keys.clone());
    }

    /// Requests missing schemas until their services respond, and the keys of tokens, in the background.
    fn ask_in_background(&mut self) {
        self.round = Arc::default();
        for (set, interval) in &self.keys {
            let (client, round) = (self.loader.client.clone(), Arc::downgrade(&self.round));
            tokio::task::spawn_local(token_keys::poll(client, Arc::clone(set), *interval, round));
        }
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
                    // Fails only if the gateway stops.
                    let _ = sender.send(Event::SchemaLoaded(Box::new((remote, schema))));
                }
            });
        }
    }

    /// Adds the schema of a service that was missing.
    fn schema_loaded(&mut self, remote: &RemoteSchema, schema: SourceSchema) {
        // Meanwhile a reload may have removed the service, or fetched its schema.
        let is_wanted = self
            .config
            .remote_schemas
            .iter()
            .any(|it| it.name == remote.name);
        if !is_wanted || !self.loader.is_missing(&remote.name) {
            return;
        }
        self.loader.schema_loaded(remote, schema);
        match self.loader.build(&self.config) {
            Ok(generation) => {
                self.hand_out(&generation);
                log::info!("the remote schema `{}` is available now", remote.name);
            }
            Err(error) => log::error!("not added, the former schema stays in use: {error}"),
        }
    }
}

/// Sends signals as messages. A second SIGTERM or SIGINT ends the process at once.
fn signals(sender: UnboundedSender<Event>) -> io::Result<()> {
    let mut arriving = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    // A thread of its own, so that a second signal ends the process even if the main thread hangs.
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
            // Fails only if the main thread has stopped already, which is the purpose of the signal.
            let _ = sender.send(Event::Signal(signal));
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)?;
    Ok(())
}
