//! The form of lines that a configuration chose, with the member names of Apollo Router.

mod rate;

use std::fmt::{self, Write as _};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use serde_json::{Map, Value};
use tracing::Metadata;

pub use rate::LineLimit;

/// The chosen form of lines.
static CHOSEN: RwLock<Option<Arc<LineForm>>> = RwLock::new(None);

/// The syntax of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineSyntax {
    /// A JSON object.
    #[default]
    Json,
    /// Text for people.
    Text,
    /// No lines at all.
    Off,
}

/// The parts of a line.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a key of the configuration"
)]
pub struct LineForm {
    /// The syntax of the line.
    pub syntax: LineSyntax,
    /// True if lines have their time.
    pub timestamp: bool,
    /// True if lines have their level.
    pub level: bool,
    /// True if lines have their target.
    pub target: bool,
    /// True if lines have the file of the program that wrote them.
    pub filename: bool,
    /// True if lines have the line number in that file.
    pub line_number: bool,
    /// True if lines have the id of their thread.
    pub thread_id: bool,
    /// True if lines have the name of their thread.
    pub thread_name: bool,
    /// The attributes of the service in each line.
    pub resource: Map<String, Value>,
    /// Words about the service in each line of text.
    pub service: Vec<String>,
    /// The maximum rate of similar lines. `None` means no limit.
    pub limit: Option<LineLimit>,
}

/// Chooses the form of all lines from now on. `None` means the form of this crate.
pub fn choose(form: Option<LineForm>) {
    let mut chosen = CHOSEN.write().unwrap_or_else(PoisonError::into_inner);
    *chosen = form.map(Arc::new);
}

/// The chosen form.
pub(super) fn chosen() -> Option<Arc<LineForm>> {
    let chosen = CHOSEN.read().unwrap_or_else(PoisonError::into_inner);
    chosen.clone()
}

/// An event with its fields.
pub(super) struct Line<'a> {
    pub(super) time: String,
    pub(super) metadata: &'a Metadata<'a>,
    pub(super) fields: Map<String, Value>,
}

impl LineForm {
    /// The line with its line break. An empty text if the line is left out.
    pub(super) fn line(&self, mut line: Line<'_>) -> Result<String, fmt::Error> {
        if let Some(limit) = &self.limit {
            match limit.admit(&line, rate::now()) {
                None => return Ok(String::new()),
                Some(0) => {}
                Some(left_out) => {
                    line.fields.insert("left_out".to_owned(), left_out.into());
                }
            }
        }
        match self.syntax {
            LineSyntax::Json => Ok(self.json(line)),
            LineSyntax::Text => self.text(line),
            LineSyntax::Off => Ok(String::new()),
        }
    }

    fn json(&self, line: Line<'_>) -> String {
        let metadata = line.metadata;
        let mut members = Map::new();
        let mut add = |is_shown: bool, name: &str, value: Option<Value>| {
            if let Some(value) = value.filter(|_| is_shown) {
                members.insert(name.to_owned(), value);
            }
        };
        add(self.timestamp, "timestamp", Some(line.time.into()));
        add(self.level, "level", Some(metadata.level().as_str().into()));
        add(self.target, "target", Some(metadata.target().into()));
        add(self.filename, "filename", metadata.file().map(Value::from));
        add(
            self.line_number,
            "line_number",
            metadata.line().map(Value::from),
        );
        add(self.thread_id, "thread_id", Some(thread_id().into()));
        add(self.thread_name, "thread_name", Some(thread_name().into()));
        let resource = (!self.resource.is_empty()).then(|| self.resource.clone().into());
        add(true, "resource", resource);
        for (name, value) in line.fields {
            // The parts above have precedence over a field with the same name.
            members.entry(name).or_insert(value);
        }
        let mut text = Value::from(members).to_string();
        text.push('\n');
        text
    }

    fn text(&self, mut line: Line<'_>) -> Result<String, fmt::Error> {
        let metadata = line.metadata;
        let mut words = Vec::new();
        let mut add = |is_shown: bool, word: String| {
            if is_shown {
                words.push(word);
            }
        };
        add(self.timestamp, line.time);
        add(self.level, format!("{:>5}", metadata.level().as_str()));
        self.service.iter().for_each(|it| add(true, it.clone()));
        add(self.thread_name, thread_name());
        add(self.thread_id, thread_id());
        add(self.target, format!("{}:", metadata.target()));
        let place = match (metadata.file(), metadata.line()) {
            (Some(file), Some(line)) if self.filename && self.line_number => {
                format!("{file}:{line}:")
            }
            (Some(file), _) if self.filename => format!("{file}:"),
            (_, Some(line)) if self.line_number => format!("{line}:"),
            _ => String::new(),
        };
        add(!place.is_empty(), place);
        let message = line.fields.remove("message");
        let message = message.as_ref().and_then(Value::as_str).unwrap_or_default();
        // A line break in a message would look like another line.
        add(!message.is_empty(), message.replace('\n', "\\n"));
        let mut text = words.join(" ");
        for (name, value) in line.fields.iter().chain(&self.resource) {
            write!(text, " {name}={value}")?;
        }
        text.push('\n');
        Ok(text)
    }
}

fn thread_id() -> String {
    format!("{:?}", thread::current().id())
}

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}
