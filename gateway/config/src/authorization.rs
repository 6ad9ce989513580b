//! `authorization`: the treatment of requests, or parts of them, that lack a claim.

use schemars::JsonSchema;
use serde::Deserialize;

/// The rules for access to fields.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Authorization {
    /// True if a request without claims is refused with 401. A token or a stage writes the claims into the
    /// context entry `apollo::authentication::jwt_claims`.
    pub require_authentication: bool,
    /// The directives `@authenticated`, `@requiresScopes` and `@policy` of a supergraph.
    pub directives: AuthorizationDirectives,
}

/// The directives `@authenticated`, `@requiresScopes` and `@policy` of a supergraph.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizationDirectives {
    /// True if the gateway applies the directives. Otherwise every client can read every field.
    pub enabled: bool,
    /// True if the gateway refuses a whole request that contains a forbidden field.
    pub reject_unauthorized: bool,
    /// True if forbidden fields are only reported. The response still contains them.
    pub dry_run: bool,
    /// The reports about forbidden fields.
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

/// The reports about the forbidden fields of a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizationErrors {
    /// True if the log has a line for each such request.
    pub log: bool,
    /// The place of the report in the response.
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

/// The place in the response where the client finds its forbidden fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthorizationResponse {
    /// The `errors` of the response.
    Errors,
    /// The `extensions.authorizationErrors` of the response.
    Extensions,
    /// No place. The response contains no report.
    Disabled,
}
