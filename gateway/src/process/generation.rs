//! All data that is built from one configuration and one supergraph, and never changes.
//!
//! A reload builds a complete new generation before any worker receives it. A request finishes on the
//! generation on which it started.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chassis::TlsError;
use gateway_config::{
    AuthorizationResponse, Config, ErrorPolicy, ExtensionKeys, Mistakes, ReadConfig, Surroundings,
};
use gateway_extensions::{BuildError, Extensions, KeyStore};
use gateway_federation::{
    AuthorizationOptions, ErrorPolicies, ExecutionLimits, ExtensionFilter, OperationLimits,
    OperationOptions, Operations, ReportIn, Supergraph, SupergraphError,
};
use gateway_remote::{Merged, RestEndpoints, UnmergedFields};
use gateway_telemetry::CollectorError;
use sha2::{Digest as _, Sha256};

use crate::graphql::apq;
use crate::graphql::cost_limit::CostLimit;
use crate::graphql::engine::Engine;
use crate::graphql::operation_list::{self, ManifestError, OperationList};
use crate::http::admission::{Admission, Rate};
use crate::http::connections;
use crate::http::cors;
use crate::http::path::PathRule;
use crate::http::tls::Tls;
use crate::merged::remotes::Remotes;
use crate::process::environment::{self, Environment};
use crate::process::exports::Exports;
use crate::stream::subscription::shares::SubscriptionLimits;
use crate::stream::subscription::sharing::SharedSources;

/// The source files of a generation.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The configuration file. Without it, all keys have their defaults.
    pub(crate) config: Option<PathBuf>,
    /// The supergraph file. `None` if schemas are merged.
    pub(crate) supergraph: Option<PathBuf>,
    /// True with `--dev`.
    pub(crate) is_development: bool,
}

/// The reason why a generation cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GenerationError {
    #[error("cannot read the configuration `{path}`: {source}")]
    ConfigFile {
        path: String,
        source: std::io::Error,
    },
    #[error("{0}")]
    Config(Mistakes),
    #[error("cannot read the supergraph `{path}`: {source}")]
    SupergraphFile {
        path: String,
        source: std::io::Error,
    },
    #[error("the supergraph `{path}` cannot be used: {source}")]
    Supergraph {
        path: String,
        source: SupergraphError,
    },
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Extensions(Vec<BuildError>),
    #[error(
        "no supergraph: give its file with --supergraph or APOLLO_ROUTER_SUPERGRAPH_PATH, or write `remote_schemas` or `actions` into the configuration"
    )]
    Nothing,
    #[error(
        "a supergraph and `remote_schemas` or `actions` cannot be served together: leave --supergraph away, or these keys"
    )]
    Both,
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(
        "no connection to the Redis of `response_cache`, which is `required_to_start`: start it, or set `required_to_start: false` to serve without what is kept"
    )]
    NoRedis,
    #[error(transparent)]
    Export(#[from] CollectorError),
    #[error("`{key}` names the subgraph `{name}`, which the supergraph does not have")]
    UnknownSubgraph { key: &'static str, name: String },
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<GenerationError>),
}

/// All data that is built from one configuration and one supergraph.
pub(crate) struct Generation {
    pub(crate) config: Arc<Config>,
    pub(crate) engine: Engine,
    /// Cache of automatic persisted queries. `None` if `apq` is off.
    pub(crate) persisted: Option<apq::Queries>,
    /// The list of known operations. `None` without a list.
    pub(crate) list: Option<OperationList>,
    /// Cost limits of operations. `None` if costs are not estimated.
    pub(crate) cost_limit: Option<CostLimit>,
    /// TLS settings for clients. `None` without TLS.
    pub(crate) tls: Option<Tls>,
    /// Files with values for the configuration (`${file.…}`).
    files: Vec<PathBuf>,
    /// Stored operations. `None` if no endpoint is configured.
    pub(crate) rest: Option<RestEndpoints>,
    /// Time limit for each source of merged schemas, by its position.
    pub(crate) timeouts: Vec<Duration>,
    pub(crate) extensions: Extensions,
    pub(crate) cors: cors::Rules,
    pub(crate) admission: Admission,
    pub(crate) path: PathRule,
    /// True if browsers receive a page.
    pub(crate) page_is_offered: bool,
    pub(crate) subgraphs: Vec<SubgraphShaping>,
    /// Limits of the clients' subscriptions.
    pub(crate) subscriptions_most: SubscriptionLimits,
    /// The open subscriptions at subgraphs that clients may join.
    pub(crate) subscribed: Arc<SharedSources>,
    /// Digest of the schema, to detect a generation with another schema.
    pub(crate) schema_digest: [u8; 32],
    /// Exports of traces and metrics to collectors.
    pub(crate) exports: Arc<Exports>,
}

