//! Which keys do not go with the place that a system comes from.

use yaml_with_places::{Finding, Node};

use crate::reading::Reading;

/// What to do about a second place.
pub(crate) const ONE_ORIGIN: &str = "a system comes from one place; remove one of the two";

/// Reports keys beside that of an origin, in the tree of one system; each key has its help. `said` is
/// what the origin says of the system.
pub(crate) fn report_beside<'k>(
    system: &Node,
    (origin, said): (&str, &'static str),
    keys: impl IntoIterator<Item = (&'k str, &'static str)>,
    reading: &mut Reading<'_>,
) {
    let Some(entry) = system.entry(origin) else {
        return;
    };
    for (key, help) in keys {
        if let Some(other) = system.entry(key) {
            reading.findings.add(
                Finding::new(other.key_place, format!("`{key}` beside `{origin}`"))
                    .related(entry.key_place, said)
                    .help(help),
            );
        }
    }
}
