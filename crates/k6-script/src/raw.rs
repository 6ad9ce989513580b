//! The recording as the script's surroundings write it (`js/main.js`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A place in the text that runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RawPlace {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A note with its place.
#[derive(Debug, Deserialize)]
pub(crate) struct RawNote {
    pub(crate) place: Option<RawPlace>,
    pub(crate) text: String,
}

/// A body: text, or bytes as base64.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawBody {
    Text(String),
    Base64(String),
}

/// Statuses that the script accepts: `"any"`, or ranges.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum RawAccepted {
    Any(String),
    Ranges(Vec<(u16, u16)>),
}

/// A message of a conversation over WebSocket. Its text is in the body of the call.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawMessage {
    /// Milliseconds after the begin.
    pub(crate) after: u64,
    pub(crate) every: Option<u64>,
    pub(crate) count: Option<u64>,
    pub(crate) is_binary: bool,
}

/// A call that is more than a request of HTTP.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum RawWire {
    Sse {
        ends: Option<u64>,
    },
    WebSocket {
        protocol: Option<String>,
        ends: Option<u64>,
        hold: Option<u64>,
        messages: Vec<RawMessage>,
    },
    Grpc {
        method: String,
        files: Vec<String>,
        descriptors: Option<String>,
        is_stream: bool,
        deadline: Option<f64>,
    },
}

/// A call that sends something.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawRequest {
    pub(crate) stage: String,
    pub(crate) of: String,
    pub(crate) turn: u32,
    pub(crate) place: Option<RawPlace>,
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<RawBody>,
    pub(crate) expected: Option<Vec<u16>>,
    pub(crate) accepted: Option<RawAccepted>,
    pub(crate) notes: Vec<String>,
    pub(crate) problems: Vec<String>,
    /// Pauses since the request before it, in milliseconds.
    pub(crate) pause: f64,
    #[serde(default)]
    pub(crate) wire: Option<RawWire>,
}

/// A placeholder of the script.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum RawPlaceholder {
    Environment {
        variable: String,
    },
    Json {
        answer: usize,
        path: Vec<String>,
        name: String,
    },
    Header {
        answer: usize,
        header: String,
        #[serde(default)]
        pattern: Option<String>,
        name: String,
    },
    Pattern {
        answer: usize,
        pattern: String,
        name: String,
    },
    Body {
        answer: usize,
        name: String,
    },
    Matches {
        name: String,
    },
    Computed {
        name: String,
    },
}

/// The early end of an iteration.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawEnd {
    pub(crate) text: String,
    pub(crate) is_unknown: bool,
    pub(crate) place: Option<RawPlace>,
}

/// One iteration of a function: its requests, and the values that it drew.
#[derive(Debug, Deserialize)]
pub(crate) struct RawIteration {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) drawn: BTreeMap<String, Value>,
    pub(crate) ended: Option<RawEnd>,
    /// Pauses after the last request, in milliseconds.
    pub(crate) rest: f64,
}

/// All iterations of a scenario.
#[derive(Debug, Deserialize)]
pub(crate) struct RawScenario {
    pub(crate) name: String,
    pub(crate) exec: String,
    pub(crate) iterations: Vec<RawIteration>,
}

/// A list of the script. Without rows, it is too long.
#[derive(Debug, Deserialize)]
pub(crate) struct RawList {
    pub(crate) number: usize,
    pub(crate) rows: Option<Vec<Value>>,
}

/// The whole recording.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Raw {
    pub(crate) requests: Vec<RawRequest>,
    pub(crate) placeholders: Vec<RawPlaceholder>,
    pub(crate) scenarios: Vec<RawScenario>,
    pub(crate) absent: Vec<String>,
    pub(crate) setup_ended: Option<RawEnd>,
    pub(crate) notes: Vec<RawNote>,
    pub(crate) options: Value,
    pub(crate) unset: Vec<String>,
    pub(crate) used: Vec<String>,
    pub(crate) reached: Vec<usize>,
    pub(crate) lists: Vec<RawList>,
    pub(crate) users: u64,
    pub(crate) protos: BTreeMap<String, String>,
    pub(crate) descriptors: BTreeMap<String, String>,
    pub(crate) functions: Vec<String>,
}