/// Limits for requests to one subgraph. They apply before its extensions run.
#[derive(Debug)]
pub(crate) struct SubgraphShaping {
    pub(crate) name: String,
    pub(crate) rate: Option<Rate>,
}

/// Reads the text of a configuration file.
pub(crate) fn config_text(path: &Path) -> Result<String, GenerationError> {
    std::fs::read_to_string(path).map_err(|source| GenerationError::ConfigFile {
        path: path.display().to_string(),
        source,
    })
}

/// Reads a configuration file, or returns the defaults.
pub(crate) fn read_config(
    path: Option<&Path>,
    surroundings: &dyn Surroundings,
    is_development: bool,
) -> Result<ReadConfig, GenerationError> {
    let (path, text) = match path {
        None => (Path::new("(no configuration)"), String::new()),
        Some(path) => (path, config_text(path)?),
    };
    gateway_config::read(path, &text, surroundings, is_development).map_err(GenerationError::Config)
}

/// The schema and its execution engine.
struct SchemaSource {
    engine: Engine,
    sdl: String,
    /// Names and URLs.
    subgraphs: Vec<(String, String)>,
    timeouts: Vec<Duration>,
}

impl Generation {
    /// Builds a generation from a configuration. `remotes` contains the schemas of remote services, `keys`
    /// the known keys of tokens, and `exports` the current exports to collectors.
    pub(crate) fn build(
        config: &Arc<Config>,
        sources: &Sources,
        environment: &Environment,
        remotes: &Remotes,
        keys: &Arc<KeyStore>,
        exports: Arc<Exports>,
    ) -> Result<Self, GenerationError> {
        let is_merged = !config.remote_schemas.is_empty() || !config.actions.is_empty();
        let source = match (&sources.supergraph, is_merged) {
            (None, true) => merged(config, sources, remotes),
            (Some(path), false) => federated(config, path)?,
            (Some(_), true) => return Err(GenerationError::Both),
            (None, false) => return Err(GenerationError::Nothing),
        };
        let names = || source.subgraphs.iter().map(|(name, _)| name.as_str());
        check_names(config, &names().collect::<Vec<_>>());
        let subgraphs: Vec<(&str, &str)> = source
            .subgraphs
            .iter()
            .map(|(name, url)| (name.as_str(), url.as_str()))
            .collect();
        // After the schema and the final URLs, because scripts may read both when they are loaded.
        let extensions = Extensions::build(
            Arc::clone(config),
            &source.sdl,
            &subgraphs,
            environment::lookup(environment),
            keys,
        )
        .map_err(GenerationError::Extensions)?;
        let shaping = names().map(|name| SubgraphShaping::new(config, name));
        let subgraphs = shaping.collect();
        Ok(Self {
            persisted: apq::Queries::new(&config.apq),
            list: OperationList::read(config)?,
            cost_limit: CostLimit::new(&config.demand_control),
            tls: tls(config)?,
            files: environment.files(),
            engine: source.engine,
            rest: Some(RestEndpoints::new(config)).filter(|it| !it.is_empty()),
            timeouts: source.timeouts,
            extensions,
            cors: cors::Rules::new(&config.cors),
            admission: Admission::new(&config.traffic_shaping.router),
            path: PathRule::new(&config.supergraph.path.0.0),
            page_is_offered: config.homepage.enabled || config.sandbox.enabled,
            subgraphs,
            subscriptions_most: connections::subscriptions(config),
            subscribed: Arc::default(),
            schema_digest: Sha256::digest(&source.sdl).into(),
            exports,
            config: Arc::clone(config),
        })
    }

    /// The manifest files of the operation list.
    pub(crate) fn manifests(&self) -> Vec<PathBuf> {
        operation_list::files(&self.config.persisted_queries)
            .cloned()
            .collect()
    }

    /// Files and folders to watch. A change of one of them requires a new generation.
    pub(crate) fn watched(&self, sources: &Sources) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = sources.config.iter().cloned().collect();
        files.extend(sources.supergraph.clone());
        files.extend(self.extensions.watched().iter().cloned());
        files.extend(self.manifests());
        files.extend(self.files.iter().cloned());
        files
    }
}

