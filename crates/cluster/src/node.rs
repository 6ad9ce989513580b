//! What a node is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connection::name_of;

/// A node, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Such as `6.18.0`.
    pub kernel: String,
    /// Such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: String,
    /// Such as `containerd://1.6.20`.
    pub runtime: String,
    /// The version of its kubelet.
    pub kubelet: String,
    /// Such as `amd64`.
    pub architecture: String,
    /// Its cores, as a quantity of the cluster: `2`.
    pub cpu: String,
    /// Its memory, as a quantity of the cluster: `24576Mi`.
    pub memory: String,
}

impl Node {
    /// What the API says of a node. What it does not say is empty.
    #[must_use]
    pub fn of(node: &Value) -> Node {
        let info = &node["status"]["nodeInfo"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let capacity = &node["status"]["capacity"];
        Node {
            name: name_of(node).to_owned(),
            kernel: text(&info["kernelVersion"]),
            os: text(&info["osImage"]),
            runtime: text(&info["containerRuntimeVersion"]),
            kubelet: text(&info["kubeletVersion"]),
            architecture: text(&info["architecture"]),
            cpu: text(&capacity["cpu"]),
            memory: text(&capacity["memory"]),
        }
    }
}
