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
    pub source: Source,
    /// The value if the source has none.
    pub default: Option<Value>,
}

/// The source of a [`Selector`]'s value.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
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

impl Source {
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
    /// Always, or never.
    Always(bool),
    /// A test.
    Test(TestFile),
}

/// A test: exactly one of the keys.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
struct TestFile {
    /// Both are equal.
    #[schemars(length(min = 2, max = 2))]
    eq: Option<Vec<Operand>>,
    /// The first is greater than the second.
    #[schemars(length(min = 2, max = 2))]
    gt: Option<Vec<Operand>>,
    /// The first is less than the second.
    #[schemars(length(min = 2, max = 2))]
    lt: Option<Vec<Operand>>,
    /// There is such a value.
    exists: Option<Selector>,
    /// Each of them holds.
    all: Option<Vec<Condition>>,
    /// At least one of them holds.
    any: Option<Vec<Condition>>,
    /// It does not hold.
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

/// One side of a comparison: a text, a number, `true`, `false`, or a selector.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OperandFile {
    /// A value of the request or response.
    Selector(Selector),
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// `true` or `false`.
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

/// How a status is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusForm {
    /// As a number.
    Code,
    /// In words.
    Reason,
}

/// How the name of an operation is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NameForm {
    /// As it is.
    String,
    /// Its SHA-256.
    Hash,
}

/// A value of the request or response: exactly one source, and `default` if wanted.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SelectorFile {
    /// A header of the stage's request.
    request_header: Option<Written<http::HeaderName>>,
    /// A header of the subgraph request; the same as `request_header` at the subgraph stage.
    subgraph_request_header: Option<Written<http::HeaderName>>,
    /// A header of the client's request.
    supergraph_request_header: Option<Written<http::HeaderName>>,
    /// The method of the stage's request.
    request_method: Option<bool>,
    /// A header of the stage's response.
    response_header: Option<Written<http::HeaderName>>,
    /// A header of the subgraph's response; the same as `response_header` at the subgraph stage.
    subgraph_response_header: Option<Written<http::HeaderName>>,
    /// The status of the stage's response.
    response_status: Option<StatusForm>,
    /// The status of the subgraph's response; the same as `response_status` at the subgraph stage.
    subgraph_response_status: Option<StatusForm>,
    /// Whether the stage's response has GraphQL errors.
    on_graphql_error: Option<bool>,
    /// Whether the subgraph's response has GraphQL errors.
    subgraph_on_graphql_error: Option<bool>,
    /// The entry of the context under this key, at a request stage.
    request_context: Option<String>,
    /// The entry of the context under this key, at a response stage.
    response_context: Option<String>,
    /// The name of the operation.
    operation_name: Option<NameForm>,
    /// The name of the operation; the same as `operation_name`, by its name at the subgraph stage.
    supergraph_operation_name: Option<NameForm>,
    /// `query`, `mutation` or `subscription`.
    operation_kind: Option<NameForm>,
    /// `query`, `mutation` or `subscription`, of the client's operation; the same as `operation_kind`.
    supergraph_operation_kind: Option<NameForm>,
    /// The variable of the environment of this name.
    env: Option<String>,
    /// Whether this is the first part of the response.
    is_primary_response: Option<bool>,
    /// The name of the subgraph.
    subgraph_name: Option<bool>,
    /// A value of the file.
    r#static: Option<Value>,
    /// The value when the source has none.
    default: Option<Value>,
}

impl TryFrom<SelectorFile> for Selector {
    type Error = &'static str;

    fn try_from(file: SelectorFile) -> Result<Self, Self::Error> {
        let header = |name: Option<Written<http::HeaderName>>,
                      make: fn(http::HeaderName) -> Source| {
            name.map(|name| make(name.0))
        };
        let flag =
            // `request_method: false` requires no value, so it is not a source.
            |is_asked: Option<bool>, source: Source| (is_asked == Some(true)).then_some(source);
        let name = |form| match form {
            NameForm::String => Source::OperationName,
            NameForm::Hash => Source::OperationNameHash,
        };
        let status = |form: Option<StatusForm>| {
            form.map(|form| match form {
                StatusForm::Code => Source::ResponseStatusCode,
                StatusForm::Reason => Source::ResponseStatusReason,
            })
        };
        let mut sources = [
            header(file.request_header, Source::RequestHeader),
            // The subgraph stage has names of its own with the meaning of the plain names.
            header(file.subgraph_request_header, Source::RequestHeader),
            header(
                file.supergraph_request_header,
                Source::SupergraphRequestHeader,
            ),
            flag(file.request_method, Source::RequestMethod),
            header(file.response_header, Source::ResponseHeader),
            header(file.subgraph_response_header, Source::ResponseHeader),
            status(file.response_status),
            status(file.subgraph_response_status),
            flag(file.on_graphql_error, Source::OnGraphqlError),
            flag(file.subgraph_on_graphql_error, Source::OnGraphqlError),
            file.request_context.map(Source::Context),
            file.response_context.map(Source::Context),
            file.operation_name.map(name),
            file.supergraph_operation_name.map(name),
            file.operation_kind.map(|_| Source::OperationKind),
            file.supergraph_operation_kind
                .map(|_| Source::OperationKind),
            file.env.map(Source::Environment),
            flag(file.is_primary_response, Source::IsPrimaryResponse),
            flag(file.subgraph_name, Source::SubgraphName),
            file.r#static.map(Source::Static),
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
