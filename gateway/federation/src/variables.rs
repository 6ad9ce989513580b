//! Checks the variables of a request against the declarations of the operation.
//!
//! The gateway checks the values but does not convert them. A subgraph coerces by the same rules, so it
//! receives each value as the client wrote it. The messages equal the messages of graphql-js.

use std::ops::Range;

use graphql_tools::parser::query::Value as Literal;
use graphql_tools::parser::schema::{InputObjectType, Type};

use crate::error::GraphqlError;
use crate::schema::{Named, Schema, TypeText};
use crate::store::{ObjectId, Store, Value};

/// A variable declaration of the operation.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) kind: TypeText,
    /// The default, if it is a Boolean, because the gateway evaluates conditions. Subgraphs receive all
    /// defaults with the declaration.
    pub(crate) boolean_default: Option<bool>,
    /// The default as JSON, for introspection arguments.
    pub(crate) default: Option<Literal<'static, String>>,
}

/// The checked variables of one request.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    text: Vec<u8>,
    /// Ranges in the JSON text, by position in the operation's declarations.
    values: Vec<Option<Range<usize>>>,
}

impl Variables {
    /// The JSON of a variable from the client.
    #[must_use]
    pub fn json(&self, index: usize) -> Option<&[u8]> {
        let range = self.values.get(index)?.clone()?;
        self.text.get(range)
    }
}

/// Checks `raw`, the JSON text of the request's `variables`.
pub(crate) fn coerce(
    declared: &[Declared],
    raw: Option<&[u8]>,
    schema: &Schema,
) -> Result<Variables, Vec<GraphqlError>> {
    // Variables without a declaration are ignored without reading them, as in graphql-js.
    if declared.is_empty() {
        return Ok(Variables::default());
    }
    let mut store = Store::default();
    let given = given_object(&mut store, raw).map_err(|error| vec![error])?;
    let mut errors = Vec::new();
    let mut variables = Variables::default();
    for variable in declared {
        let value = given.and_then(|given| store.get(given, variable.name.as_bytes()));
        // All variables are checked before the request is refused. So the client receives all mistakes in one
        // response.
        if let Some(message) = problem(variable, value, schema, &store) {
            let error = GraphqlError::new(message, "VALIDATION_INVALID_TYPE_VARIABLE");
            errors.push(error.with("name", variable.name.as_str()));
        }
        variables.values.push(value.map(|value| {
            let start = variables.text.len();
            store.write(value, &mut variables.text);
            start..variables.text.len()
        }));
    }
    if errors.is_empty() {
        Ok(variables)
    } else {
        Err(errors)
    }
}

fn given_object(store: &mut Store, raw: Option<&[u8]>) -> Result<Option<ObjectId>, GraphqlError> {
    let refused = |details: String| {
        GraphqlError::new("Invalid GraphQL request", "INVALID_GRAPHQL_REQUEST")
            .with("details", details)
    };
    match raw.map(|raw| store.parse(raw)) {
        None | Some(Ok(Value::Null)) => Ok(None),
        Some(Ok(Value::Object(object))) => Ok(Some(object)),
        Some(Ok(_)) => Err(refused("`variables` must be an object".to_owned())),
        Some(Err(malformed)) => Err(refused(format!("`variables`: {}", malformed.0))),
    }
}

fn problem(
    variable: &Declared,
    value: Option<Value>,
    schema: &Schema,
    store: &Store,
) -> Option<String> {
    let Declared { name, kind, .. } = variable;
    let required = matches!(kind, Type::NonNullType(_));
    match value {
        None if required && variable.default.is_none() => Some(format!(
            "Variable \"${name}\" of required type \"{kind}\" was not provided."
        )),
        None => None,
        Some(Value::Null) if required => Some(format!(
            "Variable \"${name}\" of non-null type \"{kind}\" must not be null."
        )),
        Some(value) => {
            let mut checker = Checker {
                schema,
                store,
                path: Vec::new(),
            };
            let reason = checker.check(kind, value).err()?;
            let place = if checker.path.is_empty() {
                String::new()
            } else {
                format!(" at \"{name}{}\"", checker.path.concat())
            };
            Some(format!(
                "Variable \"${name}\" got invalid value {}{place}; {}",
                reason.value, reason.message
            ))
        }
    }
}

/// Reason why a value does not fit its type.
struct Misfit {
    value: String,
    message: String,
}

struct Checker<'a> {
    schema: &'a Schema,
    store: &'a Store,
    /// Path to the current value. A successful check removes its segments. A failed check leaves them for the
    /// message.
    path: Vec<String>,
}

