//! Options for checking, planning and caching operations, from the configuration.

use std::time::Duration;

use operation_cache::Bounds as CacheBounds;

use crate::bounds::ExecutionLimits;
use crate::limits::OperationLimits;

/// Options for checking, planning and caching operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationOptions {
    /// True if `__schema` and `__type` are answered (`supergraph.introspection`).
    pub introspection: bool,
    /// True if introspection that nests lists of fields is refused
    /// (`limits.introspection_max_depth`).
    pub introspection_max_depth: bool,
    /// True if subscriptions are served (`subscription.enabled`).
    pub subscriptions: bool,
    /// Limits on the size of operations.
    pub limits: OperationLimits,
    /// The treatment of denied fields.
    pub authorization: AuthorizationOptions,
    /// Limits on responses and subgraph requests.
    pub bounds: ExecutionLimits,
    /// Maximum number of cached operations, at least one.
    pub cached_plans: usize,
    /// Maximum bytes of the cached operations and refusals.
    pub cached_bytes: usize,
    /// Time limit for planning one operation.
    pub planning_time: Duration,
    /// Length of lists without a size in the supergraph (`demand_control`). `None` if costs are not
    /// estimated.
    pub demand_list_size: Option<u32>,
    /// True if values that the schema does not allow are errors
    /// (`supergraph.enable_result_coercion_errors`). Otherwise they are in `extensions.valueCompletion`.
    pub value_errors: bool,
    /// True if deferred fragments may arrive in separate parts (`supergraph.defer_support`).
    pub defer: bool,
}

impl Default for OperationOptions {
    fn default() -> Self {
        OperationOptions {
            introspection: false,
            introspection_max_depth: true,
            subscriptions: false,
            limits: OperationLimits::default(),
            authorization: AuthorizationOptions::default(),
            bounds: ExecutionLimits::default(),
            cached_plans: 512,
            cached_bytes: 64 << 20,
            planning_time: Duration::from_secs(5),
            demand_list_size: None,
            value_errors: true,
            defer: true,
        }
    }
}

impl OperationOptions {
    /// The limits of the operation cache.
    #[must_use]
    pub fn cache_bounds(&self) -> CacheBounds {
        CacheBounds {
            entries: self.cached_plans,
            bytes: self.cached_bytes,
        }
    }
}

/// Options for fields that a request may not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorizationOptions {
    /// True if the gateway applies the directives (`authorization.directives.enabled`).
    pub enabled: bool,
    /// True if the whole request is refused (`reject_unauthorized`).
    pub reject: bool,
    /// True if a denied field is reported and still answered (`dry_run`).
    pub dry_run: bool,
    /// The member of the response that reports denied fields (`errors.response`).
    pub report_in: ReportIn,
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        AuthorizationOptions {
            enabled: true,
            reject: false,
            dry_run: false,
            report_in: ReportIn::Errors,
        }
    }
}

/// The member of a response that reports denied fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportIn {
    /// Reports denied fields in `errors`.
    Errors,
    /// Reports denied fields in `extensions.authorizationErrors`.
    Extensions,
    /// Does not report denied fields in the response.
    Nothing,
}
