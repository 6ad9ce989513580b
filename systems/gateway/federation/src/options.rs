//! Options of a configuration for checking, planning and keeping operations.

use std::time::Duration;

use operation_cache::Bounds as CacheBounds;

use crate::bounds::Bounds;
use crate::limits::Limits;

/// How operations are checked and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationOptions {
    /// Whether `__schema` and `__type` are answered (`supergraph.introspection`).
    pub introspection: bool,
    /// Whether introspection that nests lists of fields is refused
    /// (`limits.introspection_max_depth`).
    pub introspection_max_depth: bool,
    /// Whether subscriptions are served (`subscription.enabled`).
    pub subscriptions: bool,
    /// Bounds on what is asked for.
    pub limits: Limits,
    /// How what a request may not see is treated.
    pub authorization: AuthorizationOptions,
    /// Bounds on what is answered.
    pub bounds: Bounds,
    /// How many operations are kept ready; at least one.
    pub cached_plans: usize,
    /// How many bytes they may take, refusals included.
    pub cached_bytes: usize,
    /// Longest that one operation is planned.
    pub planning_time: Duration,
    /// The size of lists about which the supergraph says nothing, where costs are estimated
    /// (`demand_control`).
    pub demand_list_size: Option<u32>,
    /// Whether deferred fragments may come in parts of their own (`supergraph.defer_support`).
    pub defer: bool,
}

impl Default for OperationOptions {
    fn default() -> Self {
        OperationOptions {
            introspection: false,
            introspection_max_depth: true,
            subscriptions: false,
            limits: Limits::default(),
            authorization: AuthorizationOptions::default(),
            bounds: Bounds::default(),
            cached_plans: 512,
            cached_bytes: 64 << 20,
            planning_time: Duration::from_secs(5),
            demand_list_size: None,
            defer: true,
        }
    }
}

impl OperationOptions {
    /// What the cache of operations may hold.
    #[must_use]
    pub fn cache_bounds(&self) -> CacheBounds {
        CacheBounds {
            entries: self.cached_plans,
            bytes: self.cached_bytes,
        }
    }
}

/// How what a request may not see is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorizationOptions {
    /// Whether the directives count (`authorization.directives.enabled`).
    pub enabled: bool,
    /// Whether the whole request is refused (`reject_unauthorized`).
    pub reject: bool,
    /// Whether it is only told, and the request answered as if it were allowed (`dry_run`).
    pub dry_run: bool,
    /// Where it is told (`errors.response`).
    pub told: ToldIn,
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        AuthorizationOptions {
            enabled: true,
            reject: false,
            dry_run: false,
            told: ToldIn::Errors,
        }
    }
}

/// Where a client learns what was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldIn {
    /// In `errors`.
    Errors,
    /// In `extensions.authorizationErrors`.
    Extensions,
    /// Nowhere.
    Nothing,
}
