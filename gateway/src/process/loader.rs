//! Builds a generation from files and from the schemas of services.

use std::sync::Arc;
use std::time::Duration;

use gateway_config::{Config, ReadConfig, RemoteSchema};
use gateway_extensions::KeyStore;
use gateway_remote::SourceSchema;
use gateway_telemetry::ExportCounts;
use gateway_upstream::{Client, ClientSettings};

use crate::graphql::engine::Engine;
use crate::merged::remotes::Remotes;
use crate::process::environment::Environment;
use crate::process::exports::Exports;
use crate::process::generation::{self, Generation, GenerationError, Sources};
use crate::process::token_keys;

/// Maximum time that a start or a reload waits for a service, for keys of tokens, and for a required Redis
/// server. After it, services and keys are requested in the background.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Loads generations, and keeps the schemas of services between them.
pub(crate) struct Loader {
    pub(crate) sources: Sources,
    pub(crate) environment: Environment,
    /// The client for fetching schemas. Workers have clients of their own.
    pub(crate) client: Client,
    remotes: Remotes,
    /// The keys of tokens, for this generation and the next.
    keys: Arc<KeyStore>,
    /// The exports of the current configuration.
    exports: Option<Arc<Exports>>,
    /// Counts of exported data.
    pub(crate) exported: Arc<ExportCounts>,
}

impl Loader {
    pub(crate) fn new(sources: Sources, environment: Environment) -> Self {
        Self {
            sources,
            environment,
            client: Client::new(ClientSettings::default()),
            remotes: Remotes::default(),
            keys: Arc::default(),
            exports: None,
            exported: Arc::default(),
        }
    }

    /// Reads and checks all files, and fetches the schemas. Keys without effect are logged.
    pub(crate) async fn load(&mut self) -> Result<Arc<Generation>, GenerationError> {
        self.environment.begin();
        let ReadConfig { config, warnings } = generation::read_config(
            self.sources.config.as_deref(),
            &self.environment,
            self.sources.is_development,
        )?;
        for warning in warnings {
            log::warn!("{warning}");
        }
        let config = Arc::new(config);
        self.remotes.ask_all(&self.client, &config, WAIT_MAX).await;
        let generation = self.build(&config)?;
        let keys = generation.extensions.token_keys();
        token_keys::prefetch(&self.client, &keys, WAIT_MAX).await;
        if let Some(answers) = generation.extensions.answers()
            && !answers.required(WAIT_MAX).await
        {
            return Err(GenerationError::NoRedis);
        }
        Ok(generation)
    }

    /// Builds a generation from a configuration and the schemas that are available now.
    pub(crate) fn build(
        &mut self,
        config: &Arc<Config>,
    ) -> Result<Arc<Generation>, GenerationError> {
        let former = self.exports.as_ref();
        let exports = Exports::of(config, former, &self.exported, &self.environment)?;
        let generation = Generation::build(
            config,
            &self.sources,
            &self.environment,
            &self.remotes,
            &self.keys,
            Arc::clone(&exports),
        )?;
        self.exports = Some(exports);
        if let Some(answers) = generation.extensions.answers() {
            answers.connect();
        }
        Ok(Arc::new(generation))
    }

    /// True if a service did not respond.
    pub(crate) fn is_missing(&self, name: &str) -> bool {
        self.remotes.missing.iter().any(|(it, _)| it == name)
    }

    /// Stores the schema of a service that was missing.
    pub(crate) fn schema_loaded(&mut self, remote: &RemoteSchema, schema: SourceSchema) {
        self.remotes.schema_loaded(remote, schema);
    }

    /// The parts that are missing in the schema, with the reasons.
    pub(crate) fn missing(&self, generation: &Generation) -> Vec<(String, String)> {
        let mut missing = self.remotes.missing.clone();
        if let Engine::Merged(merged) = &generation.engine {
            let left_out = merged.inconsistencies().iter();
            missing.extend(left_out.map(|(name, reason)| (name.clone(), reason.to_string())));
        }
        missing
    }
}
