//! The log: one JSON object per line on standard error, for people and programs.
//!
//! Each line has `time` (UTC), `level`, `target` and then the fields of the event. The field `message` is its
//! text. Lines about single requests have the target [`REQUEST`] and their own level, because any client
//! could fill the log with them. For the same reason the libraries below a connection are silent up to
//! [`LogLevel::Info`].

mod form;

use std::fmt;
use std::io;

use clap::ValueEnum;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_log::NormalizeEvent as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use form::{Line, chosen};
pub use form::{LineForm, LineLimit, LineSyntax, choose};

/// The field with further fields, as the text of a JSON object. A program can choose their names at run time,
/// unlike the names of other fields.
pub const ATTRIBUTES: &str = "attributes";

/// The target of lines about single requests.
pub const REQUEST: &str = "request";

/// Libraries that log single connections and requests.
const LIBRARIES: [&str; 11] = [
    "actix_http",
    "actix_web",
    "h2",
    "hive_router_query_planner",
    "hyper",
    "hyper_util",
    "mio",
    "ntex::http",
    "ntex::web",
    "rustls",
    "tokio",
];

/// Level of the log. Each level includes the levels before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum LogLevel {
    /// No output.
    Off,
    /// Errors.
    Error,
    /// Warnings.
    Warn,
    /// Start, stop, and changes between them.
    Info,
    /// One line per request, which slows the service down.
    Request,
    /// Steps of each request.
    Debug,
    /// All messages.
    Trace,
}

/// Opens the log of this process. If it is already open, it stays unchanged.
pub fn open(level: LogLevel) {
    let lines = tracing_subscriber::fmt::layer()
        .event_format(JsonLine)
        .with_writer(io::stderr)
        // The library would panic if standard error is closed.
        .log_internal_errors(false);
    // Fails only if a log is already open, as in tests that start two systems.
    let _ = tracing_subscriber::registry()
        .with(targets(level))
        .with(lines)
        .try_init();
}

/// Writes each panic as a line of the log, instead of text that no program can read. A panic that the program
/// handles, such as one of a library, is also a line.
pub fn panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("(without a message)");
        match panic.location() {
            Some(place) => tracing::error!("a thread panicked at {place}: {text}"),
            None => tracing::error!("a thread panicked: {text}"),
        }
    }));
}

fn targets(level: LogLevel) -> Targets {
    let ours = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info | LogLevel::Request => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let requests = if level >= LogLevel::Request {
        LevelFilter::INFO
    } else {
        LevelFilter::OFF
    };
    let libraries = match level {
        LogLevel::Debug | LogLevel::Trace => ours,
        // A library's warning concerns one connection, so it belongs to the level of request lines.
        LogLevel::Request => LevelFilter::WARN,
        _ => LevelFilter::OFF,
    };
    Targets::new()
        .with_default(ours)
        .with_target(REQUEST, requests)
        .with_targets(LIBRARIES.map(|library| (library, libraries)))
}

/// Writes an event as one JSON object.
struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // Records of the `log` facade share one metadata. Their own target and level are in the normalized
        // one.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        if let Some(form) = chosen() {
            let mut time = String::new();
            SystemTime.format_time(&mut Writer::new(&mut time))?;
            let mut fields = Gathered(Map::new());
            event.record(&mut fields);
            let line = Line {
                time,
                metadata,
                fields: fields.0,
            };
            return writer.write_str(&form.line(line)?);
        }
        writer.write_str("{\"time\":\"")?;
        SystemTime.format_time(&mut writer)?;
        // Levels and times need no escapes. serde_json writes and escapes the rest.
        let level = metadata.level().as_str().to_ascii_lowercase();
        let target = Value::from(metadata.target());
        write!(writer, "\",\"level\":\"{level}\",\"target\":{target}")?;
        let mut fields = Fields {
            writer: writer.by_ref(),
            outcome: Ok(()),
        };
        event.record(&mut fields);
        // The visitor's methods cannot return an error, so it is checked here.
        fields.outcome?;
        writer.write_str("}\n")
    }
}

/// The value of a field with text.
fn text(field: &Field, value: &str) -> Value {
    let is_json = field.name() == ATTRIBUTES;
    let json = is_json.then(|| serde_json::from_str(value).ok()).flatten();
    json.unwrap_or_else(|| value.into())
}

/// Gathers the fields of an event. Fields of the `log` facade are already in the metadata.
struct Gathered(Map<String, Value>);

