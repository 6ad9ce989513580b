//! The log: one JSON object a line on standard error, so that a person and a program can read it.
//!
//! It is the backend of the `log` facade, so that scripts and libraries write to it as well. What
//! libraries say about single connections is kept for `debug`: any client could fill the log
//! with it.

use std::io::Write as _;

use log::{Level, LevelFilter, Metadata, Record};
use serde_json::{Map, Value};

use crate::command_line::LogLevel;

/// The target of lines about single requests, which have a level of their own.
pub(crate) const REQUEST: &str = "request";

/// Writes what is at or below its level.
#[derive(Clone, Copy, Debug)]
struct Journal {
    level: LogLevel,
}

/// Opens the log.
pub(crate) fn open(level: LogLevel) {
    // Fails when a log is open already, which then goes on as it was.
    if log::set_boxed_logger(Box::new(Journal { level })).is_ok() {
        log::set_max_level(match level {
            LogLevel::Off => LevelFilter::Off,
            LogLevel::Error => LevelFilter::Error,
            LogLevel::Warn => LevelFilter::Warn,
            LogLevel::Info | LogLevel::Request => LevelFilter::Info,
            LogLevel::Debug => LevelFilter::Debug,
            LogLevel::Trace => LevelFilter::Trace,
        });
    }
}

impl log::Log for Journal {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.target() == REQUEST {
            return self.level >= LogLevel::Request;
        }
        let needed = match metadata.level() {
            Level::Error => LogLevel::Error,
            Level::Warn => LogLevel::Warn,
            Level::Info => LogLevel::Info,
            Level::Debug => LogLevel::Debug,
            Level::Trace => LogLevel::Trace,
        };
        let is_library = ["hyper", "h2", "mio", "rustls", "tokio"]
            .iter()
            .any(|library| metadata.target().starts_with(library));
        self.level >= needed && (!is_library || self.level >= LogLevel::Debug)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            write(&line(record));
        }
    }

    fn flush(&self) {}
}

/// Writes one line; the time and `"level"` are already in it.
fn write(line: &str) {
    // Nobody is left to be told when standard error is closed.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn line(record: &Record<'_>) -> String {
    let mut entries = Map::new();
    entries.insert("time".to_owned(), now().into());
    let level = match record.target() {
        REQUEST => "request".to_owned(),
        _ => record.level().as_str().to_ascii_lowercase(),
    };
    entries.insert("level".to_owned(), level.into());
    entries.insert("source".to_owned(), record.target().into());
    let message = record.args().to_string();
    match serde_json::from_str::<Map<String, Value>>(&message) {
        // A line about a request is an object already.
        Ok(members) if record.target() == REQUEST => entries.extend(members),
        _ => {
            entries.insert("message".to_owned(), message.into());
        }
    }
    let mut line = Value::Object(entries).to_string();
    line.push('\n');
    line
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(target: &str, message: &str) -> Value {
        let line = line(
            &Record::builder()
                .target(target)
                .level(Level::Info)
                .args(format_args!("{message}"))
                .build(),
        );
        assert_eq!(line.matches('\n').count(), 1);
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_line_is_one_json_object_whatever_it_says() {
        let read = record("main.rhai", "a \"quote\"\nand a line");
        assert_eq!(read["message"], "a \"quote\"\nand a line");
        assert_eq!(read["source"], "main.rhai");
        assert!(read["time"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn a_line_about_a_request_has_its_own_members() {
        let read = record(REQUEST, r#"{"status":200,"path":"/"}"#);
        assert_eq!(read["status"], 200);
        assert_eq!(read["level"], "request");
    }
}
