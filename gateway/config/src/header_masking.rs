//! `masking`: sensitive headers. Their values never appear in the log, in traces and in metrics.

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::Written;

/// Headers that usually contain credentials. Apollo Router masks the same headers.
pub(crate) static SENSITIVE: [HeaderName; 13] = [
    http::header::AUTHORIZATION,
    http::header::PROXY_AUTHORIZATION,
    http::header::PROXY_AUTHENTICATE,
    http::header::WWW_AUTHENTICATE,
    http::header::COOKIE,
    http::header::SET_COOKIE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-session-id"),
    HeaderName::from_static("x-session-token"),
    HeaderName::from_static("x-csrf-token"),
    HeaderName::from_static("x-xsrf-token"),
];

/// Sensitive headers. Their values never appear in the log, in traces and in metrics.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HeaderMasking {
    /// True if the values of sensitive headers are masked.
    pub enabled: bool,
    /// The names of further sensitive headers.
    pub sensitive_headers: Vec<Written<HeaderName>>,
    /// True if only `sensitive_headers` are masked, and not the headers that usually contain credentials.
    pub replace_defaults: bool,
}

impl Default for HeaderMasking {
    fn default() -> Self {
        Self {
            enabled: true,
            sensitive_headers: Vec::new(),
            replace_defaults: false,
        }
    }
}

impl HeaderMasking {
    fn own(&self) -> impl Iterator<Item = HeaderName> {
        self.sensitive_headers.iter().map(|name| name.0.clone())
    }

    /// The masked headers of all subgraphs and of clients.
    pub(crate) fn of_all(&self) -> Vec<HeaderName> {
        if !self.enabled {
            return Vec::new();
        }
        let usual = SENSITIVE.iter().filter(|_| !self.replace_defaults).cloned();
        usual.chain(self.own()).collect()
    }

    /// The masked headers of one subgraph, with the setting of all subgraphs.
    pub(crate) fn of_subgraph(&self, all: &Self) -> Vec<HeaderName> {
        if !self.enabled || self.replace_defaults {
            return self.of_all();
        }
        // A subgraph with masking has at least the usual list, even if masking is off for all subgraphs.
        let inherited = if all.enabled {
            all.of_all()
        } else {
            SENSITIVE.to_vec()
        };
        inherited.into_iter().chain(self.own()).collect()
    }

    /// True if masking is on and masks no header.
    pub(crate) fn masks_nothing(&self) -> bool {
        self.enabled && self.of_all().is_empty()
    }
}
