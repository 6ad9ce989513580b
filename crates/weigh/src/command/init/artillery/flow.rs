//! The steps of a flow, and the requests that they send.

use std::cell::Cell;
use std::time::Duration;

use experiment::secrets::is_secret;
use serde_json::Value;

use super::captures::{Captures, captures, expectations};
use super::request::{Lists, add_body, headers, notes, pairs, think};
use super::{Test, Walked};
use crate::command::init::origins::origin;
use crate::command::init::placeholders::{Filling, Meaning, Meanings, dynamic, json_pointer};
use crate::command::init::requests::Given;
use crate::command::init::values::{plain, url_text, with_notation};

/// The supported methods. `delete` has a rule of its own.
const METHODS: [&str; 7] = ["get", "head", "options", "post", "put", "patch", "delete"];

/// Maximum depth of nested loops.
const DEPTH_MAX: usize = 8;
/// Maximum number of turns of a loop that become requests of their own.
const TURNS_MAX: usize = 100;
/// Maximum number of requests of one flow.
const FOUND_MAX: usize = 2000;

/// A part of a flow.
pub(super) enum Found {
    /// A request, its number of repetitions, and its hidden headers.
    Request(Box<Given>, u32, Vec<String>),
    /// A request that a lab cannot send.
    Omitted {
        line: Option<usize>,
        what: String,
        why: String,
    },
    /// Another part that is not in the lab.
    Remark {
        what: String,
        why: String,
    },
    Think(Duration),
}

/// The walk through the steps of one flow.
pub(super) struct Flow<'a> {
    test: &'a Test<'a>,
    name: String,
    weight: u32,
    found: Vec<Found>,
    /// Captured values: the name in the test, and the name in the lab.
    captured: Vec<(String, String)>,
    /// Names of values that a lab cannot capture, with the reason.
    unknown: Vec<(String, String)>,
    /// Values of the enclosing loops.
    turns: Vec<(String, Value)>,
    used: Vec<String>,
    /// Number of repetitions of each request.
    times: u32,
    depth: usize,
    /// Number of variables that are being replaced.
    nesting: Cell<usize>,
}

impl Meanings for Flow<'_> {
    fn meaning(&self, name: &str) -> Result<Meaning, String> {
        // `user.name` and `list[0]` are parts of a variable.
        let (first, rest) = match name.find(['.', '[']) {
            Some(end) => name.split_at(end),
            None => (name, ""),
        };
        let part = |value: &Value| match rest {
            "" => Some(value.clone()),
            rest => {
                let pointer = json_pointer(&format!("${rest}"))?;
                value.pointer(&pointer).cloned()
            }
        };
        let turn = self.turns.iter().rev().find(|(known, _)| known == first);
        if let Some((_, value)) = turn {
            return part(value)
                .map(Meaning::Known)
                .ok_or_else(|| at_run_time(name));
        }
        let captured = self.captured.iter().rev().find(|(known, _)| known == name);
        let column = self.test.columns.iter().find(|(known, _)| known == name);
        if let Some((_, word)) = captured.or(column) {
            return Ok(Meaning::Later(word.clone()));
        }
        let mut unknown = self.unknown.iter().chain(&self.test.unknown);
        if let Some((_, why)) = unknown.find(|(known, _)| known == first) {
            return Err(why.clone());
        }
        if let Some(value) = self.test.variables.get(first) {
            return match part(value).ok_or_else(|| at_run_time(name))? {
                // The engine replaces placeholders repeatedly.
                Value::String(text) if text.contains("{{") => self.nested(name, &text),
                value => Ok(Meaning::Known(value)),
            };
        }
        random(name)
            .or_else(|| dynamic(name))
            .map(Meaning::Later)
            .ok_or_else(|| at_run_time(name))
    }
}

fn at_run_time(name: &str) -> String {
    format!("`{name}` is known only at run time")
}

