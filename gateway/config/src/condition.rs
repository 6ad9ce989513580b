//! Conditions of coprocessor stages and of telemetry: `eq: [{request_header: x-a}, "b"]`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::selector::Selector;
use crate::written_as::written_as;

written_as! {
    Condition => ConditionFile,
    Operand => OperandFile,
}

/// The condition under which a stage runs, or under which telemetry records a value.
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
    /// A constant. It means always or never.
    Always(bool),
    /// A test of values.
    Test(Box<TestFile>),
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
        } = *test;
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
