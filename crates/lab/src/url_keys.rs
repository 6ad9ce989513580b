//! Checks of keys of already running systems that need no variant.

use yaml_with_places::{Finding, Node};

use crate::origin_keys::report_beside;
use crate::reading::Reading;
use crate::template::{Part, Template};

/// Keys that define how a system is built, started or kept. They have no meaning for a running system.
const OF_STARTED: [&str; 15] = [
    "run", "image", "folder", "build", "env", "files", "scheme", "limits", "pin", "needs",
    "version", "replicas", "balance", "shared", "after",
];

pub(crate) const ENCRYPTED: &str = "https://";
pub(crate) const CLEAR: &str = "http://";

/// True if a URL requests TLS. Its scheme is no setting, so the result is valid for all variants.
pub(crate) fn is_encrypted(url: &Template) -> bool {
    matches!(url.parts.first(), Some(Part::Plain(plain)) if plain.starts_with(ENCRYPTED))
}

/// Reports keys that do not go together, in the tree of one system.
pub(crate) fn check_keys(system: &Node, reading: &mut Reading<'_>) {
    if system.entry("url").is_none()
        && let Some(attach) = system.entry("attach")
    {
        reading.findings.add(
            Finding::new(attach.key_place, "`attach` without `url`")
                .help("`weigh` always watches the systems that it starts. Remove this key"),
        );
    }
    let help =
        "`weigh` does not build, start or limit a system that already runs. Remove one of the two";
    let keys = OF_STARTED.map(|key| (key, help));
    report_beside(
        system,
        "url",
        "this key means that it already runs",
        keys,
        reading,
    );
}

/// True if the URL contains its scheme as text.
pub(crate) fn is_literal(url: &Template) -> bool {
    matches!(url.parts.first(), Some(Part::Plain(_)))
}
