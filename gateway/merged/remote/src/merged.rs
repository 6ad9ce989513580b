//! The schema and the prepared operations, derived from a configuration and the services' schemas.

use std::sync::Arc;

use gateway_config::Config;
use gateway_federation::{
    Checked, Effort, ExecutionLimits, Extent, GraphqlError, OperationKind, OperationOptions,
    Refusal, Schema, Stop, Variables, check_operation,
};

use operation_cache::{CacheStats, Keep, Key, OperationCache};

use crate::action::Action;
use crate::call::{Forwarding, HeaderSettings};
use crate::failure;
use crate::introspection::SourceSchema;
use crate::merge::{Inconsistency, MergedSchema, UnmergedFields};
use crate::route::{self, Route};

/// A prepared remote schema.
#[derive(Debug)]
pub(crate) struct Remote {
    /// Name of the service in messages for clients.
    pub(crate) name: String,
    pub(crate) headers: HeaderSettings,
}

/// Settings that apply to every operation.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) remotes: Vec<Remote>,
    pub(crate) actions: Vec<Action>,
    /// True if errors include internal reasons, which clients should normally not see.
    pub(crate) shows_internal: bool,
    /// Limits for the received and written bytes of one operation.
    pub(crate) bounds: ExecutionLimits,
    /// Maximum bytes of all action payloads of one operation.
    pub(crate) payload_bytes: usize,
}

/// The merged schema with the cache of prepared operations.
#[derive(Debug)]
pub struct Merged {
    schema: Arc<MergedSchema>,
    settings: Arc<Settings>,
    options: OperationOptions,
    operations: OperationCache<Outcome>,
}

/// A prepared operation, or its refusal.
pub type Outcome = Result<Arc<Prepared>, Arc<Refusal>>;

/// An operation, parsed, validated and routed. All requests with this operation share it.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) merged: Arc<MergedSchema>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) checked: Checked,
    pub(crate) route: Route,
    /// The text of the query.
    pub(crate) query: Box<str>,
}

impl Merged {
    /// Merges the available schemas. `schemas` has one entry for each remote schema of the configuration. It
    /// is `None` until the service has answered the introspection query.
    #[must_use]
    pub fn new(
        config: &Config,
        schemas: &[Option<Arc<SourceSchema>>],
        options: OperationOptions,
        shows_internal: bool,
    ) -> Self {
        let remotes = config.remote_schemas.iter().map(|it| Remote {
            name: it.name.clone(),
            headers: HeaderSettings::new(
                &it.headers,
                Forwarding::usual_if(it.forward_client_headers),
            ),
        });
        Self {
            schema: Arc::new(MergedSchema::new(config, schemas)),
            settings: Arc::new(Settings {
                remotes: remotes.collect(),
                actions: config.actions.iter().map(Action::new).collect(),
                shows_internal,
                bounds: options.bounds,
                payload_bytes: config.limits.action_payloads_max_bytes.0.0,
            }),
            operations: OperationCache::new(options.cache_bounds()),
            options,
        }
    }

    /// Services and actions that are not part of the schema, with the reasons.
    #[must_use]
    pub fn inconsistencies(&self) -> &[(String, Inconsistency)] {
        &self.schema.inconsistencies
    }

    /// The fields of services that are not part of the schema, with the reasons.
    #[must_use]
    pub fn left_out(&self) -> &[UnmergedFields] {
        &self.schema.left_out
    }

    /// The schema for clients.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema.schema
    }

    /// The prepared operation or its refusal, if it is cached. Never parses.
    #[must_use]
    pub fn cached(&self, query: &str, operation_name: Option<&str>) -> Option<Outcome> {
        self.operations.get(Key::new(query, operation_name))
    }

    /// The operation. If it is not prepared yet, a separate thread prepares it while the caller waits.
    ///
    /// # Errors
    /// The refusal for the client, if the text is not an executable operation.
    pub fn prepare(&self, query: &str, operation_name: Option<&str>) -> Outcome {
        let effort = Effort::full(self.options.planning_time, Stop::default());
        self.make(query, operation_name, &effort)
    }

    /// Like [`Merged::prepare`], with a limited effort.
    ///
    /// # Errors
    /// Like [`Merged::prepare`]. If a quick effort is not enough, [`Refusal::wants_more`] is true.
    pub fn make(&self, query: &str, operation_name: Option<&str>, effort: &Effort) -> Outcome {
        if let Some(outcome) = self.cached(query, operation_name) {
            return outcome;
        }
        let outcome = self.check(query, operation_name, effort);
        let keep = match &outcome {
            Ok(prepared) => Keep::Yes {
                bytes: prepared.weight(),
            },
            Err(refusal) => refusal.keep(),
        };
        if keep == Keep::No {
            return outcome;
        }
        let key = Key::new(query, operation_name);
        self.operations.get_or_make(key, || (outcome, keep))
    }

    fn check(&self, query: &str, operation_name: Option<&str>, effort: &Effort) -> Outcome {
        let outcome = check_operation(
            &self.schema.schema,
            query,
            operation_name,
            &self.options,
            effort,
            |checked, document, operation| {
                let route = route::route(&self.schema, &checked, document, operation);
                Ok(Prepared {
                    merged: Arc::clone(&self.schema),
                    settings: Arc::clone(&self.settings),
                    checked,
                    route,
                    query: query.into(),
                })
            },
        );
        outcome
            .map(Arc::new)
            .map_err(|refusal| Arc::new(failure::refused(refusal, query)))
    }

    /// Counters of the operation cache.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.operations.stats()
    }
}

impl Prepared {
    /// Approximate size in bytes. The route repeats the operation for each service and handler, field by
    /// field.
    fn weight(&self) -> usize {
        size_of::<Self>() + self.checked.weight() + 9 * self.query.len()
    }

    /// The kind of the operation, query or mutation.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.checked.kind()
    }

    /// The name of the chosen operation, if it has one.
    #[must_use]
    pub fn operation_name(&self) -> Option<&str> {
        self.checked.operation_name()
    }

    /// The SHA-1 digest of the operation's signature. See [`gateway_federation::Checked::operation_id`].
    #[must_use]
    pub fn operation_id(&self) -> &str {
        self.checked.operation_id()
    }

    /// The measured size of the operation.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.checked.extent()
    }

    /// The limits that the operation exceeds without being refused.
    #[must_use]
    pub fn exceeded(&self) -> &[GraphqlError] {
        self.checked.exceeded()
    }

    /// True if the response of the single service is passed on unchanged.
    #[must_use]
    pub fn passes_through(&self) -> bool {
        self.route.passes_through
    }

    /// The planned requests as text, for logs and scripts.
    #[must_use]
    pub fn plan_text(&self) -> String {
        format!("{:#?}", self.route)
    }

    /// Checks the variables of a request.
    ///
    /// # Errors
    /// `validation-failed` for each variable that does not fit its type.
    pub fn coerce(&self, raw: Option<&[u8]>) -> Result<Variables, Vec<GraphqlError>> {
        self.checked.coerce(raw).map_err(failure::wrong_variables)
    }
}
