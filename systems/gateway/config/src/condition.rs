//! Conditions of coprocessor stages: `eq: [{request_header: x-a}, "b"]`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::written::Written;
use crate::written_as::written_as;

written_as! {
    Condition => ConditionFile,
    Operand => OperandFile,
    Selector => SelectorFile,
}

/// The condition under which a stage runs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "ConditionFile")]
pub enum Condition {
    /// A constant, `true` or `false`.
    Always(bool),
    /// True if both operands are equal.
    Equal(Operand, Operand),
    /// True if the first operand is greater. The operands are numbers or texts.
    Greater(Operand, Operand),
    /// True if the first operand is less. The operands are numbers or texts.
    Less(Operand, Operand),
    /// True if the value exists.
    Exists(Selector),
    /// True if all conditions are true.
    All(Vec<Condition>),
    /// True if at least one condition is true.
    Any(Vec<Condition>),
    /// True if the condition is false.
    Not(Box<Condition>),
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "OperandFile")]
pub enum Operand {
    /// A constant from the file.
    Literal(Value),
    /// A value of the request or response.
    Selector(Selector),
}

/// A value to read, with its default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "SelectorFile")]
pub struct Selector {
    /// The source of the value.
    pub source: SelectorSource,
    /// The value if the source has none.
    pub default: Option<Value>,
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
}

impl SelectorSource {
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
        )
    }
}

impl Condition {
    /// All its selectors, in reading order.
    #[must_use]
    pub fn selectors(&self) -> Vec<&Selector> {
        match self {
            Self::Always(_) => Vec::new(),
            Self::Equal(one, other) | Self::Greater(one, other) | Self::Less(one, other) => {
                let sides = [one, other].into_iter();
                sides
                    .filter_map(|side| match side {
                        Operand::Selector(selector) => Some(selector),
                        Operand::Literal(_) => None,
                    })
                    .collect()
            }
            Self::Exists(selector) => vec![selector],
            Self::All(list) | Self::Any(list) => {
                list.iter().flat_map(Condition::selectors).collect()
            }
            Self::Not(inner) => inner.selectors(),
        }
    }
}

/// `true`, `false`, or one of the tests.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ConditionFile {
    /// A constant. The stage runs always or never.
    Always(bool),
    /// A test of values.
    Test(TestFile),
}

/// A test, with exactly one of these keys.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
struct TestFile {
    /// True if both values are equal.
    #[schemars(length(min = 2, max = 2))]
    eq: Option<Vec<Operand>>,
    /// True if the first value is greater than the second.
    #[schemars(length(min = 2, max = 2))]
    gt: Option<Vec<Operand>>,
    /// True if the first value is less than the second.
    #[schemars(length(min = 2, max = 2))]
    lt: Option<Vec<Operand>>,
    /// True if the value exists.
    exists: Option<Selector>,
    /// True if all conditions are true.
    all: Option<Vec<Condition>>,
    /// True if at least one condition is true.
    any: Option<Vec<Condition>>,
    /// True if the condition is false.
    not: Option<Box<Condition>>,
}

impl TryFrom<ConditionFile> for Condition {
    type Error = &'static str;

    fn try_from(file: ConditionFile) -> Result<Self, Self::Error> {
        let test = match file {
            ConditionFile::Always(value) => return Ok(Self::Always(value)),
            ConditionFile::Test(test) => test,
        };
        // The schema checks the number of operands, but only for files that are read through it.
        let pair = |sides: Vec<Operand>| -> Result<(Operand, Operand), Self::Error> {
            let [one, other] =
                <[Operand; 2]>::try_from(sides).map_err(|_| "expected a list of two values")?;
            Ok((one, other))
        };
        let TestFile {
            eq,
            gt,
            lt,
            exists,
            all,
            any,
            not,
        } = test;
        Ok(match (eq, gt, lt, exists, all, any, not) {
            (Some(sides), None, None, None, None, None, None) => {
                let (one, other) = pair(sides)?;
                Self::Equal(one, other)
            }
            (None, Some(sides), None, None, None, None, None) => {
                let (one, other) = pair(sides)?;
                Self::Greater(one, other)
            }
            (None, None, Some(sides), None, None, None, None) => {
                let (one, other) = pair(sides)?;
                Self::Less(one, other)
            }
            (None, None, None, Some(selector), None, None, None) => Self::Exists(selector),
            (None, None, None, None, Some(list), None, None) => Self::All(list),
            (None, None, None, None, None, Some(list), None) => Self::Any(list),
            (None, None, None, None, None, None, Some(inner)) => Self::Not(inner),
            _ => {
                return Err(
                    "expected exactly one of `eq`, `gt`, `lt`, `exists`, `all`, `any`, `not`",
                );
            }
        })
    }
}

