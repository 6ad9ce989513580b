//! The names of a script, and their values at the current place.

use std::collections::HashSet;
use std::path::Path;

use tree_sitter::Node;

use super::js::Js;

/// Maximum depth of nested expressions and calls.
const DEPTH_MAX: usize = 100;

const TOO_DEEP: &str = "it is too deep in calls and expressions";

/// Maximum number of visited expressions and statements. It ends functions that call each other.
const STEPS_MAX: usize = 200_000;

/// The meaning of a name.
#[derive(Clone)]
pub(super) enum Name<'t> {
    Value(Js),
    /// The reason why the value is unknown.
    Unknown(String),
    Function(Node<'t>),
    /// The response to the request of that number.
    Answer(usize),
    /// The k6 module that sends requests, or one of its functions.
    Http(Option<String>),
}

/// The declared names of one block.
pub(super) type Frame<'t> = Vec<(String, Name<'t>)>;

/// A script and the values of its names at the current place.
pub(super) struct Script<'t> {
    text: &'t str,
    /// The folder that `open` reads from.
    pub(super) folder: &'t Path,
    /// Names that are assigned after their declaration. Their values are unknown.
    assigned: HashSet<&'t str>,
    /// The names of each open block, the innermost last.
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
                // `a.b = 1` also changes the value of `a`.
                while let Some(object) = target.child_by_field_name("object") {
                    target = object;
                }
                let name = self.source(target);
                self.assigned.insert(name);
            }
            waiting.extend(children(node));
        }
    }

    /// The source text of a node.
    pub(super) fn source(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The reason why an expression has no value before the script runs.
    pub(super) fn unknown(&self, node: Node<'_>) -> String {
        let words = self.without_texts(node, vec![node], 60);
        format!("`{words}` is known only when it runs")
    }

    /// The source text of a node in at most `most` characters. String literals in `parts` are left out,
    /// because they may be secret.
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

    /// Declares the names of a pattern, as written in a declaration or a parameter.
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
            // The names in it are declared without a value.
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
    /// The reason why its value is unknown before the script runs.
    pub(super) fn value(&mut self, node: Node<'t>) -> Result<Js, String> {
        self.descend()?;
        let value = self.value_here(node);
        self.ascend();
        match value {
            Ok(value) if value.is_deeper_than(DEPTH_MAX) => Err(TOO_DEEP.to_owned()),
            value => value,
        }
    }

    /// Enters one more level, until `ascend`.
    ///
    /// # Errors
    /// When the limit of the depth or of the visited nodes is reached.
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

    /// The result of a function call.
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

    /// Enters the body of a function and binds its parameters to the arguments. Returns the hidden names, for
    /// `leave_call`.
    ///
    /// # Errors
    /// When calls are nested too deeply.
    pub(super) fn enter_call(
        &mut self,
        function: Node<'t>,
        arguments: &[Node<'t>],
        called: &str,
    ) -> Result<Vec<Frame<'t>>, String> {
        let values: Vec<Result<Js, String>> = arguments.iter().map(|it| self.value(*it)).collect();
        self.descend()?;
        // A function sees the names at its declaration, and not the names at its call.
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

    /// Leaves the body of a function.
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

    /// The return value of a function with a body of declarations and one `return`.
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

    /// Declares one `name = value` of a declaration.
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

/// The functions that statements declare. Code above them can call them.
fn functions<'t>(block: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let statements = children(block).flat_map(|it| {
        let exported = it.child_by_field_name("declaration");
        [Some(it), exported].into_iter().flatten()
    });
    statements.filter(|it| it.kind() == "function_declaration")
}

/// The child nodes that have a name in the grammar.
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
