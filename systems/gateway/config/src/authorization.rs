//! `authorization`: the treatment of requests, or parts of them, that lack a claim.

use schemars::JsonSchema;
use serde::Deserialize;

/// What requests may see.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Authorization {
    /// Whether a request without claims (`apollo::authentication::jwt_claims` in the context, from
    /// a token or a stage) is refused with 401.
    pub require_authentication: bool,
    /// The directives `@authenticated`, `@requiresScopes` and `@policy` of a supergraph.
    pub directives: AuthorizationDirectives,
}

/// The directives `@authenticated`, `@requiresScopes` and `@policy` of a supergraph.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizationDirectives {
    /// Whether they count. Without them everybody sees everything.
    pub enabled: bool,
    /// Whether a request that asks for something it may not see is refused as a whole.
    pub reject_unauthorized: bool,
    /// Whether what a request may not see is only told, and answered all the same.
    pub dry_run: bool,
    /// Where it is told what was left out.
    pub errors: AuthorizationErrors,
}

impl Default for AuthorizationDirectives {
    fn default() -> Self {
        Self {
            enabled: true,
            reject_unauthorized: false,
            dry_run: false,
            errors: AuthorizationErrors::default(),
        }
    }
}

/// Where it is told what was left out of a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizationErrors {
    /// Whether the log has a line for each such request.
    pub log: bool,
    /// Where the client finds it.
    pub response: AuthorizationResponse,
}

impl Default for AuthorizationErrors {
    fn default() -> Self {
        Self {
            log: true,
            response: AuthorizationResponse::Errors,
        }
    }
}

/// Where a client finds what was left out of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthorizationResponse {
    /// In `errors`.
    Errors,
    /// In `extensions.authorizationErrors`.
    Extensions,
    /// Nowhere.
    Disabled,
}
