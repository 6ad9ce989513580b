//! Builds the extensions of the gateway from a configuration.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_config::{Config, LoggingExporters, RhaiLimits, TraceIdFormat};
use gateway_telemetry::InstrumentHead;
use gateway_upstream::{Client, EndpointError, Policy, UpstreamEndpoint};
use redis_link::TargetError;

use crate::address::{endpoint, http2, trust};
use crate::answer_cache::AnswerCache;
use crate::coprocessor::CoprocessorStage;
use crate::environment::Environment;
use crate::event_request::EventRequest;
use crate::exchange::{Exchange, Response};
use crate::header_rules::Rules;
use crate::instrumentation::{Instrumentation, LogIds, Plan};
use crate::observer::{Observer, StageKind};
use crate::relay::{RelayCall, RelayError};
use crate::request_coalescing::RequestCoalescing;
use crate::response_headers::ResponseRules;
use crate::retry::Budget;
use crate::script::{Compiled, Layers, ScriptError, Source};
use crate::service::{Service, Shared};
use crate::subgraph::{Subgraph, SubgraphCall, SubgraphOutcome};
use crate::token::{KeySets, KeyStore, TokenError, TokenKeys, Tokens};

/// The reason why extensions cannot be built from a configuration.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An address cannot be called.
    #[error("{key}: {source}")]
    Endpoint {
        /// The configuration key, or the name of the subgraph.
        key: String,
        /// The problem with the address.
        source: EndpointError,
    },
    /// A script cannot be read or compiled.
    #[error("rhai: {0}")]
    Script(#[from] ScriptError),
    /// The keys of tokens cannot be read.
    #[error("authentication.router.jwt: {0}")]
    Token(#[from] TokenError),
    /// The Redis server for cached responses has an invalid address.
    #[error("response_cache: {0}")]
    Redis(#[from] TargetError),
}

/// All extensions of one configuration, checked. All workers share them.
pub struct Extensions {
    config: Arc<Config>,
    sdl: Arc<str>,
    subgraphs: Vec<(String, UpstreamEndpoint)>,
    /// Cache of subgraph responses, or `None` if caching is off.
    answers: Option<Arc<AnswerCache>>,
    /// The retry budget of each subgraph, or `None` for subgraphs without retries.
    budgets: Vec<Option<Arc<Budget>>>,
    source: Option<Source>,
    /// `telemetry.instrumentation`, or `None` without the section.
    plan: Option<Arc<Plan>>,
    ids: LogIds,
    environment: Environment,
    files: Vec<PathBuf>,
    /// This also keeps key sets at URLs alive, so that a reload finds them in the store.
    key_sets: KeySets,
}

impl Extensions {
    /// Checks addresses, scripts and key sets. `subgraphs` contains names and routing URLs, in the order of
    /// their indexes. `environment` provides variables for scripts and conditions. `keys` contains the key
    /// sets of the previous configuration.
    pub fn build(
        config: Arc<Config>,
        sdl: &str,
        subgraphs: &[(&str, &str)],
        environment: Environment,
        keys: &Arc<KeyStore>,
    ) -> Result<Self, Vec<BuildError>> {
        // Collects all errors, so that an operator sees every mistake of a configuration at once.
        let mut errors = Vec::new();
        let mut endpoints = Vec::new();
        for (name, url) in subgraphs {
            match subgraph_endpoint(&config, name, url) {
                Ok(endpoint) => endpoints.push(((*name).to_owned(), endpoint)),
                Err(source) => errors.push(BuildError::Endpoint {
                    key: format!("subgraph `{name}`"),
                    source,
                }),
            }
        }
        if let Some(coprocessor) = &config.coprocessor {
            for kind in StageKind::ALL {
                // Built and dropped, only to check that the address can be called. Each worker builds its own
                // stage.
                if let Err(source) = CoprocessorStage::new(kind, coprocessor, &Arc::from("")) {
                    errors.push(BuildError::Endpoint {
                        key: format!("coprocessor at {}", kind.as_str()),
                        source,
                    });
                }
            }
        }
        let mut files = Vec::new();
        let mut key_sets = KeySets::default();
        let source = config.rhai.as_ref().and_then(|rhai| {
            files.push(rhai.scripts.clone());
            Source::read(&rhai.scripts, &rhai.main)
                .map_err(|error| errors.push(error.into()))
                .ok()
        });
        if let Some(jwt) = &config.authentication.router.jwt {
            files.extend(Tokens::files(jwt));
            match KeySets::read(jwt, keys) {
                Ok(sets) => key_sets = sets,
                Err(error) => errors.push(error.into()),
            }
        }
        let now = tokio::time::Instant::now();
        let budgets = endpoints.iter().map(|(name, _)| {
            let retry = config.traffic_shaping.of_subgraph(name).retry?;
            Some(Arc::new(Budget::new(&retry, now)))
        });
        let names = subgraphs.iter().map(|it| it.0);
        let answers = AnswerCache::new(&config.response_cache, names)
            .map_err(|error| errors.push(error.into()))
            .unwrap_or_default()
            .map(Arc::new);
        let ids = log_ids(&config.telemetry.exporters.logging);
        let this = Self {
            ids,
            budgets: budgets.collect(),
            answers,
            plan: Plan::of(&config, ids, &environment).map(Arc::new),
            config,
            sdl: sdl.into(),
            subgraphs: endpoints,
            source,
            environment,
            files,
            key_sets,
        };
        if let Some(source) = &this.source {
            let problems = this.script_problems(source).into_iter();
            errors.extend(problems.map(BuildError::from));
        }
        if errors.is_empty() {
            Ok(this)
        } else {
            Err(errors)
        }
    }

    fn script_limits(&self) -> RhaiLimits {
        let rhai = self.config.rhai.as_ref();
        rhai.map(|it| it.limits.clone()).unwrap_or_default()
    }

    fn compiled(&self, source: &Source) -> Result<Compiled, ScriptError> {
        Compiled::new(source, &self.script_limits(), &self.sdl, &self.environment)
    }

    /// The reasons why scripts cannot be used. The scripts run as in a worker, up to the first request. The
    /// result is not shared, because each worker compiles its own.
    fn script_problems(&self, source: &Source) -> Vec<ScriptError> {
        match self.compiled(source) {
            Err(problem) => vec![problem],
            Ok(compiled) => {
                if !compiled.has_services() {
                    log::warn!(
                        "rhai: `{}` defines no service function, so no request runs it",
                        source.main.display()
                    );
                }
                compiled.problems(self.subgraphs.iter().map(|(name, _)| name.as_str()))
            }
        }
    }

    /// Files and folders to watch. The extensions must be built again if one of them changes.
    pub fn watched(&self) -> &[PathBuf] {
        &self.files
    }

    /// The ids in lines of the log about requests.
    pub fn log_ids(&self) -> LogIds {
        self.ids
    }

    /// The definitions of the instruments in `telemetry.instrumentation`.
    pub fn instruments(&self) -> impl Iterator<Item = &Arc<InstrumentHead>> {
        self.plan.iter().flat_map(|plan| plan.heads())
    }

    /// Cache of subgraph responses, or `None` if caching is off.
    pub fn answers(&self) -> Option<&AnswerCache> {
        self.answers.as_deref()
    }

    /// The key sets at URLs, each with its poll interval. The program that runs the workers polls them.
    pub fn token_keys(&self) -> Vec<(Arc<TokenKeys>, Duration)> {
        self.key_sets.remote()
    }

    /// Builds the extensions of one worker thread. It compiles the scripts again, so that workers share only
    /// data without locks and reference counts.
    pub fn worker(&self, client: Client, observer: Rc<dyn Observer>) -> ExtensionsWorker {
        let plan = self.plan.as_ref();
        let instrumentation = plan.map(|plan| plan.bind(&|head| observer.series(head)));
        let shared = Rc::new(Shared {
            client,
            observer,
            environment: Arc::clone(&self.environment),
        });
        let compiled = self.source.as_ref().map(|source| self.compiled(source));
        let builder = Builder {
            extensions: self,
            instrumentation: instrumentation.unwrap_or_default(),
            shared,
            compiled,
            sdl_json: Arc::from(serde_json::Value::from(&*self.sdl).to_string()),
        };
        builder.worker()
    }
}

/// The address of a subgraph: its override, or its URL, with the settings of `traffic_shaping`.
///
/// # Errors
/// Fails if the address cannot be called.
pub fn subgraph_endpoint(
    config: &Config,
    name: &str,
    url: &str,
) -> Result<UpstreamEndpoint, EndpointError> {
    let shaping = config.traffic_shaping.of_subgraph(name);
    let tls = config.tls.subgraph.of_subgraph(name);
    let trust = tls.as_ref().map(trust).transpose()?;
    let policy = Policy {
        http2: http2(shaping.http_versions),
        pool_idle_timeout: Some(shaping.pool_idle_timeout),
        trust,
        connections_max: shaping.max_connections,
        ..Policy::default()
    };
    match config.override_subgraph_url.get(name) {
        Some(over) => endpoint(over, policy),
        None => UpstreamEndpoint::parse(url, policy),
    }
}

/// The ids in lines of the log. The gateway's own form has the id of the trace in lines of requests.
fn log_ids(logging: &LoggingExporters) -> LogIds {
    let output = logging.stdout.as_ref();
    let is_terminal = std::io::stderr().is_terminal();
    let (trace, span) = match output.and_then(|it| it.format(is_terminal)) {
        None => (Some(TraceIdFormat::Hexadecimal), false),
        Some(format) => format.ids(),
    };
    LogIds { trace, span }
}

struct Builder<'a> {
    extensions: &'a Extensions,
    instrumentation: Instrumentation,
    shared: Rc<Shared>,
    /// Scripts that cannot be used, although they could when the extensions were built, refuse all requests.
    compiled: Option<Result<Compiled, ScriptError>>,
    sdl_json: Arc<str>,
}

impl Builder<'_> {
    fn worker(self) -> ExtensionsWorker {
        let config = &self.extensions.config;
        let tokens = config
            .authentication
            .router
            .jwt
            .as_ref()
            .map(|jwt| Tokens::new(jwt, &config.telemetry.apollo, &self.extensions.key_sets));
        let subgraphs = self.extensions.subgraphs.iter().enumerate();
        let subgraphs = subgraphs
            .map(|(index, (name, endpoint))| self.subgraph(index, name, endpoint))
            .collect();
        let stages = config.coprocessor.as_ref();
        // The text of a plan is only written if a script or a coprocessor can read it.
        let query_plan = stages.is_some_and(|all| {
            all.execution
                .request
                .as_ref()
                .is_some_and(|stage| stage.query_plan)
        });
        let execution = self.service(
            "execution_service",
            None,
            None,
            (StageKind::ExecutionRequest, StageKind::ExecutionResponse),
        );
        let wants_query_plan = query_plan
            || execution
                .as_ref()
                .is_some_and(|service| service.layers.is_some());
        let sees_headers = self.compiled.is_some()
            || StageKind::ALL
                .into_iter()
                .any(|kind| self.stage(kind).is_some());
        ExtensionsWorker {
            router: self.service(
                "router_service",
                tokens,
                None,
                (StageKind::RouterRequest, StageKind::RouterResponse),
            ),
            supergraph: self.service(
                "supergraph_service",
                None,
                None,
                (StageKind::SupergraphRequest, StageKind::SupergraphResponse),
            ),
            execution,
            subgraphs,
            instrumentation: self.instrumentation,
            wants_query_plan,
            sees_headers,
            sees_context: sees_headers || config.headers.read_context(),
        }
    }

    fn subgraph(&self, index: usize, name: &str, endpoint: &UpstreamEndpoint) -> Subgraph {
        let config = &self.extensions.config;
        let shaping = config.traffic_shaping.of_subgraph(name);
        Subgraph {
            index,
            name: name.into(),
            endpoint: endpoint.clone(),
            rules: Rules::of_subgraph(&config.headers, name),
            response_rules: ResponseRules::of_subgraph(&config.headers, name),
            retry: self.extensions.budgets[index].clone(),
            answers: self.extensions.answers.clone().filter(|it| it.has(name)),
            reply_bytes_max: config.limits.subgraph.of_subgraph(name),
            timeout: shaping.timeout,
            in_flight: shaping.deduplicate_query.then(RequestCoalescing::default),
            compression: shaping.compression,
            instrumentation: self.instrumentation.subgraph.clone(),
            service: self.service(
                "subgraph_service",
                None,
                Some(name),
                (StageKind::SubgraphRequest, StageKind::SubgraphResponse),
            ),
            shared: Rc::clone(&self.shared),
        }
    }

    fn service(
        &self,
        entry: &'static str,
        tokens: Option<Tokens>,
        subgraph: Option<&str>,
        kinds: (StageKind, StageKind),
    ) -> Option<Service> {
        let layers = match &self.compiled {
            None => None,
            Some(Ok(compiled)) => compiled.layers(entry, subgraph),
            Some(Err(error)) => Some(Layers::Unusable(error.clone())),
        };
        let service = Service {
            shared: Rc::clone(&self.shared),
            subgraph: subgraph.map(Rc::from),
            is_shaped: subgraph.is_some_and(|name| {
                let shaping = &self.extensions.config.traffic_shaping;
                shaping.of_subgraph(name).timeout.is_some()
            }),
            tokens,
            layers,
            request: self.stage(kinds.0),
            response: self.stage(kinds.1),
        };
        // Without configured stages there is no service, and a request passes without a copy.
        let is_empty = service.tokens.is_none()
            && service.layers.is_none()
            && service.request.is_none()
            && service.response.is_none();
        (!is_empty).then_some(service)
    }

    fn stage(&self, kind: StageKind) -> Option<CoprocessorStage> {
        let config = self.extensions.config.coprocessor.as_ref()?;
        CoprocessorStage::new(kind, config, &self.sdl_json)
            .expect("the addresses were read when the extensions were built")
    }
}

