//! Renders a template with its input to a value.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use crate::Template;
use crate::expression::{Node, Operator, Step, Target};
use crate::json::Json;
use crate::number;
use crate::rendered::{RenderError, Rendered, Value, truth, wrong};
use crate::scope::Scope;
use crate::work::Work;

impl Template {
    /// Renders the template.
    ///
    /// # Errors
    /// A value is missing without a `?`, an operation does not apply to a value, or the work limit is
    /// exceeded.
    pub fn render<'a>(&self, scope: &Scope<'a>) -> Result<Cow<'a, Json<'a>>, RenderError> {
        // Copies a few references. Loops push their variables, and the caller's scope must not change.
        let mut scope = scope.clone();
        render(&self.node, &mut scope)
    }

    /// Renders the template as text. `None` if the value is null.
    ///
    /// # Errors
    /// As [`Template::render`].
    pub fn render_text(&self, scope: &Scope<'_>) -> Result<Option<String>, RenderError> {
        let mut scope = scope.clone();
        let value = render(&self.node, &mut scope)?;
        if *value == Json::Null {
            return Ok(None);
        }
        let mut text = String::new();
        append(&value, &mut text, scope.work)?;
        Ok(Some(text))
    }
}

fn owned<'a>(value: Json<'a>) -> Rendered<'a> {
    Ok(Cow::Owned(value))
}

pub(crate) fn render<'a>(node: &Node, scope: &mut Scope<'a>) -> Rendered<'a> {
    let work = scope.work;
    work.spend_values(1)?;
    match node {
        Node::Null => owned(Json::Null),
        Node::Bool(flag) => owned(Json::Bool(*flag)),
        Node::Number(digits) => {
            work.spend(digits.len())?;
            owned(Json::Number(digits.clone().into()))
        }
        Node::Plain(text) => {
            work.spend(text.len())?;
            owned(Json::Text(text.clone().into()))
        }
        Node::Text(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    Node::Plain(plain) => push(plain, &mut text, work)?,
                    other => append(&*render(other, scope)?, &mut text, work)?,
                }
            }
            owned(Json::Text(text.into()))
        }
        Node::List(items) => {
            let items = items.iter().map(|item| work.own(render(item, scope)?));
            owned(Json::List(items.collect::<Result<_, RenderError>>()?))
        }
        Node::Object(members) => {
            let mut object = Vec::with_capacity(members.len());
            for (key, value) in members {
                let mut name = String::new();
                append(&*render(key, scope)?, &mut name, work)?;
                object.push((name.into(), work.own(render(value, scope)?)?));
            }
            owned(Json::Object(object))
        }
        Node::Path {
            variable,
            may_be_missing,
            ..
        } if *may_be_missing && scope.variable(variable).is_none() => owned(Json::Null),
        Node::Path {
            variable, steps, ..
        } => path(variable, steps, scope),
        // Only null has a default. A missing value without a `?` is an error before this point.
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

fn push(part: &str, text: &mut String, work: &Work) -> Result<(), RenderError> {
    work.spend(part.len())?;
    text.push_str(part);
    Ok(())
}

/// Appends a value to a text. A list and an object are written as JSON.
fn append(value: &Json<'_>, text: &mut String, work: &Work) -> Result<(), RenderError> {
    match value {
        Json::Text(part) | Json::Number(part) => push(part, text, work)?,
        Json::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Json::Null => text.push_str("null"),
        Json::List(_) | Json::Object(_) => {
            work.see(value)?;
            text.push_str(&String::from_utf8_lossy(&value.to_bytes()));
        }
    }
    Ok(())
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
    let work = scope.work;
    let items: Vec<Value<'a>> = match render(over, scope)? {
        // Borrowed items stay borrowed, so a loop over the payload copies no data.
        Cow::Borrowed(Json::List(items)) => {
            work.spend_values(items.len())?;
            items.iter().map(Cow::Borrowed).collect()
        }
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
        // Runs also after an error, before it is returned. Otherwise the next use of the scope would find the
        // loop's variables.
        scope.variables.truncate(known);
        made.push(work.own(outcome?)?);
    }
    owned(Json::List(made))
}

