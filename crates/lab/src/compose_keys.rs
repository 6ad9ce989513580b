//! Which keys do not go with the services of a compose file.

use yaml_with_places::Node;

use crate::origin_keys::{ONE_ORIGIN, report_beside};
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

/// Reports keys that do not go together, in the tree of one system.
pub(crate) fn check_keys(system: &Node, reading: &mut Reading<'_>) {
    let origin = (
        "compose",
        "its services come from a compose file, says this",
    );
    report_beside(system, origin, OF_PROCESSES, reading);
}
