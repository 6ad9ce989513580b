//! Keys of the original for what this gateway does not do: `subscription`, `batching`,
//! `persisted_queries`, `plugins`, and exporters of traces.
//!
//! What is turned off, or what no client relies on, is accepted with a warning. What is turned on and
//! would silently be missing ends the start; most of all what decides who may ask what.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::Config;
use crate::agreement::Report;

/// Something of the original that is not done here.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct NotServed {
    /// Whether the file wants it; the original's default when left out.
    pub enabled: Option<bool>,
    /// Its other keys, whatever they are.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// Keys of any kind that have no effect here.
pub type Ignored = BTreeMap<String, Value>;

/// Reports what is turned on and would be missing.
pub(crate) fn check(config: &Config, report: &mut Report<'_>) {
    let is_on = |it: &Option<NotServed>, default: bool| {
        it.as_ref().is_some_and(|it| it.enabled.unwrap_or(default))
    };
    if is_on(&config.subscription, true) {
        report(
            &["subscription", "enabled"],
            "this gateway does not serve subscriptions: set `subscription.enabled: false`"
                .to_owned(),
        );
    }
    if is_on(&config.batching, false) {
        report(
            &["batching", "enabled"],
            "this gateway takes one operation a request: set `batching.enabled: false`".to_owned(),
        );
    }
    if is_on(&config.persisted_queries, false) {
        report(
            &["persisted_queries", "enabled"],
            "this gateway has no persisted queries, so that a safelist would not protect anything: set `persisted_queries.enabled: false`, and bound operations by `limits`".to_owned(),
        );
    }
    if let Some(name) = config.plugins.keys().next() {
        report(
            &["plugins", name],
            "this gateway has no native plugins, and what this one checks or changes would be missing: move it to a script (`rhai`) or to a coprocessor".to_owned(),
        );
    }
}