/// The problems of all parts that a configuration names: scripts, manifests, certificates, key files and
/// addresses. Without a supergraph, scripts register no callbacks for subgraphs.
pub(crate) fn problems(
    config: &Arc<Config>,
    supergraph: Option<&Path>,
    environment: &Environment,
) -> Vec<GenerationError> {
    let mut problems = Vec::new();
    let source = supergraph.map(|path| federated(config, path));
    let source = source.transpose().map_err(|error| problems.push(error));
    let source = source.ok().flatten();
    let (sdl, subgraphs) = match &source {
        Some(source) => (source.sdl.as_str(), source.subgraphs.clone()),
        None => ("", Vec::new()),
    };
    if source.is_some() {
        let names: Vec<&str> = subgraphs.iter().map(|(name, _)| name.as_str()).collect();
        check_names(config, &names);
    } else {
        // Certificates for subgraphs are files too. The empty name stands for all subgraphs.
        let all = ("tls.subgraph.all".to_owned(), "");
        let named = config.tls.subgraph.subgraphs.keys();
        let named = named.map(|name| (format!("tls.subgraph.subgraphs.{name}"), name.as_str()));
        for (key, name) in std::iter::once(all).chain(named) {
            let endpoint = gateway_extensions::subgraph_endpoint(config, name, ANY_HTTPS);
            let endpoint = endpoint.map_err(|source| BuildError::Endpoint { key, source });
            problems.extend(
                endpoint
                    .err()
                    .map(|error| vec![error])
                    .map(GenerationError::Extensions),
            );
        }
    }
    let subgraphs: Vec<(&str, &str)> = subgraphs
        .iter()
        .map(|(name, url)| (name.as_str(), url.as_str()))
        .collect();
    let lookup = environment::lookup(environment);
    let keys = Arc::default();
    let extensions = Extensions::build(Arc::clone(config), sdl, &subgraphs, lookup, &keys);
    problems.extend(extensions.err().map(GenerationError::Extensions));
    let list = OperationList::read(config);
    problems.extend(list.err().map(GenerationError::from));
    problems.extend(tls(config).err().map(GenerationError::from));
    problems
}

/// An address that is never called.
const ANY_HTTPS: &str = "https://localhost/";

fn tls(config: &Config) -> Result<Option<Tls>, TlsError> {
    let limit = config.server.http.tls_handshake_timeout.0;
    let server = config.tls.supergraph.as_ref();
    server.map(|server| Tls::new(server, limit)).transpose()
}

fn federated(config: &Config, path: &Path) -> Result<SchemaSource, GenerationError> {
    let shown = || path.display().to_string();
    let sdl = std::fs::read_to_string(path).map_err(|source| GenerationError::SupergraphFile {
        path: shown(),
        source,
    })?;
    let supergraph = Supergraph::parse(&sdl).map_err(|source| GenerationError::Supergraph {
        path: shown(),
        source,
    })?;
    let directives = &config.authorization.directives;
    if supergraph.has_rules() && (!directives.enabled || directives.dry_run) {
        log::warn!(
            "the supergraph protects fields, and `authorization.directives` lets everybody see them"
        );
    }
    let policies = ErrorPolicies::new(&supergraph, |name| {
        policy(config.include_subgraph_errors.of_subgraph(name))
    });
    let subgraphs = supergraph.subgraphs().iter();
    let subgraphs = subgraphs.map(|it| (it.name.clone(), it.url.clone()));
    Ok(SchemaSource {
        subgraphs: subgraphs.collect(),
        // Only sources of merged schemas have timeouts of their own. `traffic_shaping` limits subgraphs.
        timeouts: Vec::new(),
        engine: Engine::Federated {
            operations: Arc::new(Operations::new(Arc::new(supergraph), options(config))),
            policies: Arc::new(policies),
        },
        sdl,
    })
}

fn merged(config: &Config, sources: &Sources, remotes: &Remotes) -> SchemaSource {
    let schemas = remotes.schemas(config);
    let merged = Merged::new(config, &schemas, options(config), sources.is_development);
    // Not an error, because a service that is down or inconsistent must not remove the other services from
    // the schema.
    for (name, reason) in merged.inconsistencies() {
        log::error!("`{name}` is not part of the schema: {reason}");
    }
    for UnmergedFields {
        service,
        fields,
        reason,
    } in merged.left_out()
    {
        let fields = fields.join(", ");
        log::warn!("`{service}`: fields that {reason} are left out: {fields}");
    }
    let services = config
        .remote_schemas
        .iter()
        .map(|it| (it.name.clone(), &it.url.0, it.timeout.0));
    let handlers = config
        .actions
        .iter()
        .map(|it| (it.name.0.0.clone(), &it.handler.0, it.timeout.0));
    // Services come before handlers, because the merged plan numbers its sources in this order.
    let all: Vec<_> = services.chain(handlers).collect();
    SchemaSource {
        timeouts: all.iter().map(|(.., timeout)| *timeout).collect(),
        subgraphs: all
            .into_iter()
            .map(|(name, url, _)| (name, url.to_string()))
            .collect(),
        sdl: merged.schema().document().to_string(),
        engine: Engine::Merged(Arc::new(merged)),
    }
}

