//! Which keys do not go with the services of a compose file.

use yaml_with_places::{Finding, Node};

use crate::reading::Reading;

/// Keys that say how a process is built and started, and where that is said of services.
const OF_PROCESSES: [(&str, &str); 11] = [
    ("run", ONE_ORIGIN),
    ("image", ONE_ORIGIN),
    ("url", ONE_ORIGIN),
    ("folder", "paths of a compose file are relative to it"),
    ("build", "services are built as their `build` says"),
    (
        "env",
        "write `compose.env` for the `${…}` of the file, and `compose.services.NAME.env` for the environment of a service",
    ),
    (
        "limits",
        "the limits of its services stand in the compose file",
    ),
    ("pin", "write `cpuset` in the compose file"),
    ("version", "the digests of its images are recorded"),
    ("replicas", "write `compose.services.NAME.replicas`"),
    ("balance", "what balances is a service of the file"),
];

const ONE_ORIGIN: &str = "a system comes from one place; remove one of the two";

/// Reports keys that do not go together, in the tree of one system.
pub(crate) fn check_keys(system: &Node, reading: &mut Reading<'_>) {
    let Some(compose) = system.entry("compose") else {
        return;
    };
    for (key, help) in OF_PROCESSES {
        if let Some(other) = system.entry(key) {
            reading.findings.add(
                Finding::new(other.key_place, format!("`{key}` beside `compose`"))
                    .related(
                        compose.key_place,
                        "its services come from a compose file, says this",
                    )
                    .help(help),
            );
        }
    }
}
