//! The names of a script, and what they stand for where one of them is used.

use std::collections::HashSet;
use std::path::Path;

use tree_sitter::Node;

use super::js::Js;

/// How deep expressions and calls may lie in one another.
const DEPTH_MAX: usize = 100;

const TOO_DEEP: &str = "it is too deep in calls and expressions";

/// Most expressions and statements that are looked at: functions that call each other end.
const STEPS_MAX: usize = 200_000;

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Name<'t> {
    Value(Js),
    /// Why it is not known.
    Unknown(String),
    Function(Node<'t>),
    /// The answer to the request of that number.
    Answer(usize),
    /// The module of k6 that sends requests, or one of its functions.
    Http(Option<String>),
}

/// The names that one block declares.
pub(super) type Frame<'t> = Vec<(String, Name<'t>)>;

/// A script and what its names stand for at a place of it.
pub(super) struct Script<'t> {
    text: &'t str,
    /// Where `open` looks for files.
    pub(super) folder: &'t Path,
    /// Names that get another value than that of their declaration.
    assigned: HashSet<&'t str>,
    /// The innermost block last.
    pub(super) frames: Vec<Frame<'t>>,
    depth: usize,
    steps: usize,
}

impl<'t> Script<'t> {
    pub(super) fn new(root: Node<'t>, text: &'t str, folder: &'t Path) -> Script<'t> {
        let mut script = Script {
            text,
            folder,
            assigned: HashSet::new(),
            frames: vec![Frame::new()],
            depth: 0,
            steps: 0,
        };
        script.find_assigned(root);
        script
    }

    fn find_assigned(&mut self, root: Node<'t>) {
        let mut waiting = vec![root];
        while let Some(node) = waiting.pop() {
            let field = match node.kind() {
                "assignment_expression" | "augmented_assignment_expression" => "left",
                "update_expression" => "argument",
                _ => "",
            };
            if let Some(mut target) = node.child_by_field_name(field) {
                // `a.b = 1` changes what `a` stands for as well.
                while let Some(object) = target.child_by_field_name("object") {
                    target = object;
                }
                let name = self.source(target);
                self.assigned.insert(name);
            }
            waiting.extend(children(node));
        }
    }

    /// The words of a node.
    pub(super) fn source(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Why an expression has no value beforehand.
    pub(super) fn unknown(&self, node: Node<'_>) -> String {
        let words = self.without_texts(node, vec![node], 60);
        format!("`{words}` is known only when it runs")
    }

    /// The words of a node without the texts in these parts of it, which may be secret; at most so many
    /// characters.
    pub(super) fn without_texts<'a>(
        &self,
        node: Node<'a>,
        mut parts: Vec<Node<'a>>,
        most: usize,
    ) -> String {
        let mut texts = Vec::new();
        while let Some(part) = parts.pop() {
            match part.kind() {
                "string_fragment" => texts.push(part.byte_range()),
                _ => parts.extend(children(part)),
            }
        }
        texts.sort_by_key(|range| range.start);
        let (mut source, mut begin) = (String::new(), node.start_byte());
        for text in texts {
            source += self.text.get(begin..text.start).unwrap_or_default();
            source.push('…');
            begin = text.end;
        }
        source += self.text.get(begin..node.end_byte()).unwrap_or_default();
        let mut words = source.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((index, _)) = words.char_indices().nth(most) {
            words.truncate(index);
            words.push('…');
        }
        words
    }

    pub(super) fn name(&self, name: &str) -> Option<&Name<'t>> {
        let mut frames = self.frames.iter().rev();
        frames.find_map(|frame| {
            let own = frame.iter().rev().find(|(own, _)| own == name);
            own.map(|(_, found)| found)
        })
    }

    pub(super) fn declare(&mut self, name: &str, value: Name<'t>) {
        if let Some(frame) = self.frames.last_mut() {
            frame.push((name.to_owned(), value));
        }
    }

    /// Declares the functions of a block, or of the script itself.
    pub(super) fn declare_functions(&mut self, block: Node<'t>) {
        for function in functions(block) {
            if let Some(name) = function.child_by_field_name("name") {
                self.declare(self.source(name), Name::Function(function));
            }
        }
    }

    /// Declares the names of a pattern: what a declaration or a parameter is written as.
    pub(super) fn bind(&mut self, pattern: Node<'t>, value: Result<Js, String>) {
        if self.descend().is_err() {
            return;
        }
        self.bind_here(pattern, value);
        self.ascend();
    }

