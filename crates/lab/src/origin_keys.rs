//! Keys that cannot be used with the origin of a system.

use yaml_with_places::{Finding, Node};

use crate::reading::Reading;

/// The help for a second source.
pub(crate) const ONE_ORIGIN: &str = "a system has one source. Remove one of the two";

/// Reports keys that cannot be used with the key of an origin, in the tree of one system. Each key has its
/// help. `said` is the label of the origin.
pub(crate) fn report_beside<'k>(
    system: &Node,
    origin: &str,
    said: &'static str,
    keys: impl IntoIterator<Item = (&'k str, &'static str)>,
    reading: &mut Reading<'_>,
) {
    let Some(entry) = system.entry(origin) else {
        return;
    };
    for (key, help) in keys {
        if let Some(other) = system.entry(key) {
            reading.findings.add(
                Finding::new(
                    other.key_place,
                    format!("`{key}` cannot be used with `{origin}`"),
                )
                .related(entry.key_place, said)
                .help(help),
            );
        }
    }
}
