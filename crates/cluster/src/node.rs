//! The description of a node, and its loss.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
            name: text(&node["metadata"]["name"]),
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

/// Returns the reason why a node counts as lost. `None` while the API server hears from its kubelet.
///
/// The cluster decides it, about 50 s after the last message of the kubelet. A kubelet that reports trouble of
/// its own is not lost.
#[must_use]
pub fn why_lost(node: &Value) -> Option<String> {
    let conditions = node["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|it| it["type"] == "Ready")?;
    if ready["status"] != "Unknown" {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or("no reason given").to_owned();
    let message = text(&ready["message"]);
    let message = message.trim_end_matches('.');
    Some(match ready["lastHeartbeatTime"].as_str() {
        Some(since) => format!("{message} (last message at {since})"),
        None => message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_node_that_nobody_hears_from_is_lost() {
        let node = |status: &str| {
            json!({"status": {"conditions": [
                {"type": "MemoryPressure", "status": "Unknown"},
                {"type": "Ready", "status": status, "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                 "message": "Kubelet stopped posting node status."},
            ]}})
        };
        assert_eq!(why_lost(&node("True")), None);
        assert_eq!(
            why_lost(&node("False")),
            None,
            "its kubelet reports trouble"
        );
        assert_eq!(why_lost(&json!({})), None, "a node that is new");
        let lost = "Kubelet stopped posting node status (last message at 2026-01-01T00:00:00Z)";
        assert_eq!(why_lost(&node("Unknown")).as_deref(), Some(lost));
    }
}
