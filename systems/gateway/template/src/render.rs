//! From a template and what it may see to a value.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::Template;
use crate::expression::{Node, Operator, Step, Target};
use crate::json::Json;
use crate::number;

/// Why a template has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub(crate) String);

pub(crate) type Value<'a> = Cow<'a, Json<'a>>;
pub(crate) type Rendered<'a> = Result<Value<'a>, RenderError>;

pub(crate) fn wrong<T>(message: impl Into<String>) -> Result<T, RenderError> {
    Err(RenderError(message.into()))
}

/// What a template may see: variables by name, with their `$`.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    variables: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Scope<'a> {
    /// Lets templates see a value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: &'a Json<'a>) -> Self {
        self.variables
            .push((Cow::Borrowed(name), Cow::Borrowed(value)));
        self
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value<'a>> {
        // From the back: an inner loop's variable hides an outer one of the same name.
        let mut found = self.variables.iter().rev();
        found.find(|(known, _)| known == name).map(|(_, it)| it)
    }
}

impl Template {
    /// The value of the template.
    ///
    /// # Errors
    /// When the template asks for something that is not there, without a `?`, or does with a value
    /// what cannot be done with it.
    pub fn render<'a>(&self, scope: &Scope<'a>) -> Result<Cow<'a, Json<'a>>, RenderError> {
        // A copy of a few references: loops push their variables, and the caller's scope must not
        // change.
        let mut scope = scope.clone();
        render(&self.node, &mut scope)
    }

    /// The value as text; `None` when it is null.
    ///
    /// # Errors
    /// As [`Template::render`], and when the value is a list or an object.
    pub fn render_text(&self, scope: &Scope<'_>) -> Result<Option<String>, RenderError> {
        let mut scope = scope.clone();
        let value = render(&self.node, &mut scope)?;
        if *value == Json::Null {
            return Ok(None);
        }
        let mut text = String::new();
        append(&value, &mut text)?;
        Ok(Some(text))
    }
}

fn owned<'a>(value: Json<'a>) -> Rendered<'a> {
    Ok(Cow::Owned(value))
}

pub(crate) fn render<'a>(node: &Node, scope: &mut Scope<'a>) -> Rendered<'a> {
    match node {
        Node::Null => owned(Json::Null),
        Node::Bool(flag) => owned(Json::Bool(*flag)),
        Node::Number(digits) => owned(Json::Number(digits.clone().into())),
        Node::Plain(text) => owned(Json::Text(text.clone().into())),
        Node::Text(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    Node::Plain(plain) => text.push_str(plain),
                    other => append(&*render(other, scope)?, &mut text)?,
                }
            }
            owned(Json::Text(text.into()))
        }
        Node::List(items) => {
            let items = items
                .iter()
                .map(|item| Ok(render(item, scope)?.into_owned()));
            owned(Json::List(items.collect::<Result<_, RenderError>>()?))
        }
        Node::Object(members) => {
            let mut object = Vec::with_capacity(members.len());
            for (key, value) in members {
                let mut name = String::new();
                append(&*render(key, scope)?, &mut name)?;
                object.push((name.into(), render(value, scope)?.into_owned()));
            }
            owned(Json::Object(object))
        }
        Node::Path { variable, steps } => path(variable, steps, scope),
        // Only null has a default: what is missing without a `?` is an error before it gets here.
        Node::Default(left, right) => match render(left, scope)? {
            value if *value == Json::Null => render(right, scope),
            value => Ok(value),
        },
        Node::Binary(operator, left, right) => binary(*operator, left, right, scope),
        Node::Call(function, arguments) => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(render(argument, scope)?);
            }
            function.apply(values, scope)
        }
        Node::If {
            branches,
            otherwise,
        } => {
            for (condition, branch) in branches {
                if truth(&*render(condition, scope)?, "a condition")? {
                    return render(branch, scope);
                }
            }
            render(otherwise, scope)
        }
        Node::Range { .. } => range(node, scope),
    }
}

/// Puts a value behind a text.
fn append(value: &Json<'_>, text: &mut String) -> Result<(), RenderError> {
    match value {
        Json::Text(inner) => text.push_str(inner),
        Json::Number(digits) => text.push_str(digits),
        Json::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Json::Null => text.push_str("null"),
        Json::List(_) | Json::Object(_) => {
            return wrong(format!("{} cannot be part of a text", value.kind()));
        }
    }
    Ok(())
}

pub(crate) fn truth(value: &Json<'_>, what: &str) -> Result<bool, RenderError> {
    match value {
        Json::Bool(flag) => Ok(*flag),
        other => wrong(format!("{what} must be a boolean, found {}", other.kind())),
    }
}

