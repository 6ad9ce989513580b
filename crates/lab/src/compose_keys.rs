//! Keys that cannot be used with the services of a compose file.

use yaml_with_places::Node;

use crate::origin_keys::{ONE_ORIGIN, report_beside};
use crate::reading::Reading;

/// Keys that define how a process is built and started, with the help for services.
const OF_PROCESSES: [(&str, &str); 12] = [
    ("run", ONE_ORIGIN),
    ("image", ONE_ORIGIN),
    ("url", ONE_ORIGIN),
    (
        "folder",
        "paths in a compose file are relative to that file",
    ),
    (
        "build",
        "the `build` keys of the compose file define how its services are built",
    ),
    (
        "env",
        "write `compose.env` for the `${…}` of the file. For the environment of a service write `compose.services.NAME.env`",
    ),
    (
        "files",
        "write the files next to the compose file, and mount them as its `volumes` or `configs`",
    ),
    (
        "limits",
        "write the limits of its services in the compose file",
    ),
    ("pin", "write `cpuset` in the compose file"),
    (
        "version",
        "the recording already contains the digests of its images",
    ),
    ("replicas", "write `compose.services.NAME.replicas`"),
    ("balance", "the balancer is a service of the compose file"),
];

/// Reports keys that do not go together, in the tree of one system.
pub(crate) fn check_keys(system: &Node, reading: &mut Reading<'_>) {
    let reason = "this key takes its services from a compose file";
    report_beside(system, "compose", reason, OF_PROCESSES, reading);
}