impl Gathered {
    fn put(&mut self, field: &Field, value: Value) {
        if !field.name().starts_with("log.") {
            self.0.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Gathered {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, text(field, value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

/// Appends the fields of an event in order.
struct Fields<'a> {
    writer: Writer<'a>,
    outcome: fmt::Result,
}

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: &Value) {
        // Fields that the `log` facade adds to a record are already in the metadata.
        if self.outcome.is_ok() && !field.name().starts_with("log.") {
            let name = Value::from(field.name());
            self.outcome = write!(self.writer, ",{name}:{value}");
        }
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, &format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, &text(field, value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, &value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, &value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, &value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, &value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `work` logs at a level.
    fn lines(level: LogLevel, work: impl FnOnce()) -> Vec<Value> {
        let written = Written::default();
        let writer = written.clone();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(JsonLine)
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry()
            .with(targets(level))
            .with(layer);
        tracing::subscriber::with_default(subscriber, work);
        let bytes = written.0.lock().unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        let read = |line| serde_json::from_str(line).unwrap();
        text.lines().map(read).collect()
    }

    #[test]
    fn a_line_is_one_json_object_whatever_it_says() {
        let lines = lines(LogLevel::Info, || {
            let name: Option<&str> = None;
            tracing::info!(workers = 2, name, "a \"quote\"\nand {}", "a line");
        });
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert_eq!(line["message"], "a \"quote\"\nand a line");
        assert_eq!(
            (&line["level"], &line["workers"]),
            (&"info".into(), &2.into())
        );
        assert_eq!(line["target"], "telemetry::log::tests");
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
        assert!(line.get("name").is_none());
    }

    #[test]
    fn a_level_includes_those_before_it() {
        let all = || {
            tracing::error!("1");
            tracing::warn!("2");
            tracing::info!("3");
            tracing::info!(target: REQUEST, status = 200);
            tracing::debug!("5");
            tracing::trace!("6");
        };
        for (count, level) in [
            LogLevel::Off,
            LogLevel::Error,
            LogLevel::Warn,
            LogLevel::Info,
            LogLevel::Request,
            LogLevel::Debug,
            LogLevel::Trace,
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(lines(level, all).len(), count, "{level:?}");
        }
    }

    #[test]
    fn libraries_below_a_connection_are_silent_until_they_are_asked() {
        let all = || tracing::error!(target: "hyper::proto", "a client left");
        assert!(lines(LogLevel::Info, all).is_empty());
        assert_eq!(lines(LogLevel::Request, all).len(), 1);
    }

    #[test]
    fn attributes_are_members_of_their_own_object() {
        let lines = lines(LogLevel::Info, || {
            tracing::info!(attributes = r#"{"a.b":[1]}"#, "x");
            tracing::info!(attributes = "no json", "x");
        });
        assert_eq!(lines[0]["attributes"]["a.b"][0], 1);
        assert_eq!(lines[1]["attributes"], "no json");
    }

    /// A line with a message and a status.
    fn line(form: &LineForm) -> String {
        let metadata = tracing::metadata::Metadata::new(
            "event",
            "place",
            tracing::Level::WARN,
            Some("file.rs"),
            Some(7),
            None,
            tracing::field::FieldSet::new(&[], tracing::callsite::Identifier(&Nowhere)),
            tracing::metadata::Kind::EVENT,
        );
        let fields = serde_json::json!({"message": "a\nb", "status": 200});
        let line = Line {
            time: "now".to_owned(),
            metadata: &metadata,
            fields: fields.as_object().unwrap().clone(),
        };
        form.line(line).unwrap()
    }

    #[test]
    fn a_chosen_form_has_the_parts_that_it_names() {
        let text = LineForm {
            syntax: LineSyntax::Text,
            timestamp: true,
            level: true,
            filename: true,
            line_number: true,
            service: vec!["front".to_owned()],
            ..LineForm::default()
        };
        assert_eq!(line(&text), "now  WARN front file.rs:7: a\\nb status=200\n");
        let json = LineForm {
            target: true,
            resource: Map::from_iter([("service.name".to_owned(), "front".into())]),
            ..LineForm::default()
        };
        let read: Value = serde_json::from_str(&line(&json)).unwrap();
        let expected = serde_json::json!({
            "target": "place",
            "resource": {"service.name": "front"},
            "message": "a\nb",
            "status": 200,
        });
        assert_eq!(read, expected);
        let off = LineForm {
            syntax: LineSyntax::Off,
            ..LineForm::default()
        };
        assert_eq!(line(&off), "");
    }

    #[test]
    fn similar_lines_have_a_limit() {
        let limited = LineForm {
            syntax: LineSyntax::Text,
            limit: Some(LineLimit {
                capacity: 2,
                interval: std::time::Duration::from_secs(3_600),
            }),
            ..LineForm::default()
        };
        let lines: String = (0..5).map(|_| line(&limited)).collect();
        assert_eq!(lines.lines().count(), 2, "{lines}");
        // After the interval, a line has the number of lines before it that were left out.
        let short = LineForm {
            limit: Some(LineLimit {
                capacity: 1,
                interval: std::time::Duration::ZERO,
            }),
            ..limited
        };
        assert!(line(&short).contains(" left_out=3"));
    }

    struct Nowhere;

    impl tracing::Callsite for Nowhere {
        fn set_interest(&self, _: tracing::subscriber::Interest) {}

        fn metadata(&self) -> &tracing::Metadata<'_> {
            unreachable!("only its address is used")
        }
    }
}