/// The lab's placeholder for `$randomNumber(1, 100)`.
fn random(call: &str) -> Option<String> {
    let arguments = call.strip_prefix("$randomNumber")?.trim();
    let arguments = arguments.strip_prefix('(')?.strip_suffix(')')?;
    let (from, to) = arguments.split_once(',')?;
    let (from, to): (u32, u32) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from <= to).then(|| format!("random:{from}..{to}"))
}

impl<'a> Flow<'a> {
    /// The meaning of a variable with placeholders in its value.
    fn nested(&self, name: &str, text: &str) -> Result<Meaning, String> {
        let depth = self.nesting.get();
        if depth == DEPTH_MAX {
            return Err(format!("`{name}` refers to itself"));
        }
        self.nesting.set(depth + 1);
        let meaning = Meaning::of(text, self);
        self.nesting.set(depth);
        meaning
    }

    pub(super) fn new(test: &'a Test<'a>, name: &str, weight: u32) -> Flow<'a> {
        Flow {
            test,
            name: name.to_owned(),
            weight,
            found: Vec::new(),
            captured: Vec::new(),
            unknown: Vec::new(),
            turns: Vec::new(),
            used: Vec::new(),
            times: 1,
            depth: 0,
            nesting: Cell::new(0),
        }
    }

    /// Makes the values known that another flow captures.
    pub(super) fn know(&mut self, other: &Walked) {
        self.captured.extend(other.captured.iter().cloned());
    }

    pub(super) fn finish(self) -> Walked {
        Walked {
            name: self.name,
            weight: self.weight,
            found: self.found,
            uses_captures: !self.used.is_empty(),
            used: self.used,
            captured: self.captured,
        }
    }

    pub(super) fn remark(&mut self, what: &str, why: &str) {
        let (what, why) = (what.to_owned(), why.to_owned());
        self.found.push(Found::Remark { what, why });
    }

    fn omit(&mut self, pointer: &str, what: &str, why: String) {
        let line = self.test.tree.line(pointer);
        let what = what.to_owned();
        self.found.push(Found::Omitted { line, what, why });
    }

    /// Walks through a list of steps.
    pub(super) fn steps(&mut self, pointer: &str, steps: Option<&Value>) {
        let Some(steps) = steps.and_then(Value::as_array) else {
            return;
        };
        for (index, step) in steps.iter().enumerate() {
            let pointer = format!("{pointer}/{index}");
            match step {
                Value::Object(members) => {
                    for (key, content) in members {
                        self.step(&pointer, step, key, content);
                    }
                }
                _ => self.remark("a step", "it is no mapping with a request"),
            }
        }
    }

    fn step(&mut self, pointer: &str, step: &Value, key: &str, content: &Value) {
        if self.found.len() >= FOUND_MAX {
            return self.omit(pointer, key, format!("it comes after {FOUND_MAX} others"));
        }
        match key {
            method if METHODS.contains(&method) => self.request(pointer, method, content),
            "loop" => self.turn(pointer, step, content),
            "parallel" => {
                self.remark("parallel", "its requests are sent one after another");
                self.steps(&format!("{pointer}/parallel"), Some(content));
            }
            "think" => match think(content) {
                Some(time) => self.found.push(Found::Think(time)),
                None => self.remark("think", "its time is known only at run time"),
            },
            // The settings of a loop, next to the key `loop`, and of other steps.
            "count" | "over" | "whileTrue" | "loopValue" | "loopElement" | "limit" | "jitter"
            | "log" | "name" => {}
            _ => self.remark(key, "it is not a request with fixed contents"),
        }
    }

    /// Walks through a loop.
    fn turn(&mut self, pointer: &str, step: &Value, steps: &Value) {
        if self.depth == DEPTH_MAX {
            return self.omit(pointer, "loop", "it is nested too deeply".to_owned());
        }
        let (index, element) = (
            step.get("loopValue").map_or("$loopCount".to_owned(), plain),
            step.get("loopElement")
                .map_or("$loopElement".to_owned(), plain),
        );
        let turns = match self.turns_of(step) {
            Ok(turns) => turns,
            Err(why) => {
                let steps = steps.as_array().map_or(0, Vec::len);
                // Each of its steps may be a request.
                for _ in 0..steps.max(1) {
                    self.omit(pointer, "loop", why.clone());
                }
                return;
            }
        };
        let inner = format!("{pointer}/loop");
        self.depth += 1;
        let text = steps.to_string();
        let is_fixed = match &turns {
            Turns::Over(_) => false,
            Turns::Count(..) => !text.contains(&index) && !text.contains("\"capture\""),
        };
        match turns {
            Turns::Count(from, to) if is_fixed || to - from > TURNS_MAX as u64 => {
                let count = u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
                let times = self.times;
                self.times = times.saturating_mul(count);
                if !is_fixed {
                    self.unknown
                        .push((index, format!("the loop has more than {TURNS_MAX} turns")));
                }
                if count > 0 {
                    self.steps(&inner, Some(steps));
                }
                self.times = times;
            }
            Turns::Count(from, to) => {
                for number in from..to {
                    self.turns.push((index.clone(), number.into()));
                    self.steps(&inner, Some(steps));
                    self.turns.pop();
                }
            }
            Turns::Over(values) => {
                for (number, value) in values.into_iter().take(TURNS_MAX).enumerate() {
                    self.turns.push((index.clone(), number.into()));
                    self.turns.push((element.clone(), value));
                    self.steps(&inner, Some(steps));
                    self.turns.truncate(self.turns.len() - 2);
                }
            }
        }
        self.depth -= 1;
    }

    /// The turns of a loop, if the file has them.
    fn turns_of(&self, step: &Value) -> Result<Turns, String> {
        let unknown = || "the number of turns is known only at run time".to_owned();
        match step.get("over") {
            Some(Value::Array(values)) => return Ok(Turns::Over(values.clone())),
            Some(Value::String(name)) => {
                return match self.meaning(name) {
                    Ok(Meaning::Known(Value::Array(values))) => Ok(Turns::Over(values)),
                    _ => Err(unknown()),
                };
            }
            Some(_) => return Err(unknown()),
            None => {}
        }
        if step.get("whileTrue").is_some() {
            return Err(unknown());
        }
        let count = step.get("count").map(plain).unwrap_or_default();
        let mut filling = Filling {
            meanings: self,
            places: Vec::new(),
        };
        let count = filling.text(&count).map_err(|_| unknown())?;
        let range = count.split_once('-').filter(|(from, _)| !from.is_empty());
        let (from, to) = match range {
            Some((from, to)) => (from.trim().parse().ok(), to.trim().parse().ok()),
            None => (Some(0), count.trim().parse().ok()),
        };
        let (from, to): (u64, u64) = from.zip(to).ok_or_else(unknown)?;
        Ok(Turns::Count(from, to.max(from)))
    }

    fn request(&mut self, pointer: &str, method: &str, step: &Value) {
        let url = step.get("url").or_else(|| step.get("uri"));
        let url = url.map(plain).unwrap_or_default();
        let own = format!("{pointer}/{method}");
        let what = format!("{method} {url}");
        let Captures { captured, unknown } = captures(step.get("capture"));
        match self.given(method, &url, step) {
            Ok((mut given, secrets)) => {
                given.line = self.test.tree.line(&own).or(self.test.tree.line(pointer));
                given.captures = captured.iter().map(|(_, it)| it.clone()).collect();
                for place in &given.places {
                    if self.captured.iter().any(|(_, word)| word == place) {
                        self.used.push(place.clone());
                    }
                }
                self.found
                    .push(Found::Request(Box::new(given), self.times, secrets));
                let names = captured.into_iter().map(|(name, it)| (name, it.name));
                self.captured.extend(names);
                self.unknown.extend(unknown);
            }
            Err(why) => {
                for (name, _) in captured {
                    let why = format!("`{name}` comes from a request that was left out");
                    self.unknown.push((name, why));
                }
                self.unknown.extend(unknown);
                self.omit(&own, &what, why);
            }
        }
    }

    fn given(&self, method: &str, url: &str, step: &Value) -> Result<(Given, Vec<String>), String> {
        if url.is_empty() {
            return Err("it has no URL".to_owned());
        }
        let mut filling = Filling {
            meanings: self,
            places: Vec::new(),
        };
        let url = filling.text(url)?;
        let mut given = Given {
            method: method.to_ascii_uppercase(),
            path: self.path(&url)?,
            ..Given::default()
        };
        let mut secrets = Vec::new();
        let mut written: Vec<(String, String)> = headers(step.get("headers")).collect();
        for (name, value) in &self.test.defaults {
            let mut names = written.iter().map(|(own, _)| own);
            if !names.any(|own| own.eq_ignore_ascii_case(name)) {
                written.push((name.clone(), value.clone()));
            }
        }
        for (name, value) in written {
            match filling.text(&value) {
                Ok(value) => given.headers.push((name, value)),
                Err(_) if is_secret(&name) => secrets.push(name),
                Err(why) => return Err(why),
            }
        }
        let query = pairs(step.get("qs"), &mut filling, Lists::Repeated)?;
        let query = with_notation("encoded", &query);
        if !query.is_empty() {
            // The engine replaces a query of the URL.
            let path = given.path.split('?').next().unwrap_or_default();
            given.path = format!("{path}?{query}");
        }
        add_body(&mut given, step, &mut filling)?;
        let places = filling.places;
        let deletes_its_own = || places.iter().any(|place| self.is_captured(place));
        if method == "delete" && !deletes_its_own() {
            return Err("the next request would not find the deleted object".to_owned());
        }
        for (key, header) in [("auth", "Authorization"), ("cookie", "Cookie")] {
            if step.get(key).is_some() {
                secrets.push(header.to_owned());
            }
        }
        if self.test.has_credentials {
            secrets.push("Authorization".to_owned());
        }
        given.name = step
            .get("name")
            .map(plain)
            .filter(|it| !it.contains("{{"))
            .unwrap_or_default();
        let (statuses, others) = expectations(step.get("expect"));
        given.status = statuses;
        given.notes.extend(notes(step, &others));
        if let Some(json) = &mut given.json {
            self.keep_kinds(json);
        }
        given.places = places;
        Ok((given, secrets))
    }

    /// Lets each captured value that is a whole text keep its kind, as the engine does.
    fn keep_kinds(&self, json: &mut Value) {
        match json {
            Value::String(text) => {
                let word = text
                    .strip_prefix("{{")
                    .and_then(|rest| rest.strip_suffix("}}"));
                if let Some(word) = word.filter(|word| self.is_captured(word)) {
                    *text = format!("{{{{json:{word}}}}}");
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.keep_kinds(item)),
            Value::Object(members) => members.values_mut().for_each(|it| self.keep_kinds(it)),
            _ => {}
        }
    }

    fn is_captured(&self, place: &str) -> bool {
        self.captured.iter().any(|(_, word)| word == place)
    }

    /// The path and query of a URL of the test, relative to its target.
    fn path(&self, url: &str) -> Result<String, String> {
        if url.starts_with('/') {
            return Ok(url_text(&format!("{}{url}", self.test.base)));
        }
        // A captured URL has to begin with a slash, as `Location` often does.
        if url.starts_with("{{") && self.test.base.is_empty() {
            return Ok(url_text(url));
        }
        let Some((_, rest)) = url.split_once("://") else {
            return Err("its URL has neither a server nor a `/` at its beginning".to_owned());
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = (&url[..url.len() - rest.len() + end], &rest[end..]);
        let url = experiment::address::url(host).map_err(|why| format!("its URL: {why}"))?;
        if self.test.origin.as_ref() != Some(&origin(&url)) {
            return Err("it goes to another server".to_owned());
        }
        Ok(url_text(&match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        }))
    }
}

/// The turns of a loop.
enum Turns {
    /// From a number, to before a number.
    Count(u64, u64),
    Over(Vec<Value>),
}
