//! Selectors: values of a request or response, for conditions and for telemetry.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::trace_id::TraceIdFormat;
use crate::written::{DataPath, Written};
use crate::written_as::written_as;

written_as! {
    Selector => SelectorFile,
}

/// A value to read, with its default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "SelectorFile")]
pub struct Selector {
    /// The source of the value.
    pub source: SelectorSource,
    /// The value if the source has none.
    pub default: Option<Value>,
    /// The decision of the file about masking a header. `None` means that `masking` decides.
    pub redact: Option<Redact>,
}

/// A decision about masking a header in telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Redact {
    /// Telemetry shows the value, even of a sensitive header.
    Allow,
    /// Telemetry never shows the value.
    Mask,
}

/// The source of a [`Selector`]'s value.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectorSource {
    /// A header of the stage's request. At the subgraph stage, this is the subgraph request.
    RequestHeader(http::HeaderName),
    /// A header of the client's request, at any stage.
    SupergraphRequestHeader(http::HeaderName),
    /// The method of the stage's request.
    RequestMethod,
    /// A header of the stage's response.
    ResponseHeader(http::HeaderName),
    /// The status of the stage's response, as a number.
    ResponseStatusCode,
    /// The reason phrase of the status of the stage's response.
    ResponseStatusReason,
    /// True if the stage's response has GraphQL errors.
    OnGraphqlError,
    /// An entry of the context.
    Context(String),
    /// The name of the operation.
    OperationName,
    /// The SHA-256 of the operation's name, in hexadecimal.
    OperationNameHash,
    /// The kind of the operation: `query`, `mutation` or `subscription`.
    OperationKind,
    /// An environment variable.
    Environment(String),
    /// True if this is the first part of the response.
    IsPrimaryResponse,
    /// The name of the subgraph.
    SubgraphName,
    /// A constant from the file.
    Static(Value),
    /// The id of the trace.
    TraceId(TraceIdFormat),
    /// An item of the client's `baggage`.
    Baggage(String),
    /// The text of the client's operation.
    Query,
    /// A size of the client's operation.
    QuerySize(QuerySize),
    /// A variable of the client's operation.
    QueryVariable(String),
    /// The text of the subgraph's operation.
    SubgraphQuery,
    /// A variable of the subgraph's operation.
    SubgraphQueryVariable(String),
    /// The name of the subgraph's operation.
    SubgraphOperationName,
    /// The kind of the subgraph's operation.
    SubgraphOperationKind,
    /// Number of times that the subgraph request was sent again.
    ResendCount,
    /// The body of the stage's response.
    ResponseBody,
    /// A part of the data of the stage's response.
    ResponseData(DataPath),
    /// A part of the errors of the stage's response.
    ResponseErrors(DataPath),
    /// The reason why there is no response.
    ErrorReason,
    /// The cost of the operation, from `demand_control`.
    Cost(CostValue),
}

/// A size of an operation. `limits` counts it in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuerySize {
    /// Number of aliased fields.
    Aliases,
    /// Nesting of fields.
    Depth,
    /// Number of fields.
    Height,
    /// Number of root fields.
    RootFields,
}

/// A value of demand control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostValue {
    /// The cost before the operation runs.
    Estimated,
    /// The cost of the response.
    Actual,
    /// The estimated cost minus the actual cost.
    Delta,
    /// The result, such as `COST_OK` or `COST_ESTIMATED_TOO_EXPENSIVE`.
    Result,
}

impl SelectorSource {
    /// True if the value is in a header.
    #[must_use]
    pub fn is_header(&self) -> bool {
        matches!(
            self,
            Self::RequestHeader(_) | Self::SupergraphRequestHeader(_) | Self::ResponseHeader(_)
        )
    }

    /// True if the value is available only in a response.
    #[must_use]
    pub fn needs_response(&self) -> bool {
        matches!(
            self,
            Self::ResponseHeader(_)
                | Self::ResponseStatusCode
                | Self::ResponseStatusReason
                | Self::OnGraphqlError
                | Self::IsPrimaryResponse
                | Self::ResponseBody
                | Self::ResponseData(_)
                | Self::ResponseErrors(_)
                | Self::ErrorReason
                | Self::Cost(CostValue::Actual | CostValue::Delta)
        )
    }