/// Warns about keys that name a subgraph outside of the supergraph, because they have no effect. Not an
/// error, because one configuration may serve several supergraphs.
fn check_names(config: &Config, known: &[&str]) {
    let named = [
        (
            "override_subgraph_url",
            config.override_subgraph_url.keys().collect::<Vec<_>>(),
        ),
        (
            "headers.subgraphs",
            config.headers.subgraphs.keys().collect(),
        ),
        (
            "traffic_shaping.subgraphs",
            config.traffic_shaping.subgraphs.keys().collect(),
        ),
        (
            "tls.subgraph.subgraphs",
            config.tls.subgraph.subgraphs.keys().collect(),
        ),
        (
            "limits.subgraph.subgraphs",
            config.limits.subgraph.subgraphs.keys().collect(),
        ),
        (
            "subscription.deduplication",
            config
                .subscriptions()
                .map_or_else(Vec::new, |it| it.deduplication.subgraphs.keys().collect()),
        ),
        (
            "subscription.mode",
            config
                .subscriptions()
                .map_or_else(Vec::new, |it| it.named()),
        ),
    ];
    for (key, names) in named {
        for name in names
            .into_iter()
            .filter(|name| !known.contains(&name.as_str()))
        {
            let name = name.clone();
            log::warn!("{}", GenerationError::UnknownSubgraph { key, name });
        }
    }
}

fn options(config: &Config) -> OperationOptions {
    let limits = &config.limits;
    // No count in a document reaches 2^32, so a larger limit has no other effect.
    let most = |limit: Option<usize>| limit.map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    OperationOptions {
        introspection: config.supergraph.introspection,
        introspection_max_depth: limits.introspection_max_depth,
        subscriptions: config.subscriptions().is_some(),
        limits: OperationLimits {
            max_selections: limits.max_selections,
            max_depth: most(limits.max_depth),
            max_height: most(limits.max_height),
            max_root_fields: most(limits.max_root_fields),
            max_aliases: most(limits.max_aliases),
            parser_max_tokens: limits.parser_max_tokens,
            parser_max_recursion: limits.parser_max_recursion,
            warn_only: limits.warn_only,
        },
        authorization: authorization(config),
        bounds: ExecutionLimits {
            response_bytes: limits.response_max_bytes.0.0,
            answers_bytes: limits.subgraph_answers_max_bytes.0.0,
            fetch_entities: limits.entities_max_per_request.get(),
        },
        cached_plans: config.supergraph.plans().get(),
        cached_bytes: config.supergraph.plan_cache_bytes.0.0,
        planning_time: config.supergraph.query_planning.timeout.0,
        value_errors: config.supergraph.enable_result_coercion_errors,
        defer: config.supergraph.defer_support,
        demand_list_size: config
            .demand_control
            .strategy
            .filter(|_| config.demand_control.enabled)
            .map(|strategy| strategy.static_estimated.list_size),
    }
}

fn authorization(config: &Config) -> AuthorizationOptions {
    let directives = &config.authorization.directives;
    AuthorizationOptions {
        enabled: directives.enabled,
        reject: directives.reject_unauthorized,
        dry_run: directives.dry_run,
        report_in: match directives.errors.response {
            AuthorizationResponse::Errors => ReportIn::Errors,
            AuthorizationResponse::Extensions => ReportIn::Extensions,
            AuthorizationResponse::Disabled => ReportIn::Nothing,
        },
    }
}

fn policy(policy: ErrorPolicy) -> gateway_federation::ErrorPolicy {
    match policy {
        ErrorPolicy::Redact => gateway_federation::ErrorPolicy::Redact,
        ErrorPolicy::Include {
            redact_message: false,
            extensions: ExtensionKeys::All,
        } => gateway_federation::ErrorPolicy::Include,
        ErrorPolicy::Include {
            redact_message,
            extensions,
        } => gateway_federation::ErrorPolicy::Filter {
            extensions: match extensions {
                ExtensionKeys::Only(keys) => ExtensionFilter::Allow(keys),
                ExtensionKeys::Except(keys) => ExtensionFilter::Deny(keys),
                // Reached only with a redacted message, because the arm above handles the other case.
                ExtensionKeys::All => ExtensionFilter::Deny(Vec::new()),
            },
            redact_message,
        },
    }
}

impl SubgraphShaping {
    fn new(config: &Config, name: &str) -> Self {
        let shaping = config.traffic_shaping.of_subgraph(name);
        Self {
            name: name.to_owned(),
            rate: shaping.global_rate_limit.map(Rate::new),
        }
    }
}
