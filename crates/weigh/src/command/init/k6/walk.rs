//! The statements of a script in the order of one turn.

use tree_sitter::Node;

use super::js::Js;
use super::script::{Frame, Name, Script, children, is_function};
use crate::command::init::origins::Origins;
use crate::command::init::requests::{Given, Requests};

/// Maximum number of requests in one turn.
pub(super) const SENT_MAX: usize = 10_000;

/// Maximum number of items of an unrolled loop.
const ITEMS_MAX: usize = 1_000;

/// A request of the script.
pub(super) struct Sent {
    /// The server of the request.
    pub(super) origin: String,
    pub(super) given: Given,
    pub(super) times: u32,
}

/// A walk through the functions that run.
pub(super) struct Walk<'t> {
    pub(super) script: Script<'t>,
    pub(super) sent: Vec<Sent>,
    /// Omitted parts of the script, with the reasons.
    left_out: Vec<(String, String)>,
    /// Headers that contain credentials because of their place in the script.
    hidden: Vec<String>,
    /// Notes for each request at the current place.
    pub(super) notes: Vec<String>,
    /// Number of runs of the current function.
    pub(super) times: u32,
}

/// The note for requests inside a condition or a loop.
const CONDITION: &str = "sent always, without its condition";
const LOOP: &str = "sent once a turn, without its loop";

impl<'t> Walk<'t> {
    pub(super) fn new(script: Script<'t>) -> Walk<'t> {
        Walk {
            script,
            sent: Vec::new(),
            left_out: Vec::new(),
            hidden: Vec::new(),
            notes: Vec::new(),
            times: 1,
        }
    }

    /// Walks through a function that the script exports.
    pub(super) fn entry(&mut self, function: Node<'t>) {
        self.within(function, &[], "");
    }

    /// Adds the results to the requests of a lab.
    pub(super) fn finish(self, requests: &mut Requests) {
        let mut origins = Origins::default();
        for sent in &self.sent {
            origins.count(&sent.origin);
        }
        let most = origins.most();
        for name in self.hidden {
            requests.hide(&name);
        }
        for sent in self.sent {
            if most.as_ref() == Some(&sent.origin) {
                requests.add_times(sent.given, sent.times);
            }
        }
        for (what, why) in &self.left_out {
            requests.leave_out_request(None, what, why);
        }
        origins.leave_out_others(requests);
    }

    pub(super) fn leave_out(&mut self, what: &str, why: String) {
        let line = (what.to_owned(), why);
        if !self.left_out.contains(&line) && self.left_out.len() < SENT_MAX {
            self.left_out.push(line);
        }
    }

    pub(super) fn hide(&mut self, header: &str) {
        if !self.hidden.iter().any(|known| known == header) {
            self.hidden.push(header.to_owned());
        }
    }

    /// Walks through the body of a function with its parameters bound to the arguments.
    fn within(&mut self, function: Node<'t>, arguments: &[Node<'t>], called: &str) {
        // `leave_call` restores the names of the script after the walk.
        let body = function.child_by_field_name("body");
        let Some(body) = body else { return };
        let names = self.script.enter_call(function, arguments, called);
        match names {
            Ok(hidden) => {
                self.visit(body);
                self.script.leave_call(hidden);
            }
            Err(why) => self.leave_out(called, why),
        }
    }

    fn visit(&mut self, node: Node<'t>) {
        if let Err(why) = self.script.descend() {
            let what = self.script.source(node).lines().next().unwrap_or_default();
            return self.leave_out(what, why);
        }
        self.visit_here(node);
        self.script.ascend();
    }

    fn visit_here(&mut self, node: Node<'t>) {
        match node.kind() {
            "call_expression" => {
                self.call(node);
            }
            // A function sends no request until it is called.
            "function_declaration" | "arrow_function" | "function_expression" | "comment" => {}
            "statement_block" => {
                self.script.frames.push(Frame::new());
                self.script.declare_functions(node);
                children(node).for_each(|it| self.visit(it));
                self.script.frames.pop();
            }
            "if_statement" | "ternary_expression" | "switch_statement" => {
                self.noted(node, CONDITION);
            }
            "for_in_statement" => self.for_each_of(node),
            "for_statement" | "while_statement" | "do_statement" => {
                self.script.frames.push(Frame::new());
                self.noted(node, LOOP);
                self.script.frames.pop();
            }
            "variable_declarator" => self.declarator(node),
            "assignment_expression" => self.assignment(node),
            _ => children(node).for_each(|it| self.visit(it)),
        }
    }

