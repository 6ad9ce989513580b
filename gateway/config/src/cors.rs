//! `cors`: the pages of other origins that may read responses.

use std::time::Duration;

use http::HeaderValue;
use regex::Regex;
use regex_syntax::hir::Look;
use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{Node, Value, line_and_column};

use crate::written::{Method, WebOrigin, Written};

/// The pages of other origins that may read responses.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// True if pages of every origin may read responses.
    pub allow_any_origin: bool,
    /// True if pages may send cookies and other credentials.
    pub allow_credentials: bool,
    /// The request headers that pages may set. An empty list allows all headers that a preflight requests.
    pub allow_headers: Vec<Written<HeaderValue>>,
    /// The response headers that pages may read.
    pub expose_headers: Option<Vec<Written<HeaderValue>>>,
    /// The methods that pages may use.
    pub methods: Vec<Written<Method>>,
    /// Maximum time that a browser may cache the response to a preflight.
    pub max_age: Option<Written<Duration>>,
    /// Rules by origin. The gateway uses the first rule that matches. An empty list turns CORS off.
    pub policies: Option<Vec<CorsPolicy>>,
    /// The key of version 1 for origins. It becomes one policy.
    pub origins: Option<Vec<Written<WebOrigin>>>,
    /// The key of version 1 for regular expressions of origins. It becomes one policy.
    pub match_origins: Option<Vec<Written<Regex>>>,
}

impl Default for Cors {
    fn default() -> Self {
        let method = |method| Written(Method(method));
        Self {
            allow_any_origin: false,
            allow_credentials: false,
            allow_headers: Vec::new(),
            expose_headers: None,
            methods: vec![
                method(http::Method::GET),
                method(http::Method::POST),
                method(http::Method::OPTIONS),
            ],
            max_age: None,
            policies: None,
            origins: None,
            match_origins: None,
        }
    }
}

impl Cors {
    /// The effective policies. They come from the file, otherwise from the keys of version 1, otherwise from
    /// the default origin of Apollo Router.
    #[must_use]
    pub fn effective_policies(&self) -> Vec<CorsPolicy> {
        if let Some(policies) = &self.policies {
            return policies.clone();
        }
        // The original's default origin applies only without these keys. A file of version 1 with an empty
        // list trusts no page.
        let is_version_1 = self.origins.is_some() || self.match_origins.is_some();
        let origins = if is_version_1 {
            self.origins.clone().unwrap_or_default()
        } else {
            vec![Written(WebOrigin(
                "https://studio.apollographql.com".to_owned(),
            ))]
        };
        vec![CorsPolicy {
            origins,
            match_origins: self.match_origins.clone().unwrap_or_default(),
            ..CorsPolicy::default()
        }]
    }
}

/// The rules for pages of some origins. Missing keys have the values of `cors`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CorsPolicy {
    /// The origins of these pages.
    pub origins: Vec<Written<WebOrigin>>,
    /// Regular expressions for further origins.
    pub match_origins: Vec<Written<Regex>>,
    /// True if pages may send cookies and other credentials.
    pub allow_credentials: Option<bool>,
    /// The request headers that pages may set.
    pub allow_headers: Vec<Written<HeaderValue>>,
    /// The response headers that pages may read.
    pub expose_headers: Vec<Written<HeaderValue>>,
    /// Maximum time that a browser may cache the response to a preflight.
    pub max_age: Option<Written<Duration>>,
    /// The methods that pages may use. An empty list allows no methods.
    pub methods: Option<Vec<Written<Method>>>,
    /// Access of pages from public networks to a gateway in a private network.
    pub private_network_access: Option<PrivateNetworkAccess>,
}

/// Access from public to private networks, with the names that the browser shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrivateNetworkAccess {
    /// The value of the response header `private-network-access-id`.
    pub access_id: Option<Written<HeaderValue>>,
    /// The value of the response header `private-network-access-name`.
    pub access_name: Option<Written<HeaderValue>>,
}

/// A warning for each pattern in `match_origins` that also matches longer origins.
///
/// A pattern may match anywhere in an origin, as in Apollo Router. So `^https://shop\.example` matches
/// `https://shop.example.evil.example`, which belongs to another site. A pattern without `^` causes no
/// warning, because `\.shop\.example$` is a good way to match all hosts below one domain.
pub(crate) fn warnings(tree: &Node, text: &str) -> Vec<String> {
    let policies = tree.at(&["cors", "policies"]);
    let policies = policies.into_iter().flat_map(|entry| items(&entry.node));
    let lists = policies.filter_map(|policy| policy.entry("match_origins"));
    let patterns = tree
        .at(&["cors", "match_origins"])
        .into_iter()
        .chain(lists)
        .flat_map(|entry| items(&entry.node));
    let open = patterns.filter_map(|node| match &node.value {
        Value::Scalar { text, .. } if !ends_with_the_origin(text) => Some((node, text)),
        _ => None,
    });
    open.map(|(node, pattern)| {
        let (line, _) = line_and_column(text, node.place.start);
        format!(
            "line {line}: `{pattern}` also fits longer origins, which may belong to another site; end it with `$`"
        )
    })
    .collect()
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => &[],
    }
}

/// True if every match of a pattern ends at the end of the origin. An origin is one line, so the end of the
/// line counts, too.
fn ends_with_the_origin(pattern: &str) -> bool {
    let ends = [Look::End, Look::EndLF, Look::EndCRLF];
    regex_syntax::parse(pattern).is_ok_and(|parsed| {
        let required = parsed.properties().look_set_suffix();
        ends.into_iter().any(|end| required.contains(end))
    })
}
