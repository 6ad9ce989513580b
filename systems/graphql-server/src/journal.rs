//! The log: one JSON object a line on standard error, so that a person and a program can read it.
//!
//! Absent on purpose: a line for each request, unless asked for with `--log request`.

use std::io::Write as _;

use serde_json::{Map, Value};

use crate::config::LogLevel;

/// Writes what is at or below its level.
#[derive(Debug, Clone, Copy)]
pub struct Journal {
    level: LogLevel,
}

impl Journal {
    /// A log of this level; it also receives what the HTTP libraries report as wrong.
    #[must_use]
    pub fn open(level: LogLevel) -> Self {
        let journal = Self { level };
        // Fails when a log is open already, which then goes on as it was.
        if log::set_boxed_logger(Box::new(journal)).is_ok() {
            log::set_max_level(match level {
                LogLevel::Off => log::LevelFilter::Off,
                _ => log::LevelFilter::Warn,
            });
        }
        journal
    }

    /// Whether lines of this level are written.
    #[must_use]
    pub fn writes(&self, level: LogLevel) -> bool {
        level <= self.level
    }

    /// Writes one line: the time, the level, the event and its fields in order.
    pub fn write(&self, level: LogLevel, event: &str, fields: &[(&str, Value)]) {
        if !self.writes(level) {
            return;
        }
        let mut line = line(level, event, fields);
        line.push('\n');
        // Nobody is left to be told when standard error is closed.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// How important a library's report is to us. What its HTTP part reports is about one request or
/// one connection, so any client could fill the log with it.
fn importance(source: &str) -> LogLevel {
    if source.contains("http") {
        LogLevel::Request
    } else {
        LogLevel::Error
    }
}

impl log::Log for Journal {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn && self.writes(importance(metadata.target()))
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let fields = [
                ("source", record.target().into()),
                ("message", record.args().to_string().into()),
            ];
            self.write(importance(record.target()), "library", &fields);
        }
    }

    fn flush(&self) {}
}

fn line(level: LogLevel, event: &str, fields: &[(&str, Value)]) -> String {
    let level = match level {
        LogLevel::Off | LogLevel::Error => "error",
        LogLevel::Info => "info",
        LogLevel::Request => "request",
    };
    let mut entries = Map::new();
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
    entries.insert("time".to_owned(), now.to_string().into());
    entries.insert("level".to_owned(), level.into());
    entries.insert("event".to_owned(), event.into());
    for (name, value) in fields {
        entries.insert((*name).to_owned(), value.clone());
    }
    Value::Object(entries).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_json_object_whatever_it_holds() {
        let text = line(LogLevel::Info, "started", &[("url", "http://\"\n".into())]);
        assert_eq!(text.lines().count(), 1);
        let read: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(read["event"], "started");
        assert_eq!(read["url"], "http://\"\n");
        assert!(read["time"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn a_level_includes_those_before_it() {
        let journal = Journal {
            level: LogLevel::Info,
        };
        assert!(journal.writes(LogLevel::Error) && journal.writes(LogLevel::Info));
        assert!(!journal.writes(LogLevel::Request));
    }
}