impl Checker<'_> {
    fn shown(&self, value: Value) -> String {
        const SHOWN_MAX: usize = 200;
        let mut out = Vec::new();
        self.store.write(value, &mut out);
        let text = String::from_utf8_lossy(&out);
        // By characters, because a cut inside a character would be invalid UTF-8.
        if text.chars().count() > SHOWN_MAX {
            let cut: String = text.chars().take(SHOWN_MAX).collect();
            format!("{cut}…")
        } else {
            text.into_owned()
        }
    }

    fn misfit(&self, value: Value, message: impl Into<String>) -> Misfit {
        Misfit {
            value: self.shown(value),
            message: message.into(),
        }
    }

    fn check(&mut self, kind: &TypeText, value: Value) -> Result<(), Misfit> {
        match (kind, value) {
            (Type::NonNullType(_), Value::Null) => Err(self.misfit(
                value,
                format!("Expected non-nullable type \"{kind}\" not to be null."),
            )),
            (Type::NonNullType(inner), _) => self.check(inner, value),
            (_, Value::Null) => Ok(()),
            (Type::ListType(inner), Value::List(list)) => {
                for (index, item) in self.store.items(list).iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    self.check(inner, *item)?;
                    self.path.pop();
                }
                Ok(())
            }
            // A single value counts as a list with one item.
            (Type::ListType(inner), _) => self.check(inner, value),
            (Type::NamedType(name), _) => self.check_named(name, value),
        }
    }

    fn check_named(&mut self, name: &str, value: Value) -> Result<(), Misfit> {
        match self.schema.named(name) {
            Some(Named::Scalar(_)) => match scalar_problem(name, value, self.store) {
                None => Ok(()),
                Some(problem) => {
                    let shown = self.shown(value);
                    Err(self.misfit(value, format!("{problem}: {shown}")))
                }
            },
            Some(Named::Enum(kind)) => match value {
                Value::String(text) => {
                    let text = String::from_utf8_lossy(self.store.text(text));
                    if kind.values.iter().any(|known| known.name == text) {
                        return Ok(());
                    }
                    let message = format!("Value \"{text}\" does not exist in \"{name}\" enum.");
                    Err(self.misfit(value, message))
                }
                _ => {
                    let shown = self.shown(value);
                    let message =
                        format!("Enum \"{name}\" cannot represent non-string value: {shown}.");
                    Err(self.misfit(value, message))
                }
            },
            Some(Named::Input(kind)) => match value {
                Value::Object(object) => self.check_input(kind, object),
                _ => {
                    let message = format!("Expected type \"{name}\" to be an object.");
                    Err(self.misfit(value, message))
                }
            },
            // Validation has already refused variables of output types.
            _ => Ok(()),
        }
    }

    fn check_input(
        &mut self,
        kind: &InputObjectType<'static, String>,
        object: ObjectId,
    ) -> Result<(), Misfit> {
        let whole = Value::Object(object);
        for field in &kind.fields {
            match self.store.get(object, field.name.as_bytes()) {
                Some(value) => {
                    self.path.push(format!(".{}", field.name));
                    self.check(&field.value_type, value)?;
                    self.path.pop();
                }
                None if matches!(field.value_type, Type::NonNullType(_))
                    && field.default_value.is_none() =>
                {
                    let message = format!(
                        "Field \"{}\" of required type \"{}\" was not provided.",
                        field.name, field.value_type
                    );
                    return Err(self.misfit(whole, message));
                }
                None => {}
            }
        }
        // Unknown keys are checked after the declared keys, as in graphql-js. Only the first mistake is
        // reported.
        let members = self.store.own_members(object);
        for member in members {
            let key = String::from_utf8_lossy(self.store.text(member.key));
            if !kind.fields.iter().any(|field| field.name == key) {
                let message = format!("Field \"{key}\" is not defined by type \"{}\".", kind.name);
                return Err(self.misfit(whole, message));
            }
        }
        // A single key with null does not specify a value.
        let one_of = kind.directives.iter().any(|it| it.name == "oneOf");
        if one_of && (members.len() != 1 || members.iter().any(|it| it.value == Value::Null)) {
            let message = format!(
                "Exactly one key must be specified for OneOf type \"{}\".",
                kind.name
            );
            return Err(self.misfit(whole, message));
        }
        Ok(())
    }
}

fn scalar_problem(name: &str, value: Value, store: &Store) -> Option<&'static str> {
    match (name, value) {
        ("Int", Value::Number(text)) => match int_of(store.text(text)) {
            IntText::Fits => None,
            IntText::TooLarge => Some("Int cannot represent non 32-bit signed integer value"),
            IntText::Fraction => Some("Int cannot represent non-integer value"),
        },
        ("Int", _) => Some("Int cannot represent non-integer value"),
        ("Float", Value::Number(_))
        | ("String", Value::String(_))
        | ("Boolean", Value::Bool(_))
        | ("ID", Value::String(_)) => None,
        ("ID", Value::Number(text)) if int_of(store.text(text)) != IntText::Fraction => None,
        ("Float", _) => Some("Float cannot represent non numeric value"),
        ("String", _) => Some("String cannot represent a non string value"),
        ("Boolean", _) => Some("Boolean cannot represent a non boolean value"),
        ("ID", _) => Some("ID cannot represent value"),
        _ => None,
    }
}

/// Result of reading a JSON number as `Int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntText {
    Fits,
    TooLarge,
    Fraction,
}

/// Checks that a JSON number is an `Int`. `1.0` and `1e3` are whole numbers, too.
pub(crate) fn int_of(text: &[u8]) -> IntText {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    // Nine digits always fit into 32 bits. Few numbers have more, so most numbers are never parsed.
    if digits.iter().all(u8::is_ascii_digit) {
        if digits.len() < 10 {
            return IntText::Fits;
        }
        let parsed = std::str::from_utf8(text)
            .ok()
            .and_then(|it| it.parse::<i32>().ok());
        return match parsed {
            Some(_) => IntText::Fits,
            None => IntText::TooLarge,
        };
    }
    // A 64-bit float represents every 32-bit integer exactly. So `1.0` and `1e3` give correct results.
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|it| it.parse::<f64>().ok());
    match parsed {
        Some(number) if number.fract() != 0.0 => IntText::Fraction,
        Some(number) if number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX) => {
            IntText::Fits
        }
        _ => IntText::TooLarge,
    }
}

/// The digits of an `Int` that has a fraction or an exponent in JSON, such as `1.0`. `None` if the JSON number
/// has only digits.
pub(crate) fn digits_of_int(text: &[u8]) -> Option<String> {
    let is_plain = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    if text.iter().all(is_plain) {
        return None;
    }
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    // The sum of `-0.0` and `0.0` is `0.0`, and an `Int` has no negative zero.
    Some(format!("{:.0}", number + 0.0))
}
