//! `telemetry.instrumentation`: attributes of spans, instruments of metrics, and events in the log.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::attribute::{Attribute, Measured};
use crate::condition::Condition;

/// Attributes of spans, instruments of metrics, and events in the log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Instrumentation {
    /// The attributes of spans.
    pub spans: SpanInstrumentation,
    /// Standard and custom instruments of metrics.
    pub instruments: Instruments,
    /// Standard and custom lines in the log.
    pub events: EventInstrumentation,
}

/// The standard attributes that are present without a key of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequirementLevel {
    /// No standard attributes.
    None,
    /// The attributes that OpenTelemetry requires.
    #[default]
    Required,
    /// The attributes that OpenTelemetry requires or recommends. They include the texts of operations.
    Recommended,
}

/// The attributes of spans.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpanInstrumentation {
    /// The names of attributes. Spans always have the names of OpenTelemetry.
    pub mode: SpanMode,
    /// The standard attributes that are present without a key of their own.
    pub default_attribute_requirement_level: RequirementLevel,
    /// The span of the client's HTTP request.
    pub router: SpanAttributes,
    /// The span of an operation.
    pub supergraph: SpanAttributes,
    /// The span of an HTTP request to a subgraph.
    pub subgraph: SpanAttributes,
}

/// The names of attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpanMode {
    /// The names of OpenTelemetry.
    #[default]
    SpecCompliant,
    /// Accepted without effect. Spans keep the names of OpenTelemetry.
    Deprecated,
}

/// Attributes by their names.
pub type Attributes = BTreeMap<String, Attribute>;

/// The attributes of a span.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpanAttributes {
    /// The attributes by their names. `otel.name`, `otel.status_code` and `otel.status_description` set the
    /// name and the status of the span.
    pub attributes: Attributes,
}

/// Standard and custom instruments of metrics.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Instruments {
    /// The attributes of standard instruments without a key of their own. With `none`, the standard
    /// instruments are off unless a key turns them on.
    pub default_requirement_level: RequirementLevel,
    /// Instruments of the client's HTTP requests.
    pub router: BTreeMap<String, Instrument>,
    /// Instruments of operations.
    pub supergraph: BTreeMap<String, Instrument>,
    /// Instruments of HTTP requests to subgraphs.
    pub subgraph: BTreeMap<String, Instrument>,
}

/// A standard instrument, or the definition of a custom instrument.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Instrument {
    /// True if the standard instrument is on.
    Switch(bool),
    /// The attributes of a standard instrument, or the definition of a custom instrument.
    Defined(Box<InstrumentDefinition>),
}

/// The definition of an instrument. A standard instrument has only `attributes`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InstrumentDefinition {
    /// The kind of the metric.
    pub r#type: Option<InstrumentType>,
    /// The value that the instrument records.
    pub value: Option<Measured>,
    /// The unit of the value. Durations are in `s`, `ms`, `us` or `ns`.
    pub unit: Option<String>,
    /// The description of the metric.
    pub description: Option<String>,
    /// The attributes of the metric.
    pub attributes: Attributes,
    /// The condition for a recording.
    pub condition: Option<Condition>,
}

/// The kind of a custom metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstrumentType {
    /// A sum that only grows.
    Counter,
    /// The distribution of values in buckets.
    Histogram,
}

/// Standard and custom lines in the log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventInstrumentation {
    /// Events of the client's HTTP requests.
    pub router: BTreeMap<String, EventRule>,
    /// Events of operations.
    pub supergraph: BTreeMap<String, EventRule>,
    /// Events of HTTP requests to subgraphs.
    pub subgraph: BTreeMap<String, EventRule>,
}

/// The level of a standard event, or the definition of an event.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EventRule {
    /// The level of a standard event: `request`, `response` or `error`.
    Level(EventLevel),
    /// The definition of an event.
    Defined(Box<EventDefinition>),
}

/// The definition of an event. A standard event has only `level` and `condition`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventDefinition {
    /// The level of the line.
    pub level: EventLevel,
    /// The text of the line.
    #[serde(default)]
    pub message: Option<String>,
    /// The moment of the line.
    #[serde(default)]
    pub on: Option<EventMoment>,
    /// The attributes of the line.
    #[serde(default)]
    pub attributes: Attributes,
    /// The condition for the line.
    #[serde(default)]
    pub condition: Option<Condition>,
}

/// The level of an event's line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventLevel {
    /// The level `info`.
    Info,
    /// The level `warn`.
    Warn,
    /// The level `error`.
    Error,
    /// No line.
    Off,
}

/// The moment of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventMoment {
    /// The arrival of the request.
    Request,
    /// The response.
    Response,
    /// Each part of a response.
    EventResponse,
    /// A failure that is not a GraphQL error.
    Error,
}
