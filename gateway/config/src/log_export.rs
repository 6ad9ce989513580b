//! `telemetry.exporters.logging`: the form of the lines in the log.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::resource_value::AttributeValue;
use crate::trace_id::TraceIdFormat;
use crate::written::Written;

/// The form of the lines in the log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoggingExporters {
    /// The attributes of this service in the log.
    pub common: LoggingCommon,
    /// The lines of the log. The gateway writes them to standard error. Without this key, each line is a JSON
    /// object of the gateway's own form.
    pub stdout: Option<LogOutput>,
}

/// The attributes of this service in the log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoggingCommon {
    /// The name of this service, `service.name`. `OTEL_SERVICE_NAME` has precedence.
    pub service_name: Option<String>,
    /// The namespace of this service, `service.namespace`.
    pub service_namespace: Option<String>,
    /// Further attributes of this service.
    pub resource: BTreeMap<String, AttributeValue>,
}

/// The lines of the log.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogOutput {
    /// False if the gateway writes no lines after its start.
    pub enabled: bool,
    /// The form of a line.
    pub format: Option<LogFormat>,
    /// The form of a line if standard error is a terminal. It has precedence over `format`.
    pub tty_format: Option<LogFormat>,
    /// The maximum rate of similar lines.
    pub rate_limit: LogRateLimit,
}

/// The maximum rate of similar lines. Lines of one place in the program are similar, and so are events with
/// one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogRateLimit {
    /// True if the rate is limited.
    pub enabled: bool,
    /// Maximum number of similar lines in an interval.
    pub capacity: u32,
    /// The length of an interval.
    pub interval: Written<Duration>,
}

impl Default for LogRateLimit {
    fn default() -> Self {
        Self {
            enabled: false,
            capacity: 1,
            interval: Written(Duration::from_secs(1)),
        }
    }
}

impl Default for LogOutput {
    fn default() -> Self {
        Self {
            enabled: true,
            format: None,
            tty_format: None,
            rate_limit: LogRateLimit::default(),
        }
    }
}

/// The form of a line, with or without options.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LogFormat {
    /// The form with all its defaults.
    Named(LogForm),
    /// The form with options.
    Written(Box<WrittenLogFormat>),
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogForm {
    /// A JSON object.
    Json,
    /// Text for people.
    Text,
}

/// A form with options. It has exactly one of these keys.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct WrittenLogFormat {
    /// A JSON object.
    pub json: Option<JsonLogOptions>,
    /// Text for people.
    pub text: Option<TextLogOptions>,
}

/// The parts of a line in JSON.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JsonLogOptions {
    /// True if a line has its time.
    pub display_timestamp: bool,
    /// True if a line has its level.
    pub display_level: bool,
    /// True if a line has its target: the part of the program, `request` or `event`.
    pub display_target: bool,
    /// True if a line has the file of the program that wrote it.
    pub display_filename: bool,
    /// True if a line has the line number in that file.
    pub display_line_number: bool,
    /// True if a line has the id of its thread.
    pub display_thread_id: bool,
    /// True if a line has the name of its thread.
    pub display_thread_name: bool,
    /// True if a line has the attributes of this service, if `common` has any.
    pub display_resource: bool,
    /// The format of the trace's id in lines of requests and events, or `false`.
    pub display_trace_id: DisplayTraceId,
    /// True if lines of requests and events have the id of their span.
    pub display_span_id: bool,
}

impl Default for JsonLogOptions {
    fn default() -> Self {
        Self {
            display_timestamp: true,
            display_level: true,
            display_target: true,
            display_filename: false,
            display_line_number: false,
            display_thread_id: false,
            display_thread_name: false,
            display_resource: true,
            display_trace_id: DisplayTraceId::Switch(true),
            display_span_id: true,
        }
    }
}

/// The parts of a line in text.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TextLogOptions {
    /// True if a line has its time.
    pub display_timestamp: bool,
    /// True if a line has its level.
    pub display_level: bool,
    /// True if a line has its target: the part of the program, `request` or `event`.
    pub display_target: bool,
    /// True if a line has the file of the program that wrote it.
    pub display_filename: bool,
    /// True if a line has the line number in that file.
    pub display_line_number: bool,
    /// True if a line has the id of its thread.
    pub display_thread_id: bool,
    /// True if a line has the name of its thread.
    pub display_thread_name: bool,
    /// True if a line has the attributes of this service, if `common` has any.
    pub display_resource: bool,
    /// True if a line has the name of this service.
    pub display_service_name: bool,
    /// True if a line has the namespace of this service.
    pub display_service_namespace: bool,
    /// The format of the trace's id in lines of requests and events, or `false`.
    pub display_trace_id: DisplayTraceId,
    /// True if lines of requests and events have the id of their span.
    pub display_span_id: bool,
}

impl Default for TextLogOptions {
    fn default() -> Self {
        Self {
            display_timestamp: true,
            display_level: true,
            display_target: false,
            display_filename: false,
            display_line_number: false,
            display_thread_id: false,
            display_thread_name: false,
            display_resource: false,
            display_service_name: false,
            display_service_namespace: false,
            display_trace_id: DisplayTraceId::Switch(false),
            display_span_id: false,
        }
    }
}

/// The format of a trace's id in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DisplayTraceId {
    /// True for hexadecimal digits, and false for no id.
    Switch(bool),
    /// The format of the id.
    Format(TraceIdFormat),
}

impl DisplayTraceId {
    /// The format of the id. `None` if lines have no id.
    #[must_use]
    pub fn format(self) -> Option<TraceIdFormat> {
        match self {
            Self::Switch(is_shown) => is_shown.then_some(TraceIdFormat::Hexadecimal),
            Self::Format(format) => Some(format),
        }
    }
}

impl LogOutput {
    /// The form of lines for a terminal or for another receiver. `None` means the gateway's own form.
    #[must_use]
    pub fn format(&self, is_terminal: bool) -> Option<&LogFormat> {
        let tty = self.tty_format.as_ref().filter(|_| is_terminal);
        tty.or(self.format.as_ref())
    }
}

impl LogFormat {
    /// The format of the trace's id, if lines have one, and true if lines have the id of their span.
    #[must_use]
    pub fn ids(&self) -> (Option<TraceIdFormat>, bool) {
        if let Some(options) = self.text() {
            return (options.display_trace_id.format(), options.display_span_id);
        }
        let options = self.json().unwrap_or_default();
        (options.display_trace_id.format(), options.display_span_id)
    }

    /// The options of text. `None` if lines are JSON.
    #[must_use]
    pub fn text(&self) -> Option<TextLogOptions> {
        match self {
            Self::Named(LogForm::Text) => Some(TextLogOptions::default()),
            Self::Named(LogForm::Json) => None,
            Self::Written(written) => written.text.clone(),
        }
    }

    /// The options of JSON. `None` if lines are text.
    #[must_use]
    pub fn json(&self) -> Option<JsonLogOptions> {
        match self {
            Self::Named(LogForm::Json) => Some(JsonLogOptions::default()),
            Self::Named(LogForm::Text) => None,
            Self::Written(written) => written.json.clone(),
        }
    }
}