fn range<'a>(node: &Node, scope: &mut Scope<'a>) -> Rendered<'a> {
    let Node::Range {
        index,
        item,
        over,
        body,
    } = node
    else {
        unreachable!("the caller has seen that it is a range");
    };
    let items: Vec<Value<'a>> = match render(over, scope)? {
        // Borrowed items stay borrowed, so a loop over the payload copies nothing.
        Cow::Borrowed(Json::List(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Owned(Json::List(items)) => items.into_iter().map(Cow::Owned).collect(),
        other => {
            return wrong(format!(
                "a range goes over an array, found {}",
                other.kind()
            ));
        }
    };
    let known = scope.variables.len();
    let mut made = Vec::with_capacity(items.len());
    for (position, value) in items.into_iter().enumerate() {
        if let Some(name) = index {
            let position = Json::Number(position.to_string().into());
            let entry = (Cow::Owned(name.clone()), Cow::Owned(position));
            scope.variables.push(entry);
        }
        if let Some(name) = item {
            scope.variables.push((Cow::Owned(name.clone()), value));
        }
        let outcome = render(body, scope);
        // Also after an error, before it is returned, or the next use of the scope would see the
        // loop's variables.
        scope.variables.truncate(known);
        made.push(outcome?.into_owned());
    }
    owned(Json::List(made))
}

fn path<'a>(variable: &str, steps: &[Step], scope: &mut Scope<'a>) -> Rendered<'a> {
    let Some(value) = scope.variable(variable) else {
        return wrong(format!("there is no variable `{variable}`"));
    };
    // A borrowed value is copied as a reference; only what a loop has made is copied whole.
    let mut value = value.clone();
    let mut shown = variable.to_owned();
    let mut is_optional = false;
    for step in steps {
        // One `?` covers the rest of the path: what lies behind something missing is missing as
        // well.
        is_optional |= step.is_optional;
        let key = match &step.to {
            Target::Key(key) => Json::Text(key.as_str().into()),
            Target::Computed(node) => render(node, scope)?.into_owned(),
        };
        match descend(value, &key) {
            Some(next) => value = next,
            None if is_optional => return owned(Json::Null),
            None => {
                let key = String::from_utf8_lossy(&key.to_bytes()).into_owned();
                return wrong(format!(
                    "`{shown}` has no {key}; write `?.` or `?[…]` where it may be missing"
                ));
            }
        }
        match &step.to {
            Target::Key(key) => {
                shown.push('.');
                shown.push_str(key);
            }
            Target::Computed(_) => shown.push_str("[…]"),
        }
    }
    Ok(value)
}

fn descend<'a>(value: Value<'a>, key: &Json<'_>) -> Option<Value<'a>> {
    match (value, key) {
        (Cow::Borrowed(Json::Object(members)), Json::Text(key)) => members
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| Cow::Borrowed(value)),
        (Cow::Owned(Json::Object(members)), Json::Text(key)) => members
            .into_iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| Cow::Owned(value)),
        (Cow::Borrowed(Json::List(items)), Json::Number(index)) => {
            items.get(index.parse::<usize>().ok()?).map(Cow::Borrowed)
        }
        (Cow::Owned(Json::List(items)), Json::Number(index)) => items
            .into_iter()
            .nth(index.parse::<usize>().ok()?)
            .map(Cow::Owned),
        _ => None,
    }
}

fn binary<'a>(
    operator: Operator,
    left: &Node,
    right: &Node,
    scope: &mut Scope<'a>,
) -> Rendered<'a> {
    let left = render(left, scope)?;
    // The right side is not rendered if the left decides: it may be something that is missing then.
    let decided = match operator {
        Operator::Or => Some(truth(&left, "what `||` joins")?).filter(|it| *it),
        Operator::And => Some(truth(&left, "what `&&` joins")?).filter(|it| !*it),
        _ => None,
    };
    if let Some(flag) = decided {
        return owned(Json::Bool(flag));
    }
    let right = render(right, scope)?;
    let is_true = match operator {
        Operator::Or => truth(&right, "what `||` joins")?,
        Operator::And => truth(&right, "what `&&` joins")?,
        Operator::Equal => equal(&left, &right),
        Operator::Unequal => !equal(&left, &right),
        Operator::Less => order(&left, &right)? == Ordering::Less,
        Operator::Greater => order(&left, &right)? == Ordering::Greater,
        Operator::AtMost => order(&left, &right)? != Ordering::Greater,
        Operator::AtLeast => order(&left, &right)? != Ordering::Less,
        Operator::In => match (&*left, &*right) {
            (value, Json::List(items)) => items.iter().any(|item| equal(value, item)),
            (Json::Text(key), object @ Json::Object(_)) => object.get(key).is_some(),
            (_, other) => {
                return wrong(format!(
                    "`in` looks into an array or for a key in an object, found {}",
                    other.kind()
                ));
            }
        },
    };
    owned(Json::Bool(is_true))
}

/// Equality, in which `1` and `1.0` are the same number.
fn equal(left: &Json<'_>, right: &Json<'_>) -> bool {
    match (left, right) {
        (Json::Number(a), Json::Number(b)) => number::compare(a, b) == Ordering::Equal,
        (Json::List(a), Json::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Json::Object(a), Json::Object(_)) => {
            let Json::Object(others) = right else {
                return false;
            };
            a.len() == others.len()
                && a.iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

fn order(left: &Json<'_>, right: &Json<'_>) -> Result<Ordering, RenderError> {
    let ordering = match (left, right) {
        (Json::Number(a), Json::Number(b)) => Some(number::compare(a, b)),
        (Json::Text(a), Json::Text(b)) => Some(a.cmp(b)),
        (Json::Bool(a), Json::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    };
    match ordering {
        Some(ordering) => Ok(ordering),
        None => wrong(format!(
            "{} and {} have no order",
            left.kind(),
            right.kind()
        )),
    }
}