    /// True if the value belongs to a request of the gateway to a subgraph.
    #[must_use]
    pub fn needs_subgraph(&self) -> bool {
        matches!(
            self,
            Self::SubgraphName
                | Self::SubgraphQuery
                | Self::SubgraphQueryVariable(_)
                | Self::SubgraphOperationName
                | Self::SubgraphOperationKind
                | Self::ResendCount
        )
    }

    /// True if the value is in the GraphQL request of the gateway to a subgraph.
    #[must_use]
    pub fn reads_subgraph_request(&self) -> bool {
        matches!(
            self,
            Self::SubgraphQuery
                | Self::SubgraphQueryVariable(_)
                | Self::SubgraphOperationName
                | Self::SubgraphOperationKind
        )
    }

    /// True if the value is in the GraphQL request of the client.
    #[must_use]
    pub fn reads_client_request(&self) -> bool {
        matches!(self, Self::Query | Self::QueryVariable(_))
    }

    /// True if the value exists only after the operation was parsed.
    #[must_use]
    pub fn needs_operation(&self) -> bool {
        matches!(
            self,
            Self::OperationName
                | Self::OperationNameHash
                | Self::OperationKind
                | Self::Query
                | Self::QuerySize(_)
                | Self::QueryVariable(_)
                | Self::Cost(_)
        )
    }

    /// True if the value exists only after the operation was planned.
    #[must_use]
    pub fn needs_plan(&self) -> bool {
        matches!(self, Self::QuerySize(_))
    }

    /// True if the value is in the body of the response.
    #[must_use]
    pub fn reads_body(&self) -> bool {
        matches!(
            self,
            Self::OnGraphqlError
                | Self::ResponseBody
                | Self::ResponseData(_)
                | Self::ResponseErrors(_)
        )
    }
}

/// The form of a status in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusForm {
    /// The number, such as 404.
    Code,
    /// The reason phrase, such as `Not Found`.
    Reason,
}

/// The form of an operation's name in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NameForm {
    /// The name as the client sent it.
    String,
    /// The SHA-256 of the name.
    Hash,
}

/// The only form of a value that has a single form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TextForm {
    /// The value as text.
    String,
}

/// The form of the client's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum QueryForm {
    /// The text of the operation.
    String,
    /// Number of aliased fields, as `limits.max_aliases` counts them.
    Aliases,
    /// Nesting of fields, as `limits.max_depth` counts it.
    Depth,
    /// Number of fields, as `limits.max_height` counts them.
    Height,
    /// Number of root fields, as `limits.max_root_fields` counts them.
    RootFields,
}

impl QueryForm {
    fn source(self) -> SelectorSource {
        match self {
            Self::String => SelectorSource::Query,
            Self::Aliases => SelectorSource::QuerySize(QuerySize::Aliases),
            Self::Depth => SelectorSource::QuerySize(QuerySize::Depth),
            Self::Height => SelectorSource::QuerySize(QuerySize::Height),
            Self::RootFields => SelectorSource::QuerySize(QuerySize::RootFields),
        }
    }
}

/// The form of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ErrorForm {
    /// The message of the error.
    Reason,
}

