//! Keys that cannot be used with manifests.

use yaml_with_places::Node;

use crate::origin_keys::{ONE_ORIGIN, report_beside};
use crate::reading::Reading;

/// Keys that define how a system is built and started, with the help for manifests.
const OF_PROCESSES: [(&str, &str); 14] = [
    ("run", ONE_ORIGIN),
    ("image", ONE_ORIGIN),
    ("url", ONE_ORIGIN),
    ("compose", ONE_ORIGIN),
    ("folder", "paths are relative to the lab file"),
    (
        "build",
        "a cluster pulls its images. Build them before the run",
    ),
    ("env", "write `manifests.changes.NAME.env`"),
    ("files", "write a ConfigMap in the manifests"),
    ("limits", "write limits in the manifests, as `resources`"),
    ("pin", "a cluster pins containers with its CPU manager"),
    (
        "needs",
        "a system from manifests runs no program of this machine",
    ),
    (
        "version",
        "the recording already contains the digests of its images",
    ),
    ("replicas", "write `manifests.changes.NAME.replicas`"),
    ("balance", "the Service is the balancer"),
];

/// Reports keys that do not go together, in the tree of one system.
pub(crate) fn check_keys(system: &Node, reading: &mut Reading<'_>) {
    let reason = "this key takes its objects from manifests";
    report_beside(system, "manifests", reason, OF_PROCESSES, reading);
}