    /// Walks through the parts of a node, and adds a note to the requests in it.
    fn noted(&mut self, node: Node<'t>, note: &str) {
        self.notes.push(note.to_owned());
        children(node).for_each(|it| self.visit(it));
        self.notes.pop();
    }

    fn declarator(&mut self, node: Node<'t>) {
        let name = node.child_by_field_name("name");
        let value = node.child_by_field_name("value");
        match (name, value.and_then(|it| self.answer(it))) {
            (Some(name), Some(answer)) => {
                let name = self.script.source(name);
                self.script.declare(name, Name::Answer(answer));
            }
            _ => {
                if let Some(value) = value.filter(|it| !is_function(*it)) {
                    self.visit_unless_sent(value);
                }
                self.script.declarator(node);
            }
        }
    }

    fn assignment(&mut self, node: Node<'t>) {
        let parts = (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        );
        let (Some(left), Some(right)) = parts else {
            return;
        };
        match self.answer(right) {
            Some(answer) => {
                let name = self.script.source(left);
                self.script.declare(name, Name::Answer(answer));
            }
            None => self.visit_unless_sent(right),
        }
    }

    /// Visits an expression that `answer` has examined without sending a request.
    fn visit_unless_sent(&mut self, node: Node<'t>) {
        if !self.is_request(node) {
            self.visit(node);
        }
    }

    /// True if the expression is a call that `answer` runs.
    fn is_request(&self, node: Node<'t>) -> bool {
        let node = awaited(node);
        node.kind() == "call_expression" && self.function_of_http(node).is_some()
    }

    /// The number of the request that an expression sends. `None` if it is not a single request.
    fn answer(&mut self, node: Node<'t>) -> Option<usize> {
        let node = awaited(node);
        match self.is_request(node) {
            true => self.call(node),
            false => None,
        }
    }

