//! `persisted_queries`: a list of operations that the gateway reads from manifests.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::apq::Apq;
use crate::report::Report;

/// Operations of a local list. Clients request them by their ids. The gateway can refuse all other
/// operations.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersistedQueries {
    /// True if the gateway accepts ids.
    pub enabled: bool,
    /// True if the log has a line for each operation outside of the list.
    pub log_unknown: bool,
    /// The use of the list as a safelist.
    pub safelist: Safelist,
    /// The manifests, as JSON files of the format `apollo-persisted-query-manifest`. An id in two manifests
    /// is a mistake, unless both have the same text.
    pub local_manifests: Option<Vec<PathBuf>>,
    /// True if the gateway reads changed manifests again. `--hot-reload` and SIGHUP always read them again.
    pub hot_reload: bool,
}

/// The treatment of operations outside of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Safelist {
    /// True if the gateway refuses these operations. It compares texts without ignored characters, and by
    /// name.
    pub enabled: bool,
    /// True if the gateway refuses all texts. Clients must then send ids.
    pub require_id: bool,
}

/// Reports keys that contradict each other.
pub(crate) fn check(queries: &PersistedQueries, apq: &Apq, report: &mut Report<'_>) {
    if queries.safelist.enabled && !queries.enabled {
        report(
            &["persisted_queries", "safelist", "enabled"],
            "a safelist needs the list: set `persisted_queries.enabled: true`".to_owned(),
        );
    }
    if queries.safelist.require_id && !queries.safelist.enabled {
        report(
            &["persisted_queries", "safelist", "require_id"],
            "`require_id` means nothing without a safelist: set `persisted_queries.safelist.enabled: true`".to_owned(),
        );
    }
    // As in the original: with both keys, any client could add operations to the list.
    if queries.safelist.enabled && apq.enabled {
        report(
            &["persisted_queries", "safelist", "enabled"],
            "a safelist and automatic persisted queries cannot be used together: set `apq.enabled: false`".to_owned(),
        );
    }
    if queries.enabled && queries.local_manifests.as_ref().is_none_or(Vec::is_empty) {
        report(
            &["persisted_queries", "enabled"],
            "lists are not fetched from GraphOS: name files in `local_manifests`".to_owned(),
        );
    }
}
