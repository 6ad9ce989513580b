//! Scenarios and data, as they are written.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::request::{ExpectFile, Headers, RequestFile};
use yaml_with_places::{At, Json};

use crate::fields::{Table, TextOr};
use crate::formats::{
    HeaderName, Method, Name, Pattern, Pointer, RequestPath, Title, Verbatim, Written,
};
use crate::quantities::Numbers;

/// A scenario in a file of its own, for `weigh load --scenario`: requests that follow one another.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "scenario")]
pub(crate) struct ScenarioFile {
    /// Its requests, in order.
    #[schemars(required, length(min = 1))]
    pub(crate) steps: Option<Vec<At<StepFile>>>,
    /// Values that differ from iteration to iteration: a file (CSV below a header row, or one JSON object a
    /// line), or a mapping that says more.
    pub(crate) data: Option<At<DataEntry>>,
    /// Headers of every step. A step's own header of the same name wins.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// What every answer must look like, unless its step says otherwise.
    #[serde(default)]
    pub(crate) expect: ExpectFile,
}

/// One request of a scenario. It has at most one of `body`, `json` and `query`. An iteration
/// ends at the first step that does not pass; the steps after it are counted as skipped.
///
/// The latency of the first step counts from the planned time of its iteration in an open loop, and from
/// the send in a closed one. That of a later step counts from the moment the answer before it was
/// complete, plus `pause`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "step")]
pub(crate) struct StepFile {
    /// How reports call it. By default its path.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// Think time before it, as of a user who reads. It is not part of the latency.
    #[schemars(extend("default" = "0s"))]
    pub(crate) pause: Option<Written<Duration>>,
    /// Values of its answer that later steps use as `{{name}}`. An answer that does not hold one is
    /// mismatched.
    #[serde(default)]
    pub(crate) capture: Table<Name, At<CaptureFile>>,
    /// Its method. By default `load.method`, else `POST` with a body and `GET` without.
    pub(crate) method: Option<Written<Method>>,
    /// Its path and query. By default `load.path`.
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// Its headers, besides those of `load.headers`.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// A file whose bytes are the body.
    pub(crate) body: Option<At<String>>,
    /// A body in JSON, written as YAML.
    pub(crate) json: Option<At<Json>>,
    /// A GraphQL query; the body becomes `{"query": …, "variables": …}`.
    pub(crate) query: Option<At<String>>,
    /// The variables of `query`.
    pub(crate) variables: Option<At<Json>>,
    /// What its answer must look like, instead of the lab's `expect`.
    pub(crate) expect: Option<ExpectFile>,
}

impl StepFile {
    /// The request that it sends.
    pub(crate) fn request(&self) -> RequestFile {
        let step = self.clone();
        RequestFile {
            name: step.name,
            method: step.method,
            path: step.path,
            headers: step.headers,
            body: step.body,
            json: step.json,
            query: step.query,
            variables: step.variables,
            expect: step.expect,
            batch: None,
            weight: None,
        }
    }
}

/// Where a value stands in an answer: in a header, at a pointer into the JSON body, or with neither
/// anywhere in the body, where `regex` finds it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "capture")]
pub(crate) struct CaptureFile {
    /// At this JSON pointer. Texts lose their quotes.
    pub(crate) json: Option<At<Written<Pointer>>>,
    /// In the first header of this name.
    pub(crate) header: Option<At<Written<HeaderName>>>,
    /// Only what this regular expression finds of it: its first group, or all that it matches.
    pub(crate) regex: Option<Written<Pattern>>,
}

/// Where values come from that differ from request to request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "data")]
pub(crate) struct DataFile {
    /// Rows of values: CSV below a header row, or one JSON object a line.
    pub(crate) file: Option<At<String>>,
    /// Whether rows are taken one after the other, or drawn with the seed.
    #[schemars(extend("default" = "rotation"))]
    pub(crate) order: Option<At<RowOrderFile>>,
    /// Whole numbers by name, drawn anew for each request or iteration: `{page: 1..20}`.
    #[serde(default)]
    pub(crate) ranges: Table<Name, Written<Numbers>>,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum RowOrderFile {
    Rotation,
    Random,
}

/// The path of a file, or more.
pub(crate) type DataEntry = TextOr<String, DataFile>;