fn path<'a>(variable: &str, steps: &[Step], scope: &mut Scope<'a>) -> Rendered<'a> {
    let Some(value) = scope.variable(variable) else {
        return wrong(format!("there is no variable `{variable}`"));
    };
    // A borrowed value is copied as a reference. Only a value that a loop made is copied whole.
    if let Cow::Owned(value) = value {
        scope.work.see(value)?;
    }
    let mut value = value.clone();
    let mut shown = variable.to_owned();
    let mut is_optional = false;
    for step in steps {
        // One `?` covers the rest of the path, because all values below a missing value are also missing.
        is_optional |= step.is_optional;
        let key = match &step.to {
            Target::Key(key) => Json::Text(key.as_str().into()),
            Target::Computed(node) => scope.work.own(render(node, scope)?)?,
        };
        match descend(value, &key, scope.work)? {
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

fn descend<'a>(
    value: Value<'a>,
    key: &Json<'_>,
    work: &Work,
) -> Result<Option<Value<'a>>, RenderError> {
    let found = match (value, key) {
        (Cow::Borrowed(Json::Object(members)), Json::Text(key)) => {
            let at = position(members, key, work)?;
            at.map(|at| Cow::Borrowed(&members[at].1))
        }
        (Cow::Owned(Json::Object(mut members)), Json::Text(key)) => {
            let at = position(&members, key, work)?;
            at.map(|at| Cow::Owned(members.swap_remove(at).1))
        }
        (Cow::Borrowed(Json::List(items)), Json::Number(index)) => {
            let at = index.parse::<usize>().ok();
            at.and_then(|at| items.get(at)).map(Cow::Borrowed)
        }
        (Cow::Owned(Json::List(items)), Json::Number(index)) => {
            let at = index.parse::<usize>().ok();
            at.and_then(|at| items.into_iter().nth(at)).map(Cow::Owned)
        }
        _ => None,
    };
    Ok(found)
}

/// Position of a member. The members before it count as read.
fn position(
    members: &[(Cow<'_, str>, Json<'_>)],
    key: &str,
    work: &Work,
) -> Result<Option<usize>, RenderError> {
    let at = members.iter().position(|(name, _)| name == key);
    work.spend(at.unwrap_or(members.len()))?;
    Ok(at)
}

fn binary<'a>(
    operator: Operator,
    left: &Node,
    right: &Node,
    scope: &mut Scope<'a>,
) -> Rendered<'a> {
    let work = scope.work;
    let left = render(left, scope)?;
    // The right side is not rendered if the left decides, because a value may be missing there.
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
        Operator::Equal => equal(&left, &right, work)?,
        Operator::Unequal => !equal(&left, &right, work)?,
        Operator::Less => order(&left, &right, work)? == Ordering::Less,
        Operator::Greater => order(&left, &right, work)? == Ordering::Greater,
        Operator::AtMost => order(&left, &right, work)? != Ordering::Greater,
        Operator::AtLeast => order(&left, &right, work)? != Ordering::Less,
        Operator::In => match (&*left, &*right) {
            (value, Json::List(items)) => any(items.iter().map(|item| equal(value, item, work)))?,
            (Json::Text(key), Json::Object(members)) => position(members, key, work)?.is_some(),
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

/// Compares two values. `1` and `1.0` are equal.
fn equal(left: &Json<'_>, right: &Json<'_>, work: &Work) -> Result<bool, RenderError> {
    work.spend_values(1)?;
    if let Some(order) = scalars(left, right, work)? {
        return Ok(order.is_eq());
    }
    match (left, right) {
        (Json::List(a), Json::List(b)) if a.len() == b.len() => {
            all(a.iter().zip(b).map(|(a, b)| equal(a, b, work)))
        }
        (Json::Object(a), Json::Object(b)) if a.len() == b.len() => {
            // A table, because objects of a client can have any number of members.
            work.spend_values(b.len())?;
            // From the back, so that the first of several equal keys is found, as in `get`.
            let table = b.iter().rev().map(|(key, value)| (&**key, value));
            let table: HashMap<&str, &Json<'_>> = table.collect();
            all(a.iter().map(|(key, value)| match table.get(&**key) {
                Some(other) => equal(value, other, work),
                None => Ok(false),
            }))
        }
        (Json::List(_), Json::List(_)) | (Json::Object(_), Json::Object(_)) => Ok(false),
        _ => Ok(left == right),
    }
}

fn any(mut outcomes: impl Iterator<Item = Result<bool, RenderError>>) -> Result<bool, RenderError> {
    // An error also decides. It is found first and returned.
    let decided = outcomes.find(|outcome| !matches!(outcome, Ok(false)));
    decided.unwrap_or(Ok(false))
}

fn all(mut outcomes: impl Iterator<Item = Result<bool, RenderError>>) -> Result<bool, RenderError> {
    let decided = outcomes.find(|outcome| !matches!(outcome, Ok(true)));
    decided.unwrap_or(Ok(true))
}

fn order(left: &Json<'_>, right: &Json<'_>, work: &Work) -> Result<Ordering, RenderError> {
    match scalars(left, right, work)? {
        Some(order) => Ok(order),
        None => wrong(format!(
            "{} and {} have no order",
            left.kind(),
            right.kind()
        )),
    }
}

/// Compares two numbers, two strings or two booleans. `None` for other values.
fn scalars(
    left: &Json<'_>,
    right: &Json<'_>,
    work: &Work,
) -> Result<Option<Ordering>, RenderError> {
    Ok(match (left, right) {
        (Json::Number(a), Json::Number(b)) => {
            // The comparison reads both to their ends.
            work.spend(a.len() + b.len())?;
            Some(number::compare(a, b))
        }
        (Json::Text(a), Json::Text(b)) => {
            work.spend(a.len().min(b.len()))?;
            Some(a.cmp(b))
        }
        (Json::Bool(a), Json::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    })
}
