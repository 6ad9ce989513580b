//! The description of a node.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connection::name_of;

/// A node, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// Name of the node.
    pub name: String,
    /// Kernel version, such as `6.18.0`.
    pub kernel: String,
    /// Operating system, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: String,
    /// Container runtime, such as `containerd://1.6.20`.
    pub runtime: String,
    /// The version of its kubelet.
    pub kubelet: String,
    /// Processor architecture, such as `amd64`.
    pub architecture: String,
    /// Cores as a quantity of the cluster, such as `2`.
    pub cpu: String,
    /// Memory as a quantity of the cluster, such as `24576Mi`.
    pub memory: String,
}

impl NodeDescription {
    /// Returns the node from the JSON of the API. Missing values are empty.
    #[must_use]
    pub fn of(node: &Value) -> NodeDescription {
        let info = &node["status"]["nodeInfo"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let capacity = &node["status"]["capacity"];
        NodeDescription {
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
