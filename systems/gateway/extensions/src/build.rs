//! From a configuration to what requests pass through.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_config::{Config, RhaiLimits};
use gateway_upstream::{Client, Endpoint, EndpointError, Policy};
use redis_link::LinkError;

use crate::address::{endpoint, http2, trust};
use crate::answer_cache::AnswerCache;
use crate::coprocessor::CoprocessorStage;
use crate::environment::Environment;
use crate::event_request::EventRequest;
use crate::exchange::{Exchange, Response};
use crate::flights::Flights;
use crate::header_rules::Rules;
use crate::observer::{Observer, StageKind};
use crate::relay::{RelayCall, RelayError};
use crate::response_headers::ResponseRules;
use crate::retry::Budget;
use crate::script::{Compiled, ScriptError, Source};
use crate::service::{Service, Shared};
use crate::subgraph::{Subgraph, SubgraphCall, SubgraphOutcome};
use crate::token::{KeySets, KeyStore, TokenError, TokenKeys, Tokens};

/// Why extensions cannot be built from a configuration.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An address cannot be called.
    #[error("{key}: {source}")]
    Endpoint {
        /// The configuration key, or the subgraph.
        key: String,
        /// What is wrong with the address.
        source: EndpointError,
    },
    /// A script cannot be read or compiled.
    #[error("rhai: {0}")]
    Script(#[from] ScriptError),
    /// The keys of tokens cannot be read.
    #[error("authentication.router.jwt: {0}")]
    Token(#[from] TokenError),
    /// A Redis for answers cannot be named like this.
    #[error("response_cache: {0}")]
    Redis(#[from] LinkError),
}

/// All extensions of one configuration, checked. Shared by all workers.
pub struct Extensions {
    config: Arc<Config>,
    sdl: Arc<str>,
    subgraphs: Vec<(String, Endpoint)>,
    /// Answers of subgraphs that are kept; nothing where none are.
    answers: Option<Arc<AnswerCache>>,
    /// One for each subgraph whose requests are sent again.
    budgets: Vec<Option<Arc<Budget>>>,
    source: Option<Source>,
    environment: Environment,
    files: Vec<PathBuf>,
    /// Those at URLs are held here, so that a reload finds them in the store.
    key_sets: KeySets,
}

impl Extensions {
    /// Checks everything there is to check: addresses, scripts, key sets.
    /// `subgraphs` are names and routing URLs, in the order of their indexes;
    /// `environment` looks variables up for scripts and conditions. `keys` holds the key sets that
    /// the configuration before this one had.
    pub fn build(
        config: Arc<Config>,
        sdl: &str,
        subgraphs: &[(&str, &str)],
        environment: Environment,
        keys: &Arc<KeyStore>,
    ) -> Result<Self, Vec<BuildError>> {
        // All errors are collected, so that an operator sees every mistake of a configuration at
        // once.
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
                // Built and dropped: only whether the address can be called matters here; each
                // worker builds its own.
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
        let this = Self {
            budgets: budgets.collect(),
            answers,
            config,
            sdl: sdl.into(),
            subgraphs: endpoints,
            source,
            environment,
            files,
            key_sets,
        };
        // Compiled once for its errors; the result is not shared, because workers compile their
        // own.
        if let Some(source) = &this.source
            && let Err(error) =
                Compiled::new(source, &this.script_limits(), &this.sdl, &this.environment)
        {
            errors.push(error.into());
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

    /// Files and folders whose change means that extensions should be built anew.
    pub fn watched(&self) -> &[PathBuf] {
        &self.files
    }

    /// Answers of subgraphs that are kept; nothing where none are.
    pub fn answers(&self) -> Option<&AnswerCache> {
        self.answers.as_deref()
    }

    /// The key sets at URLs, with the time between two readings. The program that runs the workers polls
    /// them.
    pub fn token_keys(&self) -> Vec<(Arc<TokenKeys>, Duration)> {
        self.key_sets.remote()
    }

    /// What one worker thread runs. Scripts are compiled here once more, so that
    /// workers share nothing that would have to be locked or counted.
    pub fn worker(&self, client: Client, observer: Rc<dyn Observer>) -> Worker {
        let shared = Rc::new(Shared {
            client,
            observer,
            environment: Arc::clone(&self.environment),
        });
        let compiled = self.source.as_ref().map(|source| {
            Compiled::new(source, &self.script_limits(), &self.sdl, &self.environment)
                .expect("the same sources compiled when the extensions were built")
        });
        let builder = Builder {
            extensions: self,
            shared,
            compiled,
            sdl_json: Arc::from(serde_json::Value::from(&*self.sdl).to_string()),
        };
        builder.worker()
    }
}

/// The address of a subgraph: what overrides its URL, with what `traffic_shaping` says of it.
///
/// # Errors
/// When the address cannot be called.
pub fn subgraph_endpoint(
    config: &Config,
    name: &str,
    url: &str,
) -> Result<Endpoint, EndpointError> {
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
        None => Endpoint::parse(url, policy),
    }
}

struct Builder<'a> {
    extensions: &'a Extensions,
    shared: Rc<Shared>,
    compiled: Option<Compiled>,
    sdl_json: Arc<str>,
}

impl Builder<'_> {
    fn worker(self) -> Worker {
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
        // A plan is written only when a script or a coprocessor can look at it.
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
        Worker {
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
            wants_query_plan,
            sees_headers: self.compiled.is_some()
                || StageKind::ALL
                    .into_iter()
                    .any(|kind| self.stage(kind).is_some()),
        }
    }

    fn subgraph(&self, index: usize, name: &str, endpoint: &Endpoint) -> Subgraph {
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
            flights: shaping.deduplicate_query.then(Flights::default),
            compression: shaping.compression,
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
        let layers = self
            .compiled
            .as_ref()
            .and_then(|compiled| compiled.layers(entry, subgraph));
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
        // Without anything configured there is no service at all, and a request passes without a
        // copy.
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
pub struct Worker {
    /// Around everything; `None` when nothing is configured for it.
    pub router: Option<Service>,
    /// Around a GraphQL request.
    pub supergraph: Option<Service>,
    /// Around the execution of its plan.
    pub execution: Option<Service>,
    subgraphs: Vec<Subgraph>,
    wants_query_plan: bool,
    sees_headers: bool,
}

impl Worker {
    /// Whether there is a script or a coprocessor, which read headers as text.
    pub fn sees_headers(&self) -> bool {
        self.sees_headers
    }

    /// Whether [`Exchange::query_plan`] is looked at.
    pub fn wants_query_plan(&self) -> bool {
        self.wants_query_plan
    }

    /// Fetches from the subgraph with this index.
    ///
    /// # Panics
    /// When there is no subgraph with this index.
    pub async fn fetch(
        &self,
        subgraph: usize,
        exchange: &Exchange,
        call: SubgraphCall,
    ) -> SubgraphOutcome {
        self.subgraphs[subgraph].call(exchange, call).await
    }

    /// Takes a request that subscribes at the subgraph with this index through the same rules and
    /// request stages; its path stands in place of the subgraph's. It is not sent.
    ///
    /// # Errors
    /// What is the answer in its place.
    ///
    /// # Panics
    /// When there is no subgraph with this index.
    pub async fn event_request(
        &self,
        subgraph: usize,
        exchange: &Exchange,
        asked: (Option<&str>, Bytes),
    ) -> Result<EventRequest, SubgraphOutcome> {
        self.subgraphs[subgraph]
            .event_request(exchange, asked)
            .await
    }

    /// Sends any request to the subgraph with this index, through the same rules and stages.
    /// What comes back is not looked at.
    ///
    /// # Errors
    /// When nothing comes back.
    ///
    /// # Panics
    /// When there is no subgraph with this index.
    pub async fn relay(
        &self,
        subgraph: usize,
        exchange: &Exchange,
        call: RelayCall,
    ) -> Result<Response, RelayError> {
        self.subgraphs[subgraph].relay(exchange, call).await
    }
}