/// One side of a comparison. It is a text, a number, `true`, `false`, or a selector.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OperandFile {
    /// A value of the request or response.
    Selector(Selector),
    /// A text from the file.
    Text(String),
    /// A whole number from the file.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// `true` or `false` from the file.
    Bool(bool),
}

impl From<OperandFile> for Operand {
    fn from(file: OperandFile) -> Self {
        match file {
            OperandFile::Selector(selector) => Self::Selector(selector),
            OperandFile::Text(text) => Self::Literal(text.into()),
            // `untagged` tries its forms in order. With floats first, `1` would become `1.0`.
            OperandFile::Integer(number) => Self::Literal(number.into()),
            OperandFile::Number(number) => Self::Literal(number.into()),
            OperandFile::Bool(value) => Self::Literal(value.into()),
        }
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

/// A value of the request or response. It has exactly one source and an optional `default`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SelectorFile {
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
    /// The value if the source has no value.
    default: Option<Value>,
}

impl TryFrom<SelectorFile> for Selector {
    type Error = &'static str;

    fn try_from(file: SelectorFile) -> Result<Self, Self::Error> {
        let header = |name: Option<Written<http::HeaderName>>,
                      make: fn(http::HeaderName) -> SelectorSource| {
            name.map(|name| make(name.0))
        };
        let flag =
            // `request_method: false` requires no value, so it is not a source.
            |is_asked: Option<bool>, source: SelectorSource| (is_asked == Some(true)).then_some(source);
        let name = |form| match form {
            NameForm::String => SelectorSource::OperationName,
            NameForm::Hash => SelectorSource::OperationNameHash,
        };
        let status = |form: Option<StatusForm>| {
            form.map(|form| match form {
                StatusForm::Code => SelectorSource::ResponseStatusCode,
                StatusForm::Reason => SelectorSource::ResponseStatusReason,
            })
        };
        let mut sources = [
            header(file.request_header, SelectorSource::RequestHeader),
            // The subgraph stage has names of its own with the meaning of the plain names.
            header(file.subgraph_request_header, SelectorSource::RequestHeader),
            header(
                file.supergraph_request_header,
                SelectorSource::SupergraphRequestHeader,
            ),
            flag(file.request_method, SelectorSource::RequestMethod),
            header(file.response_header, SelectorSource::ResponseHeader),
            header(
                file.subgraph_response_header,
                SelectorSource::ResponseHeader,
            ),
            status(file.response_status),
            status(file.subgraph_response_status),
            flag(file.on_graphql_error, SelectorSource::OnGraphqlError),
            flag(
                file.subgraph_on_graphql_error,
                SelectorSource::OnGraphqlError,
            ),
            file.request_context.map(SelectorSource::Context),
            file.response_context.map(SelectorSource::Context),
            file.operation_name.map(name),
            file.supergraph_operation_name.map(name),
            file.operation_kind.map(|_| SelectorSource::OperationKind),
            file.supergraph_operation_kind
                .map(|_| SelectorSource::OperationKind),
            file.env.map(SelectorSource::Environment),
            flag(file.is_primary_response, SelectorSource::IsPrimaryResponse),
            flag(file.subgraph_name, SelectorSource::SubgraphName),
            file.r#static.map(SelectorSource::Static),
        ]
        .into_iter()
        .flatten();
        // Two sources are enough to detect more than one.
        match (sources.next(), sources.next()) {
            (Some(source), None) => Ok(Self {
                source,
                default: file.default,
            }),
            _ => Err("expected exactly one source, such as `request_header: x-name`"),
        }
    }
}