/// The extensions of one worker thread.
pub struct ExtensionsWorker {
    /// The outermost service, around the HTTP request. `None` if it has no configured stage.
    pub router: Option<Service>,
    /// The service around a GraphQL request.
    pub supergraph: Option<Service>,
    /// The service around the execution of a query plan.
    pub execution: Option<Service>,
    /// Attributes, instruments and events of requests.
    pub instrumentation: Instrumentation,
    subgraphs: Vec<Subgraph>,
    wants_query_plan: bool,
    sees_headers: bool,
    sees_context: bool,
}

impl ExtensionsWorker {
    /// True if there is a script or a coprocessor. Both read headers as text.
    pub fn sees_headers(&self) -> bool {
        self.sees_headers
    }

    /// True if a script, a coprocessor or a header rule reads [`Exchange::context`].
    pub fn sees_context(&self) -> bool {
        self.sees_context
    }

    /// True if a stage reads [`Exchange::query_plan`].
    pub fn wants_query_plan(&self) -> bool {
        self.wants_query_plan
    }

    /// Fetches from the subgraph with this index.
    ///
    /// # Panics
    /// Panics if there is no subgraph with this index.
    pub async fn fetch(
        &self,
        subgraph: usize,
        exchange: &Exchange,
        call: SubgraphCall,
    ) -> SubgraphOutcome {
        self.subgraphs[subgraph].call(exchange, call).await
    }

    /// Runs rules and request stages on a subscription request to the subgraph with this index. The
    /// `path` of the subscription replaces the subgraph's path. The request is not sent.
    ///
    /// # Errors
    /// Returns the response if a stage ended the request.
    ///
    /// # Panics
    /// Panics if there is no subgraph with this index.
    pub async fn event_request(
        &self,
        subgraph: usize,
        exchange: &Exchange,
        path: Option<&str>,
        body: Bytes,
    ) -> Result<EventRequest, SubgraphOutcome> {
        self.subgraphs[subgraph]
            .event_request(exchange, path, body)
            .await
    }

    /// Sends any request to the subgraph with this index, through the same rules and stages. The response is
    /// not checked.
    ///
    /// # Errors
    /// Fails if no response arrives.
    ///
    /// # Panics
    /// Panics if there is no subgraph with this index.
    pub async fn relay(
        &self,
        subgraph: usize,
        exchange: &Exchange,
        call: RelayCall,
    ) -> Result<Response, RelayError> {
        self.subgraphs[subgraph].relay(exchange, call).await
    }
}
