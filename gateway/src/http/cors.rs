//! CORS: responds to a browser's preflight, and marks responses that a page of another origin may read.

use std::time::Duration;

use gateway_config::{Cors, CorsPolicy, PrivateNetworkAccess, Written};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use regex::Regex;

use crate::http::reply::{self, Reply};

const PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");
const NETWORK_ID: HeaderName = HeaderName::from_static("private-network-access-id");
const NETWORK_NAME: HeaderName = HeaderName::from_static("private-network-access-name");

/// The rules, with every header rendered when the configuration is read.
#[derive(Debug)]
pub(crate) struct Rules {
    any_origin: Option<Policy>,
    policies: Vec<Entry>,
}

/// Origins, patterns of origins, and their policy.
type Entry = (Vec<String>, Vec<Regex>, Policy);

/// The permissions for pages of some origins.
#[derive(Clone, Debug)]
struct Policy {
    credentials: bool,
    /// `None` allows the headers that the page requests.
    allow_headers: Option<HeaderValue>,
    expose_headers: Option<HeaderValue>,
    methods: Option<HeaderValue>,
    max_age: Option<HeaderValue>,
    private_network: Option<PrivateNetworkAccess>,
}

impl Rules {
    /// Renders the rules of a configuration.
    pub(crate) fn new(cors: &Cors) -> Self {
        let policies = cors.effective_policies().into_iter().map(|policy| {
            let rendered = Policy::new(cors, &policy);
            let origins = policy.origins.into_iter().map(|it| it.0.0).collect();
            let patterns = policy.match_origins.into_iter().map(|it| it.0).collect();
            (origins, patterns, rendered)
        });
        Self {
            any_origin: cors
                .allow_any_origin
                .then(|| Policy::new(cors, &CorsPolicy::default())),
            policies: policies.collect(),
        }
    }

    /// The policy for an origin, and the value of `access-control-allow-origin`.
    fn policy(&self, origin: &HeaderValue) -> Option<(&Policy, HeaderValue)> {
        let text = origin.to_str().ok()?;
        let fits =
            |matches: &dyn Fn(&Entry) -> bool| self.policies.iter().find(|policy| matches(policy));
        // Sandboxed frames and local files of any page send `null`, so no pattern may allow it.
        let found = if text == "null" {
            None
        } else {
            // An exact origin of any policy wins over a pattern of an earlier policy.
            fits(&|(origins, _, _)| origins.iter().any(|it| it == text))
                .or_else(|| fits(&|(_, patterns, _)| patterns.iter().any(|it| it.is_match(text))))
        };
        match (found, &self.any_origin) {
            (Some((_, _, policy)), None) => Some((policy, origin.clone())),
            // If any origin is allowed, all clients receive the star, so that caches store one response.
            (Some((_, _, policy)), Some(_)) => Some((policy, HeaderValue::from_static("*"))),
            (None, Some(policy)) => Some((policy, HeaderValue::from_static("*"))),
            (None, None) => None,
        }
    }

    /// The response to any OPTIONS request: 200 without a body.
    pub(crate) fn preflight(&self, request: &HeaderMap) -> Reply {
        let mut reply = reply::empty(http::StatusCode::OK);
        let headers = &mut reply.headers;
        headers.insert(
            header::VARY,
            HeaderValue::from_static(
                "origin, access-control-request-method, access-control-request-headers",
            ),
        );
        let Some((policy, origin)) = request.get(header::ORIGIN).and_then(|it| self.policy(it))
        else {
            return reply;
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let mut set = |name: HeaderName, value: Option<HeaderValue>| {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        };
        let yes = HeaderValue::from_static("true");
        set(
            header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
            policy.credentials.then(|| yes.clone()),
        );
        let asked = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        set(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            policy.allow_headers.clone().or_else(|| asked.cloned()),
        );
        set(header::ACCESS_CONTROL_ALLOW_METHODS, policy.methods.clone());
        set(header::ACCESS_CONTROL_MAX_AGE, policy.max_age.clone());
        if let (Some(access), true) = (
            &policy.private_network,
            request.contains_key(PRIVATE_NETWORK),
        ) {
            set(ALLOW_PRIVATE_NETWORK, Some(yes));
            set(NETWORK_ID, access.access_id.as_ref().map(|it| it.0.clone()));
            set(
                NETWORK_NAME,
                access.access_name.as_ref().map(|it| it.0.clone()),
            );
        }
        reply
    }

    /// Adds the CORS headers to the response.
    pub(crate) fn mark(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        // Also for requests without an origin, because a cache must not pass their response to a page.
        vary_by_origin(headers);
        let Some((policy, origin)) = origin.and_then(|it| self.policy(it)) else {
            return;
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if policy.credentials {
            headers.insert(
                header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
                HeaderValue::from_static("true"),
            );
        }
        if let Some(names) = &policy.expose_headers {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, names.clone());
        }
    }
}

impl Policy {
    fn new(cors: &Cors, own: &CorsPolicy) -> Self {
        let first = |own: &[Written<HeaderValue>], shared: &[Written<HeaderValue>]| {
            let names = if own.is_empty() { shared } else { own };
            let text = |name: &'_ Written<HeaderValue>| name.to_str().map(str::to_owned);
            let names = names.iter().map(text).collect::<Result<Vec<String>, _>>();
            list(&names.expect("values of the configuration are visible text"))
        };
        let methods = own.methods.as_ref().unwrap_or(&cors.methods);
        let seconds = |age: Duration| HeaderValue::from(age.as_secs());
        let shared_expose = cors.expose_headers.clone().unwrap_or_default();
        Self {
            credentials: own.allow_credentials.unwrap_or(cors.allow_credentials),
            allow_headers: first(&own.allow_headers, &cors.allow_headers),
            expose_headers: first(&own.expose_headers, &shared_expose),
            methods: list(
                &methods
                    .iter()
                    .map(|it| it.0.0.to_string())
                    .collect::<Vec<_>>(),
            ),
            max_age: own.max_age.or(cors.max_age).map(|age| seconds(age.0)),
            private_network: own.private_network_access.clone(),
        }
    }
}

/// Adds `origin` to the `vary` header.
fn vary_by_origin(headers: &mut HeaderMap) {
    const ORIGIN: HeaderValue = HeaderValue::from_static("origin");
    let said = headers.get_all(header::VARY).iter();
    let said: Vec<&[u8]> = said.map(HeaderValue::as_bytes).collect();
    let mut names = said.iter().flat_map(|it| it.split(|byte| *byte == b','));
    let covers = |name: &[u8]| {
        let name = name.trim_ascii();
        name == b"*" || name.eq_ignore_ascii_case(b"origin")
    };
    if names.any(covers) {
        return;
    }
    let all = [&said[..], &[ORIGIN.as_bytes()]].concat().join(&b", "[..]);
    // The parts were valid values, so the joined value is valid.
    let all = HeaderValue::from_bytes(&all).unwrap_or(ORIGIN);
    headers.insert(header::VARY, all);
}

/// The words joined by commas, or `None` if there are no words.
fn list(words: &[String]) -> Option<HeaderValue> {
    if words.is_empty() {
        return None;
    }
    let list = HeaderValue::from_str(&words.join(", "));
    // An invalid list must not become `None`, because `None` allows all requested headers.
    Some(list.expect("each word is a header value or a method"))
}

#[cfg(test)]
mod tests;
