//! Which keys do not go with manifests.

use yaml_with_places::Node;

use crate::origin_keys::{ONE_ORIGIN, report_beside};
use crate::reading::Reading;

/// Keys that say how a system is built and started, and where manifests say that.
const OF_PROCESSES: [(&str, &str); 13] = [
    ("run", ONE_ORIGIN),
    ("image", ONE_ORIGIN),
    ("url", ONE_ORIGIN),
    ("compose", ONE_ORIGIN),
    ("folder", "paths are relative to the lab file"),
    (
        "build",
        "images are built before the run; a cluster fetches them",
    ),
    ("env", "write `manifests.changes.NAME.env`"),
    ("limits", "limits stand in the manifests, as `resources`"),
    ("pin", "a cluster pins by its CPU manager"),
    ("needs", "no program of this machine is run"),
    ("version", "the digests of its images are recorded"),
    ("replicas", "write `manifests.changes.NAME.replicas`"),
    ("balance", "what balances is the Service"),
];

/// Reports keys that do not go together, in the tree of one system.
pub(crate) fn check_keys(system: &Node, reading: &mut Reading<'_>) {
    let origin = ("manifests", "its objects come from manifests, says this");
    report_beside(system, origin, OF_PROCESSES, reading);
}