/// A value of the request or response. It has exactly one source and an optional `default`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SelectorFile {
    /// The value of this header in the stage's request.
    request_header: Option<Written<http::HeaderName>>,
    /// The value of this header in the subgraph request. At the subgraph stage, `request_header` reads the
    /// same value.
    subgraph_request_header: Option<Written<http::HeaderName>>,
    /// The value of this header in the client's request.
    supergraph_request_header: Option<Written<http::HeaderName>>,
    /// The method of the stage's request.
    request_method: Option<bool>,
    /// The value of this header in the stage's response.
    response_header: Option<Written<http::HeaderName>>,
    /// The value of this header in the subgraph's response. At the subgraph stage, `response_header` reads
    /// the same value.
    subgraph_response_header: Option<Written<http::HeaderName>>,
    /// The status of the stage's response.
    response_status: Option<StatusForm>,
    /// The status of the subgraph's response. At the subgraph stage, `response_status` reads the same value.
    subgraph_response_status: Option<StatusForm>,
    /// True if the stage's response has GraphQL errors.
    on_graphql_error: Option<bool>,
    /// True if the subgraph's response has GraphQL errors.
    subgraph_on_graphql_error: Option<bool>,
    /// The context entry under this key, at a request stage.
    request_context: Option<String>,
    /// The context entry under this key, at a response stage.
    response_context: Option<String>,
    /// The name of the client's operation.
    operation_name: Option<NameForm>,
    /// The name of the client's operation. It equals `operation_name`, and the subgraph stage has this name
    /// for it.
    supergraph_operation_name: Option<NameForm>,
    /// The kind of the operation, `query`, `mutation` or `subscription`.
    operation_kind: Option<NameForm>,
    /// The kind of the client's operation, `query`, `mutation` or `subscription`. It equals `operation_kind`.
    supergraph_operation_kind: Option<NameForm>,
    /// The environment variable with this name.
    env: Option<String>,
    /// True if this is the first part of the response.
    is_primary_response: Option<bool>,
    /// The name of the subgraph.
    subgraph_name: Option<bool>,
    /// A constant from the file.
    r#static: Option<Value>,
    /// The id of the trace.
    trace_id: Option<TraceIdFormat>,
    /// The item with this name in the client's `baggage`.
    baggage: Option<String>,
    /// The text or a size of the client's operation.
    query: Option<QueryForm>,
    /// The text or a size of the client's operation. It equals `query`.
    supergraph_query: Option<QueryForm>,
    /// The variable with this name.
    query_variable: Option<String>,
    /// The variable with this name. It equals `query_variable`.
    supergraph_query_variable: Option<String>,
    /// The text of the subgraph's operation.
    subgraph_query: Option<TextForm>,
    /// The variable of the subgraph's operation with this name.
    subgraph_query_variable: Option<String>,
    /// The name of the subgraph's operation.
    subgraph_operation_name: Option<TextForm>,
    /// The kind of the subgraph's operation.
    subgraph_operation_kind: Option<TextForm>,
    /// Number of times that the subgraph request was sent again. Only for telemetry.
    subgraph_resend_count: Option<bool>,
    /// The whole body of the response.
    response_body: Option<bool>,
    /// The part of the response's `data` at this path.
    response_data: Option<Written<DataPath>>,
    /// The part of the response's `errors` at this path.
    response_errors: Option<Written<DataPath>>,
    /// The part of the `data` at this path in the subgraph's response.
    subgraph_response_data: Option<Written<DataPath>>,
    /// The part of the `errors` at this path in the subgraph's response.
    subgraph_response_errors: Option<Written<DataPath>>,
    /// The reason why there is no response. Only for telemetry.
    error: Option<ErrorForm>,
    /// The cost of the operation, from `demand_control`.
    cost: Option<CostValue>,
    /// The value if the source has no value.
    default: Option<Value>,
    /// Only for headers in telemetry: `allow` shows the value of a sensitive header, and `mask` never shows the
    /// value.
    redact: Option<Redact>,
}

/// The sources of a file, each with its value if it is written.
type Sources = Vec<Option<SelectorSource>>;

/// A flag that is false requires no value, so it is not a source.
fn flag(is_asked: Option<bool>, source: SelectorSource) -> Option<SelectorSource> {
    (is_asked == Some(true)).then_some(source)
}

