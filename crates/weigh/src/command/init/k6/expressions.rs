//! Evaluation of expressions with constant values.

use tree_sitter::Node;

use super::js::{self, Js};
use super::script::{Name, Script, children};
use crate::command::init::values::encoded;

/// Maximum size of a file that `open` reads, in bytes.
const FILE_MAX: u64 = 1 << 22;

impl<'t> Script<'t> {
    pub(super) fn value_here(&mut self, node: Node<'t>) -> Result<Js, String> {
        match node.kind() {
            "string" | "template_string" => self.text_of(node),
            "number" => self
                .source(node)
                .replace('_', "")
                .parse()
                .map(Js::Number)
                .map_err(|_| self.unknown(node)),
            "true" => Ok(Js::Bool(true)),
            "false" => Ok(Js::Bool(false)),
            "null" => Ok(Js::Null),
            "undefined" => Ok(Js::Undefined),
            "identifier" => self.identifier(node),
            "parenthesized_expression" | "await_expression" => {
                let inner = children(node).next().ok_or_else(|| self.unknown(node))?;
                self.value(inner)
            }
            "array" => self.list(node),
            "object" => self.object(node),
            "member_expression" | "subscript_expression" => self.member(node),
            "binary_expression" => self.binary(node),
            "unary_expression" => self.unary(node),
            "ternary_expression" => {
                let condition = self.field(node, "condition")?;
                let branch = match self.value(condition)?.is_true() {
                    true => self.field(node, "consequence")?,
                    false => self.field(node, "alternative")?,
                };
                self.value(branch)
            }
            "call_expression" => self.call(node),
            "new_expression" => self.new_value(node),
            _ => Err(self.unknown(node)),
        }
    }

