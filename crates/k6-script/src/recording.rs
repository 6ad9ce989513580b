//! The recording of a script, without repetition.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ScriptPlace;

/// A value of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerValue {
    /// A member of a JSON body.
    Json(Vec<String>),
    /// A header, or the part of it that a pattern finds.
    Header(String, Option<String>),
    /// The part of the body that a pattern finds.
    Pattern(String),
    /// The whole body.
    Body,
}

/// The form of a value of an answer in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerForm {
    /// The text of the value, unchanged.
    #[default]
    Text,
    /// JSON with the kind of the value. A text has quotes.
    Json,
    /// The text of the value within the quotes of a text of JSON.
    Escaped,
    /// The text of the value, percent-encoded.
    Encoded,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextPart {
    /// A constant text.
    Plain(String),
    /// A value of the answer to the call with this number.
    Answer {
        /// The number of the call.
        call: usize,
        /// The value.
        value: AnswerValue,
        /// The form of the value in the text.
        form: AnswerForm,
        /// The value in the words of the script.
        name: String,
    },
    /// A value that exists only during a run, in the words of the script.
    Computed(String),
    /// A name of the environment without a value.
    Environment(String),
    /// A column of the data.
    Column(String),
    /// A number that is drawn for each iteration, by the name of its range.
    Range(String),
    /// The number of the iteration.
    Index,
}

/// The body of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallBody {
    /// A text.
    Text(Vec<TextPart>),
    /// Bytes.
    Bytes(String),
}

/// Statuses that the script accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedStatus {
    /// Any status.
    Any,
    /// These statuses, in order.
    These(Vec<u16>),
}

/// The pauses of a script at one place, in all iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptPause {
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl ScriptPause {
    /// The pauses of several iterations, in milliseconds.
    pub(crate) fn of(milliseconds: impl Iterator<Item = f64>) -> ScriptPause {
        let lengths = milliseconds
            .map(|it| Duration::try_from_secs_f64((it / 1000.0).max(0.0)).unwrap_or(Duration::MAX));
        let mut found: Option<ScriptPause> = None;
        for length in lengths {
            let known = found.get_or_insert(ScriptPause {
                least: length,
                most: length,
            });
            known.least = known.least.min(length);
            known.most = known.most.max(length);
        }
        found.unwrap_or_default()
    }

    /// True if the iterations pause for different times.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.least != self.most
    }
}

/// A message of a conversation over WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptMessage {
    /// The time from the open connection to the first send.
    pub after: Duration,
    /// The time between two sends. `None` for a message that is sent once.
    pub every: Option<Duration>,
    /// The number of sends. `None` for a message until the end.
    pub count: Option<u64>,
    /// True for bytes, which are base64 in the body of the call.
    pub is_binary: bool,
}

/// The kind of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CallWire {
    /// A request of HTTP.
    #[default]
    Http,
    /// A request of HTTP with server-sent events as its answer.
    Sse {
        /// The number of the event at which the script ends the stream.
        ends: Option<u64>,
    },
    /// A conversation over WebSocket. [`SEPARATOR`] is between the texts of the messages in the body.
    WebSocket {
        /// The subprotocol.
        protocol: Option<String>,
        /// The number of the event at which the script ends the conversation.
        ends: Option<u64>,
        /// The time of the end.
        hold: Option<Duration>,
        /// The messages, in order.
        messages: Vec<ScriptMessage>,
    },
    /// A call of gRPC. [`SEPARATOR`] is between the messages in the body, which are JSON.
    Grpc {
        /// The method: `package.Service/Method`.
        method: String,
        /// The names of the `.proto` files that the script loads.
        files: Vec<String>,
        /// The name of the set of descriptors that the script loads.
        descriptors: Option<String>,
        /// True if the script sends a stream of messages.
        is_stream: bool,
        /// The time limit.
        deadline: Option<Duration>,
    },
}

/// The text between two messages in the body of a call.
pub const SEPARATOR: char = '\u{E002}';

/// The first number of a status of gRPC, which is 0, in the accepted statuses of a call.
pub const GRPC_STATUS: u16 = 100;

/// A request of the script.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    /// The number of the call, for values of its answer.
    pub number: usize,
    /// The place that sends it.
    pub place: Option<ScriptPlace>,
    /// The method.
    pub method: String,
    /// The URL.
    pub url: Vec<TextPart>,
    /// Names and values of headers.
    pub headers: Vec<(String, Vec<TextPart>)>,
    /// The body.
    pub body: Option<CallBody>,
    /// The statuses that checks accept. `None` without such a check.
    pub accepted: Option<AcceptedStatus>,
    /// Notes about it.
    pub notes: Vec<String>,
    /// Reasons why no lab can send it.
    pub problems: Vec<String>,
    /// The number of iterations that send it.
    pub count: u32,
    /// The pauses since the request before it.
    pub pause: ScriptPause,
    /// Its kind.
    pub wire: CallWire,
}

/// A scenario, with the calls of its function.
#[derive(Clone, Debug)]
pub struct ScriptScenario {
    /// The name in the options.
    pub name: String,
    /// The exported function.
    pub exec: String,
    /// Number of recorded iterations.
    pub iterations: u32,
    /// Its calls, in order.
    pub calls: Vec<ScriptCall>,
    /// The pauses after its last call.
    pub rest: ScriptPause,
}

/// A sentence about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptNote {
    /// The place.
    pub place: Option<ScriptPlace>,
    /// The sentence.
    pub text: String,
}

/// A module that the engine does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftModule {
    /// The place of the import.
    pub place: ScriptPlace,
    /// The module, as the script names it.
    pub module: String,
    /// The reason.
    pub why: &'static str,
}

/// Rows of a list of the script that requests use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptRows {
    /// Rows as objects with columns.
    pub rows: Vec<serde_json::Map<String, serde_json::Value>>,
    /// True if the script draws rows at random.
    pub is_random: bool,
}

/// A range of whole numbers that requests use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The name of the range.
    pub name: String,
    /// The smallest number.
    pub from: i64,
    /// The largest number.
    pub to: i64,
    /// The origin of the value in the script.
    pub origin: &'static str,
}

/// All that a script does.
#[derive(Clone, Debug)]
pub struct ScriptRecording {
    /// Calls of `setup`, which runs once.
    pub setup: Vec<ScriptCall>,
    /// The scenarios, in order.
    pub scenarios: Vec<ScriptScenario>,
    /// The exported options.
    pub options: serde_json::Value,
    /// Notes about places.
    pub notes: Vec<ScriptNote>,
    /// Calls of `k6/http` in the text that never ran.
    pub unreached: Vec<ScriptNote>,
    /// Modules that the engine does not have.
    pub modules: Vec<LeftModule>,
    /// Functions that scenarios name and the script does not export.
    pub absent: Vec<String>,
    /// Names of the environment that the script reads and that have no value.
    pub unset: Vec<String>,
    /// The rows that columns come from.
    pub data: Option<ScriptRows>,
    /// The ranges of drawn numbers.
    pub ranges: Vec<Drawn>,
    /// The texts of `.proto` files by the names in their imports.
    pub protos: BTreeMap<String, String>,
    /// Sets of descriptors by their names, as base64.
    pub descriptors: BTreeMap<String, String>,
    /// The exported functions.
    pub functions: Vec<String>,
    /// True if the script pauses.
    pub has_pauses: bool,
    /// True if the script checks more than statuses.
    pub has_checks: bool,
}