    fn bind_here(&mut self, pattern: Node<'t>, value: Result<Js, String>) {
        match (pattern.kind(), &value) {
            ("identifier" | "shorthand_property_identifier_pattern", _) => {
                let name = self.source(pattern);
                let known = match value {
                    Ok(_) if self.assigned.contains(name) => {
                        Name::Unknown(format!("`{name}` changes while it runs"))
                    }
                    Ok(value) => Name::Value(value),
                    Err(why) => Name::Unknown(why),
                };
                self.declare(name, known);
            }
            ("object_pattern", Ok(object)) => {
                for part in children(pattern) {
                    let member = object.member(self.source(part));
                    let is_plain = part.kind() == "shorthand_property_identifier_pattern";
                    let value = if is_plain {
                        Ok(member)
                    } else {
                        Err(self.unknown(part))
                    };
                    self.bind(part, value);
                }
            }
            // The names in it are then not known, which is what they are without a value.
            _ => {
                for part in children(pattern) {
                    let why = self.unknown(part);
                    self.bind(part, Err(why));
                }
            }
        }
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// Why it has none that is known beforehand.
    pub(super) fn value(&mut self, node: Node<'t>) -> Result<Js, String> {
        self.descend()?;
        let value = self.value_here(node);
        self.ascend();
        match value {
            Ok(value) if value.is_deeper_than(DEPTH_MAX) => Err(TOO_DEEP.to_owned()),
            value => value,
        }
    }

    /// Goes one level deeper, until `ascend`.
    ///
    /// # Errors
    /// When it is too deep, or too much was looked at.
    pub(super) fn descend(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.depth == DEPTH_MAX || self.steps > STEPS_MAX {
            return Err(TOO_DEEP.to_owned());
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn ascend(&mut self) {
        self.depth -= 1;
    }

    /// What a call of a function gives.
    pub(super) fn called(
        &mut self,
        function: Node<'t>,
        arguments: &[Node<'t>],
        called: &str,
    ) -> Result<Js, String> {
        let body = self.field(function, "body")?;
        let hidden = self.enter_call(function, arguments, called)?;
        let value = self.returned(body);
        self.leave_call(hidden);
        value
    }

    /// Begins the body of a function, in which its parameters have these values, and gives the names
    /// that it does not see, for `leave_call`.
    ///
    /// # Errors
    /// When calls are too deep in one another.
    pub(super) fn enter_call(
        &mut self,
        function: Node<'t>,
        arguments: &[Node<'t>],
        called: &str,
    ) -> Result<Vec<Frame<'t>>, String> {
        let values: Vec<Result<Js, String>> = arguments.iter().map(|it| self.value(*it)).collect();
        self.descend()?;
        // A function sees the names where it is declared, and not those where it is called.
        let declared = self
            .frames
            .iter()
            .rposition(|frame| frame.iter().any(|(own, _)| own == called));
        let hidden = match declared {
            Some(index) => self.frames.split_off(index + 1),
            None => Vec::new(),
        };
        self.frames.push(Frame::new());
        self.bind_parameters(function, values);
        Ok(hidden)
    }

    /// Ends the body of a function.
    pub(super) fn leave_call(&mut self, hidden: Vec<Frame<'t>>) {
        self.frames.pop();
        self.frames.extend(hidden);
        self.ascend();
    }

    fn bind_parameters(&mut self, function: Node<'t>, values: Vec<Result<Js, String>>) {
        let single = function.child_by_field_name("parameter");
        let list = function.child_by_field_name("parameters");
        let parameters: Vec<Node<'t>> = match (single, list) {
            (Some(single), _) => vec![single],
            (None, Some(list)) => children(list).collect(),
            (None, None) => Vec::new(),
        };
        let mut values = values.into_iter();
        for parameter in parameters {
            let value = values.next();
            if parameter.kind() == "assignment_pattern" {
                let parts = (
                    parameter.child_by_field_name("left"),
                    parameter.child_by_field_name("right"),
                );
                if let (Some(left), Some(right)) = parts {
                    let value = value.unwrap_or_else(|| self.value(right));
                    self.bind(left, value);
                }
                continue;
            }
            let value = value.unwrap_or_else(|| Err(self.unknown(parameter)));
            self.bind(parameter, value);
        }
    }

    /// What a function returns, when its body is declarations and one `return`.
    fn returned(&mut self, body: Node<'t>) -> Result<Js, String> {
        if body.kind() != "statement_block" {
            return self.value(body);
        }
        for statement in children(body) {
            match statement.kind() {
                "comment" => {}
                "lexical_declaration" | "variable_declaration" => {
                    for declarator in children(statement) {
                        self.declarator(declarator);
                    }
                }
                "return_statement" => {
                    let Some(value) = children(statement).next() else {
                        return Ok(Js::Undefined);
                    };
                    return self.value(value);
                }
                _ => return Err(self.unknown(statement)),
            }
        }
        Ok(Js::Undefined)
    }

    /// `name = value` of a declaration.
    pub(super) fn declarator(&mut self, node: Node<'t>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let value = match node.child_by_field_name("value") {
            Some(value) if is_function(value) => {
                let name = self.source(name);
                return self.declare(name, Name::Function(value));
            }
            Some(value) => self.value(value),
            None => Ok(Js::Undefined),
        };
        self.bind(name, value);
    }
}

/// The functions that statements declare: they can be called above the place where they stand.
fn functions<'t>(block: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let statements = children(block).flat_map(|it| {
        let exported = it.child_by_field_name("declaration");
        [Some(it), exported].into_iter().flatten()
    });
    statements.filter(|it| it.kind() == "function_declaration")
}

/// The parts of a node that have a name in the grammar.
pub(super) fn children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let mut cursor = node.walk();
    let mut more = cursor.goto_first_child();
    std::iter::from_fn(move || {
        while more {
            let found = cursor.node();
            more = cursor.goto_next_sibling();
            if found.is_named() {
                return Some(found);
            }
        }
        None
    })
}

pub(super) fn is_function(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "arrow_function" | "function_expression" | "function_declaration"
    )
}