    pub(super) fn field(&self, node: Node<'t>, name: &str) -> Result<Node<'t>, String> {
        node.child_by_field_name(name)
            .ok_or_else(|| self.unknown(node))
    }

    fn identifier(&self, node: Node<'t>) -> Result<Js, String> {
        match self.name(self.source(node)) {
            Some(Name::Value(value)) => Ok(value.clone()),
            Some(Name::Unknown(why)) => Err(why.clone()),
            _ => Err(self.unknown(node)),
        }
    }

    fn text_of(&mut self, node: Node<'t>) -> Result<Js, String> {
        let mut text = Js::Text(String::new());
        for part in children(node) {
            let next = match part.kind() {
                "template_substitution" => {
                    let inner = children(part).next().ok_or_else(|| self.unknown(node))?;
                    self.value(inner)?
                }
                "escape_sequence" => {
                    let source = self.source(part);
                    Js::Text(escaped(source).ok_or_else(|| self.unknown(part))?)
                }
                _ => Js::Text(self.source(part).to_owned()),
            };
            text = text.then(&next)?;
        }
        Ok(text)
    }

    fn list(&mut self, node: Node<'t>) -> Result<Js, String> {
        let mut items = Vec::new();
        for item in children(node).filter(|it| it.kind() != "comment") {
            let spread = (item.kind() == "spread_element").then(|| children(item).next());
            let more = match spread.flatten() {
                Some(inner) => match self.value(inner)? {
                    Js::List(items) => items,
                    _ => return Err(self.unknown(item)),
                },
                None => vec![self.value(item)?],
            };
            js::extend(&mut items, more)?;
        }
        Ok(Js::List(items))
    }

    fn object(&mut self, node: Node<'t>) -> Result<Js, String> {
        let mut members = Vec::new();
        for part in children(node) {
            let more = match part.kind() {
                "comment" => continue,
                "pair" => {
                    let name = self.key(self.field(part, "key")?)?;
                    let value = self.field(part, "value")?;
                    vec![(name, self.value(value).unwrap_or_else(Js::Unknown))]
                }
                "shorthand_property_identifier" => {
                    let value = self.identifier(part).unwrap_or_else(Js::Unknown);
                    vec![(self.source(part).to_owned(), value)]
                }
                "spread_element" => {
                    let inner = children(part).next().ok_or_else(|| self.unknown(part))?;
                    self.value(inner)?.members().to_vec()
                }
                _ => return Err(self.unknown(part)),
            };
            for (name, _) in &more {
                members.retain(|(own, _)| own != name);
            }
            js::extend(&mut members, more)?;
        }
        Ok(Js::Object(members))
    }

    /// The name of a member of an object.
    pub(super) fn key(&mut self, key: Node<'t>) -> Result<String, String> {
        match key.kind() {
            "string" | "number" => self.value(key)?.text(),
            "computed_property_name" => {
                let inner = children(key).next().ok_or_else(|| self.unknown(key))?;
                self.value(inner)?.text()
            }
            _ => Ok(self.source(key).to_owned()),
        }
    }

    fn member(&mut self, node: Node<'t>) -> Result<Js, String> {
        let object = self.field(node, "object")?;
        let name = match node.child_by_field_name("index") {
            Some(index) => self.value(index)?.text()?,
            None => self.source(self.field(node, "property")?).to_owned(),
        };
        if self.source(object) == "__ENV" {
            return Ok(Js::Environment {
                name,
                after: String::new(),
            });
        }
        match self.value(object)? {
            object @ (Js::Object(_) | Js::List(_)) => match object.member(&name) {
                Js::Unknown(why) => Err(why),
                member => Ok(member),
            },
            _ => Err(self.unknown(node)),
        }
    }

    fn binary(&mut self, node: Node<'t>) -> Result<Js, String> {
        let (left, right) = (self.field(node, "left")?, self.field(node, "right")?);
        let operator = self.source(self.field(node, "operator")?);
        let left = self.value(left)?;
        let number = |value: &Js| match value {
            Js::Number(number) => Ok(*number),
            _ => Err(()),
        };
        match operator {
            // Without the variable, the script uses its default value. The lab does the same.
            "||" if left.is_true() => return Ok(left),
            "??" if !matches!(left, Js::Undefined | Js::Null | Js::Environment { .. }) => {
                return Ok(left);
            }
            "||" | "??" => return self.value(right),
            "&&" if !left.is_true() => return Ok(left),
            "&&" => return self.value(right),
            _ => {}
        }
        let right = self.value(right)?;
        let numbers = number(&left).and_then(|left| Ok((left, number(&right)?)));
        match (operator, numbers) {
            ("+", Ok((left, right))) => Ok(Js::Number(left + right)),
            ("+", Err(())) => left.then(&right),
            ("-", Ok((left, right))) => Ok(Js::Number(left - right)),
            ("*", Ok((left, right))) => Ok(Js::Number(left * right)),
            ("/", Ok((left, right))) => Ok(Js::Number(left / right)),
            _ => Err(self.unknown(node)),
        }
    }

    fn unary(&mut self, node: Node<'t>) -> Result<Js, String> {
        let argument = self.field(node, "argument")?;
        let value = self.value(argument)?;
        match (self.source(self.field(node, "operator")?), value) {
            ("-", Js::Number(number)) => Ok(Js::Number(-number)),
            ("+", Js::Number(number)) => Ok(Js::Number(number)),
            ("!", value) if !matches!(value, Js::Environment { .. }) => {
                Ok(Js::Bool(!value.is_true()))
            }
            _ => Err(self.unknown(node)),
        }
    }

    /// The arguments of a call. A tagged template has only its text.
    pub(super) fn arguments(&self, call: Node<'t>) -> Vec<Node<'t>> {
        match call.child_by_field_name("arguments") {
            Some(text) if text.kind() == "template_string" => vec![text],
            Some(list) => children(list).filter(|it| it.kind() != "comment").collect(),
            None => Vec::new(),
        }
    }

    fn call(&mut self, node: Node<'t>) -> Result<Js, String> {
        let function = self.field(node, "function")?;
        let arguments = self.arguments(node);
        let called = self.source(function);
        if let Some(Name::Function(body)) = self.name(called).cloned() {
            return self.called(body, &arguments, called);
        }
        let [first, rest @ ..] = arguments.as_slice() else {
            return self.method_of_text(node, function);
        };
        let is_plain = rest.is_empty();
        match called {
            "JSON.stringify" if is_plain => self.value(*first)?.json(),
            "JSON.parse" if is_plain => {
                let text = self.value(*first)?.text()?;
                serde_json::from_str::<serde_json::Value>(&text)
                    .map(Js::from)
                    .map_err(|error| format!("what it parses is not JSON: {error}"))
            }
            "encodeURIComponent" if is_plain => Ok(Js::Text(encoded(&self.value(*first)?.text()?))),
            "String" if is_plain => Ok(Js::Text(self.value(*first)?.text()?)),
            "open" if is_plain => self.open(*first),
            _ if called.ends_with(".url") && first.kind() == "template_string" => {
                self.value(*first)
            }
            _ => Err(self.unknown(node)),
        }
    }

    /// Evaluates `x.toString()` and `x.trim()`.
    fn method_of_text(&mut self, node: Node<'t>, function: Node<'t>) -> Result<Js, String> {
        let method = function.child_by_field_name("property");
        let method = method.map(|name| self.source(name)).unwrap_or_default();
        if !["toString", "trim"].contains(&method) {
            return Err(self.unknown(node));
        }
        let object = self.field(function, "object")?;
        let text = self.value(object)?.text()?;
        Ok(Js::Text(match method {
            "trim" => text.trim().to_owned(),
            _ => text,
        }))
    }

    /// Evaluates `new SharedArray(name, () => list)` as the list.
    fn new_value(&mut self, node: Node<'t>) -> Result<Js, String> {
        let constructor = self.field(node, "constructor")?;
        match (self.source(constructor), self.arguments(node).as_slice()) {
            ("SharedArray", [_, function]) => self.called(*function, &[], "SharedArray"),
            _ => Err(self.unknown(node)),
        }
    }

    /// The content of a file, relative to the script's folder.
    fn open(&mut self, path: Node<'t>) -> Result<Js, String> {
        let path = self.value(path)?.text()?;
        let file = self.folder.join(&path);
        let read = || {
            if std::fs::metadata(&file)?.len() > FILE_MAX {
                return Err(std::io::Error::other(format!(
                    "it is longer than {FILE_MAX} bytes"
                )));
            }
            std::fs::read_to_string(&file)
        };
        read()
            .map(Js::Text)
            .map_err(|error| format!("`{path}` cannot be read: {error}"))
    }
}

/// The text of an escape sequence of JavaScript.
fn escaped(sequence: &str) -> Option<String> {
    let rest = sequence.strip_prefix('\\')?;
    let of_code = |digits: &str| {
        let code = u32::from_str_radix(digits, 16).ok()?;
        char::from_u32(code).map(String::from)
    };
    match rest.chars().next()? {
        'n' => Some("\n".to_owned()),
        't' => Some("\t".to_owned()),
        'r' => Some("\r".to_owned()),
        'b' => Some("\u{8}".to_owned()),
        'f' => Some("\u{c}".to_owned()),
        'v' => Some("\u{b}".to_owned()),
        '0' if rest.len() == 1 => Some("\0".to_owned()),
        '0'..='9' => None,
        '\n' | '\r' | '\u{2028}' | '\u{2029}' => Some(String::new()),
        'x' => of_code(&rest[1..]),
        'u' => of_code(rest[1..].trim_start_matches('{').trim_end_matches('}')),
        other => Some(other.to_string()),
    }
}
