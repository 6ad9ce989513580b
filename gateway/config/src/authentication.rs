//! `authentication`: tokens of clients, and the names that clients send.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{KeySource, Written};

/// The check of clients' credentials.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Authentication {
    /// The check of requests from clients.
    pub router: RouterAuthentication,
}

/// The check of requests from clients.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouterAuthentication {
    /// JSON Web Tokens. Without this key, the gateway ignores tokens.
    pub jwt: Option<Jwt>,
}

/// The place and the check of tokens. The claims of a token become the context entry
/// `apollo::authentication::jwt_claims`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    /// The sets of keys that may sign tokens.
    #[schemars(length(min = 1))]
    pub jwks: Vec<Jwks>,
    /// The request header that contains the token.
    #[serde(default = "authorization")]
    pub header_name: Written<HeaderName>,
    /// The word before the token. An empty text means that the header contains only the token.
    #[serde(default = "bearer")]
    pub header_value_prefix: String,
    /// True if a header with another word before the token counts as no token. Otherwise it counts as an
    /// invalid token.
    #[serde(default)]
    pub ignore_other_prefixes: bool,
    /// True if a request without a token is refused with 401. Apollo Router accepts it.
    #[serde(default)]
    pub require_token: bool,
    /// The treatment of a request with an invalid token.
    #[serde(default)]
    pub on_error: OnTokenError,
    /// True if a token without `exp`, which never expires, is accepted. It equals `allow_missing_exp` of every key
    /// set in Apollo Router.
    #[serde(default)]
    pub allow_tokens_without_expiry: bool,
}

fn authorization() -> Written<HeaderName> {
    Written(http::header::AUTHORIZATION)
}

fn bearer() -> String {
    "Bearer".to_owned()
}

/// The treatment of a request with an invalid token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum OnTokenError {
    /// The request is refused with 401, and the response contains the reason.
    #[default]
    Error,
    /// The request is refused with 401, and only the log contains the reason.
    RedactedError,
    /// The request is accepted without claims.
    Continue,
}

/// A set of keys (RFC 7517).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jwks {
    /// The place of the keys, `https://…`, `http://…` or `file://…`.
    pub url: Written<KeySource>,
    /// The only allowed issuer (`iss`) of tokens. It is the old name of `issuers` with one entry.
    pub issuer: Option<String>,
    /// The allowed issuers (`iss`) of tokens. Without this key, or with an empty list, any issuer is allowed.
    /// With issuers, a token without `iss` is refused. Apollo Router accepts it.
    pub issuers: Option<Vec<String>>,
    /// The allowed audiences (`aud`). A token must have at least one of them. Without this key, or with an
    /// empty list, any audience is allowed.
    pub audiences: Option<Vec<String>>,
    /// The allowed algorithms of signatures. Without this key, all algorithms that fit the key are allowed. An
    /// empty list allows no algorithm, so every token is refused.
    pub algorithms: Option<Vec<Algorithm>>,
    /// Time between two reads of the keys.
    #[serde(default = "minute")]
    pub poll_interval: Written<Duration>,
    /// Minimum time between two reads that tokens with an unknown key cause. Not in Apollo Router.
    #[serde(default = "ten_seconds")]
    pub unknown_key_pause: Written<Duration>,
    /// Headers of the request for the keys.
    #[serde(default)]
    pub headers: Vec<JwksHeader>,
}

fn minute() -> Written<Duration> {
    // As in the original.
    Written(Duration::from_secs(60))
}

fn ten_seconds() -> Written<Duration> {
    // Any client can send tokens with unknown key names. The key server must not receive a request for each.
    Written(Duration::from_secs(10))
}

/// A header of the request for a set of keys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JwksHeader {
    /// The name of the header.
    pub name: Written<HeaderName>,
    /// The value of the header.
    pub value: Written<HeaderValue>,
}

/// The algorithm of a token's signature (RFC 7518).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are those of RFC 7518, 3.1")]
pub enum Algorithm {
    HS256,
    HS384,
    HS512,
    ES256,
    ES384,
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    EdDSA,
}

/// Warnings about empty lists. Each reader of the file expects another effect of them.
pub(crate) fn warnings(jwt: &Jwt) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, set) in jwt.jwks.iter().enumerate() {
        let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_some_and(Vec::is_empty);
        let allows_no_algorithm = set.algorithms.as_ref().is_some_and(Vec::is_empty);
        let found = [
            (
                is_empty(&set.issuers) && set.issuer.is_none(),
                "issuers",
                "every issuer is allowed: name the allowed issuers, or remove the key",
            ),
            (
                is_empty(&set.audiences),
                "audiences",
                "every audience is allowed: name the allowed audiences, or remove the key",
            ),
            (
                allows_no_algorithm,
                "algorithms",
                "every token is refused: name the allowed algorithms, or remove the key",
            ),
        ];
        for (is_found, key, effect) in found {
            if is_found {
                warnings.push(format!(
                    "`authentication.router.jwt.jwks[{index}].{key}` is an empty list, so {effect}"
                ));
            }
        }
    }
    warnings
}