    /// The function of `k6/http` in a call.
    fn function_of_http(&self, call: Node<'t>) -> Option<&'t str> {
        let function = call.child_by_field_name("function")?;
        if let Some(Name::Http(Some(name))) = self.script.name(self.script.source(function)) {
            return FUNCTIONS.into_iter().find(|known| known == name);
        }
        let object = function.child_by_field_name("object")?;
        let is_module = matches!(
            self.script.name(self.script.source(object)),
            Some(Name::Http(None))
        );
        let property = function.child_by_field_name("property")?;
        is_module.then(|| self.script.source(property))
    }

    /// Visits a call. Returns the number of its request, if it sends one.
    fn call(&mut self, node: Node<'t>) -> Option<usize> {
        let arguments = self.script.arguments(node);
        if let Some(function) = self.function_of_http(node) {
            return self.http(node, function, &arguments);
        }
        let function = node.child_by_field_name("function")?;
        let called = self.script.source(function);
        if let Some(Name::Function(body)) = self.script.name(called).cloned() {
            arguments
                .iter()
                .for_each(|it| self.visit_unless_function(*it));
            self.within(body, &arguments, called);
            return None;
        }
        match called {
            "check" => self.check(&arguments),
            "sleep" => self.leave_out(
                "sleep",
                "the load decides when requests are sent".to_owned(),
            ),
            _ if called.ends_with(".forEach") => self.for_each(node, &arguments),
            _ => {
                // The called expression may itself begin with a request: `http.get(…).json()`.
                self.visit(function);
                for argument in arguments {
                    match is_function(argument) {
                        // Calls with a function as argument, such as `group("name", () => …)`.
                        true => self.within(argument, &[], called),
                        false => self.visit(argument),
                    }
                }
            }
        }
        None
    }

    fn visit_unless_function(&mut self, node: Node<'t>) {
        if !is_function(node) {
            self.visit(node);
        }
    }

    /// Unrolls `for (const x of list)`.
    fn for_each_of(&mut self, node: Node<'t>) {
        let part = |name: &str| node.child_by_field_name(name);
        let (Some(left), Some(right), Some(body)) = (part("left"), part("right"), part("body"))
        else {
            return;
        };
        let is_of = part("operator").is_some_and(|it| self.script.source(it) == "of");
        self.visit(right);
        match self.script.value(right) {
            Ok(Js::List(items)) if is_of && items.len() <= ITEMS_MAX => {
                for item in items {
                    self.script.frames.push(Frame::new());
                    self.script.bind(left, Ok(item));
                    self.visit(body);
                    self.script.frames.pop();
                }
            }
            _ => {
                self.script.frames.push(Frame::new());
                let why = self.script.unknown(right);
                self.script.bind(left, Err(why));
                self.noted(body, LOOP);
                self.script.frames.pop();
            }
        }
    }

    /// Unrolls `list.forEach((x) => …)`.
    fn for_each(&mut self, node: Node<'t>, arguments: &[Node<'t>]) {
        let list = node
            .child_by_field_name("function")
            .and_then(|it| it.child_by_field_name("object"));
        let (Some(list), [function]) = (list, arguments) else {
            return;
        };
        let parameter = function.child_by_field_name("parameter").or_else(|| {
            let list = function.child_by_field_name("parameters");
            list.and_then(|list| children(list).next())
        });
        match (self.script.value(list), parameter) {
            (Ok(Js::List(items)), Some(parameter)) if items.len() <= ITEMS_MAX => {
                for item in items {
                    self.script.frames.push(Frame::new());
                    self.script.bind(parameter, Ok(item));
                    if let Some(body) = function.child_by_field_name("body") {
                        self.visit(body);
                    }
                    self.script.frames.pop();
                }
            }
            _ => {
                self.notes.push(LOOP.to_owned());
                self.within(*function, &[], "");
                self.notes.pop();
            }
        }
    }

    /// Reads `check(answer, {"status is 404": (r) => r.status === 404})`.
    fn check(&mut self, arguments: &[Node<'t>]) {
        let [answer, checks, ..] = arguments else {
            return;
        };
        let found = match self.script.name(self.script.source(*answer)) {
            Some(Name::Answer(index)) => Some(*index),
            _ => self.answer(*answer),
        };
        let status = children(*checks).find_map(|it| self.status(it));
        let sent = found.and_then(|index| self.sent.get_mut(index));
        if let (Some(sent), Some(status)) = (sent, status) {
            let status = Some(status).filter(|it| !(200..300).contains(it));
            sent.given.status = status.iter().map(u16::to_string).collect();
        }
        let is_more = children(*checks).any(|it| self.status(it).is_none());
        if is_more {
            self.leave_out(
                "check",
                "an answer is right when it is that of the baseline".to_owned(),
            );
        }
    }

    /// The status that a check expects: `(r) => r.status === 200`.
    fn status(&self, check: Node<'t>) -> Option<u16> {
        let function = check.child_by_field_name("value")?;
        let body = function.child_by_field_name("body")?;
        let operator = self.script.source(body.child_by_field_name("operator")?);
        let left = self.script.source(body.child_by_field_name("left")?);
        let right = self.script.source(body.child_by_field_name("right")?);
        let is_status = ["==", "==="].contains(&operator) && left.ends_with(".status");
        is_status.then(|| right.parse().ok()).flatten()
    }
}

/// The functions of the module that send a request.
const FUNCTIONS: [&str; 10] = [
    "get",
    "head",
    "post",
    "put",
    "patch",
    "options",
    "del",
    "request",
    "asyncRequest",
    "batch",
];

/// The expression without `await` and parentheses.
fn awaited(node: Node<'_>) -> Node<'_> {
    match node.kind() {
        "await_expression" | "parenthesized_expression" => {
            children(node).next().map_or(node, awaited)
        }
        _ => node,
    }
}