impl SelectorFile {
    /// The sources about HTTP messages.
    fn of_http(&mut self) -> Sources {
        let header = |name: &mut Option<Written<http::HeaderName>>,
                      make: fn(http::HeaderName) -> SelectorSource| {
            name.take().map(|name| make(name.0))
        };
        let status = |form: Option<StatusForm>| {
            form.map(|form| match form {
                StatusForm::Code => SelectorSource::ResponseStatusCode,
                StatusForm::Reason => SelectorSource::ResponseStatusReason,
            })
        };
        let request = SelectorSource::RequestHeader;
        let response = SelectorSource::ResponseHeader;
        let supergraph = SelectorSource::SupergraphRequestHeader;
        vec![
            header(&mut self.request_header, request),
            // The subgraph stage has names of its own with the meaning of the plain names.
            header(&mut self.subgraph_request_header, request),
            header(&mut self.supergraph_request_header, supergraph),
            flag(self.request_method, SelectorSource::RequestMethod),
            header(&mut self.response_header, response),
            header(&mut self.subgraph_response_header, response),
            status(self.response_status),
            status(self.subgraph_response_status),
            flag(self.subgraph_resend_count, SelectorSource::ResendCount),
            flag(self.response_body, SelectorSource::ResponseBody),
            self.error.map(|_| SelectorSource::ErrorReason),
        ]
    }

    /// The sources about operations and their responses.
    fn of_graphql(&mut self) -> Sources {
        let name = |form: Option<NameForm>| {
            form.map(|form| match form {
                NameForm::String => SelectorSource::OperationName,
                NameForm::Hash => SelectorSource::OperationNameHash,
            })
        };
        let variable = SelectorSource::QueryVariable;
        let subgraph_variable = self.subgraph_query_variable.take();
        let mut sources = vec![
            name(self.operation_name),
            name(self.supergraph_operation_name),
            self.operation_kind.map(|_| SelectorSource::OperationKind),
            self.supergraph_operation_kind
                .map(|_| SelectorSource::OperationKind),
            self.query.map(QueryForm::source),
            self.supergraph_query.map(QueryForm::source),
            self.query_variable.take().map(variable),
            self.supergraph_query_variable.take().map(variable),
            self.subgraph_query.map(|_| SelectorSource::SubgraphQuery),
            subgraph_variable.map(SelectorSource::SubgraphQueryVariable),
            self.subgraph_operation_name
                .map(|_| SelectorSource::SubgraphOperationName),
            self.subgraph_operation_kind
                .map(|_| SelectorSource::SubgraphOperationKind),
            flag(self.on_graphql_error, SelectorSource::OnGraphqlError),
            flag(
                self.subgraph_on_graphql_error,
                SelectorSource::OnGraphqlError,
            ),
            flag(self.is_primary_response, SelectorSource::IsPrimaryResponse),
            flag(self.subgraph_name, SelectorSource::SubgraphName),
        ];
        for path in [&mut self.response_data, &mut self.subgraph_response_data] {
            sources.push(path.take().map(|it| SelectorSource::ResponseData(it.0)));
        }
        for path in [
            &mut self.response_errors,
            &mut self.subgraph_response_errors,
        ] {
            sources.push(path.take().map(|it| SelectorSource::ResponseErrors(it.0)));
        }
        sources
    }

    /// The sources outside of the messages.
    fn of_surroundings(&mut self) -> Sources {
        vec![
            self.request_context.take().map(SelectorSource::Context),
            self.response_context.take().map(SelectorSource::Context),
            self.env.take().map(SelectorSource::Environment),
            self.r#static.take().map(SelectorSource::Static),
            self.trace_id.map(SelectorSource::TraceId),
            self.baggage.take().map(SelectorSource::Baggage),
            self.cost.map(SelectorSource::Cost),
        ]
    }
}

impl TryFrom<SelectorFile> for Selector {
    type Error = &'static str;

    fn try_from(mut file: SelectorFile) -> Result<Self, Self::Error> {
        let sources = [file.of_http(), file.of_graphql(), file.of_surroundings()];
        let mut sources = sources.into_iter().flatten().flatten();
        // Two sources are enough to detect more than one.
        match (sources.next(), sources.next()) {
            (Some(source), None) if file.redact.is_some() && !source.is_header() => {
                Err("expected `redact` next to a header only; remove it")
            }
            (Some(source), None) => Ok(Self {
                source,
                default: file.default,
                redact: file.redact,
            }),
            _ => Err("expected exactly one source, such as `request_header: x-name`"),
        }
    }
}
