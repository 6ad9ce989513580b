//! Flags for responses that are streams of events.

use model::{EventCheck, Framing, StreamEnd, StreamRule};

use crate::yaml_text::quoted;

/// Flags for responses that are streams of events.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StreamArgs {
    /// Responses are streams: sse, lines, chunks, multipart or messages.
    ///
    /// The report then contains the time to the first event and the gaps between events. A response may
    /// last as long as --timeout.
    #[arg(long, value_name = "FRAMING", value_parser = framing)]
    stream: Option<Framing>,
    /// The event that ends a stream: data:[DONE], type:complete or count:50 [default: the end of the response].
    #[arg(long, value_name = "EVENT", requires = "stream", value_parser = end, hide_short_help = true)]
    stream_ends: Option<StreamEnd>,
    /// Reject streams with another number of events.
    ///
    /// The event of --stream-ends does not count if its data or type ends the stream.
    #[arg(long, value_name = "N", requires = "stream", hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Reject streams with an event that is not JSON, or no GraphQL result without errors: json or graphql.
    #[arg(long, value_name = "CONTENT", requires = "stream", value_parser = each, hide_short_help = true)]
    each_event: Option<EventCheck>,
    /// JSON pointer to the time in an event at which its publisher sent it: /at.
    #[arg(long, value_name = "POINTER", requires = "stream", value_parser = pointer, hide_short_help = true)]
    sent_at: Option<String>,
}

impl StreamArgs {
    /// Returns the rule of the flags. `None` if responses are no streams.
    ///
    /// # Errors
    /// If the framing and the end or the number of events do not fit together.
    pub(crate) fn rule(&self) -> Result<Option<StreamRule>, String> {
        let Some(framing) = self.stream else {
            return Ok(None);
        };
        let is_counted =
            self.events.is_some() || matches!(self.stream_ends, Some(StreamEnd::Count(_)));
        if framing == Framing::Chunks && is_counted {
            return Err(
                "expected no number of events with `--stream chunks`, found one. A proxy may join or split \
                 chunks. Write `--stream sse` or `--stream lines`"
                    .to_owned(),
            );
        }
        let is_complete = self.stream_ends == Some(StreamEnd::Type("complete".to_owned()));
        let has_types =
            framing == Framing::ServerSent || (framing == Framing::Messages && is_complete);
        if !has_types && matches!(self.stream_ends, Some(StreamEnd::Type(_))) {
            return Err(format!(
                "expected `--stream sse` with an end by type, found `--stream {}`. Only server-sent events \
                 have a type",
                framing.word()
            ));
        }
        Ok(Some(StreamRule {
            framing,
            end: self.stream_ends.clone(),
            events: self.events,
            each: self.each_event.unwrap_or_default(),
            sent_at: self.sent_at.clone(),
        }))
    }
}

/// Returns a rule as the value of `stream` in a lab.
pub(crate) fn as_yaml(rule: &StreamRule) -> String {
    let mut keys = vec![format!("framing: {}", rule.framing.word())];
    match &rule.end {
        None => {}
        Some(StreamEnd::Count(count)) => keys.push(format!("ends: {{count: {count}}}")),
        Some(StreamEnd::Data(data)) => {
            let text = String::from_utf8_lossy(data);
            keys.push(format!("ends: {{data: {}}}", quoted(&text)));
        }
        Some(StreamEnd::Type(name)) => keys.push(format!("ends: {{type: {}}}", quoted(name))),
    }
    keys.extend(rule.events.map(|events| format!("events: {events}")));
    match rule.each {
        EventCheck::Any => {}
        EventCheck::Json => keys.push("each: json".to_owned()),
        EventCheck::Graphql => keys.push("each: graphql".to_owned()),
    }
    keys.extend(
        rule.sent_at
            .as_ref()
            .map(|pointer| format!("sent-at: {}", quoted(pointer))),
    );
    format!("{{{}}}", keys.join(", "))
}

fn framing(text: &str) -> Result<Framing, String> {
    Framing::named(text).ok_or_else(|| {
        format!("expected sse, lines, chunks, multipart or messages, found `{text}`")
    })
}

fn end(text: &str) -> Result<StreamEnd, String> {
    let wrong = || {
        format!("expected data:TEXT, type:NAME or count:NUMBER such as data:[DONE], found `{text}`")
    };
    match text.split_once(':').ok_or_else(wrong)? {
        ("data", data) if !data.is_empty() => Ok(StreamEnd::Data(data.as_bytes().to_vec())),
        ("type", name) if !name.is_empty() => Ok(StreamEnd::Type(name.to_owned())),
        ("count", count) => match count.parse() {
            Ok(count @ 1..) => Ok(StreamEnd::Count(count)),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

fn each(text: &str) -> Result<EventCheck, String> {
    match text {
        "json" => Ok(EventCheck::Json),
        "graphql" => Ok(EventCheck::Graphql),
        _ => Err(format!("expected json or graphql, found `{text}`")),
    }
}

/// Reads a JSON pointer, which must begin with `/`.
pub(crate) fn pointer(text: &str) -> Result<String, String> {
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err(format!("a JSON pointer starts with `/`: write `/{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Program {
        #[command(flatten)]
        stream: StreamArgs,
    }

    fn rule(words: &[&str]) -> Result<Option<StreamRule>, String> {
        let words = std::iter::once(&"program").chain(words);
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        program.stream.rule()
    }

    #[test]
    fn flags_become_a_rule_and_its_text_in_a_lab() {
        assert_eq!(rule(&[]), Ok(None));
        let words = [
            "--stream",
            "sse",
            "--stream-ends",
            "data:[DONE]",
            "--events",
            "50",
        ];
        let found = rule(&words).unwrap().unwrap();
        assert_eq!(found.end, Some(StreamEnd::Data(b"[DONE]".to_vec())));
        let text = as_yaml(&found);
        assert_eq!(text, "{framing: sse, ends: {data: \"[DONE]\"}, events: 50}");
        let words = [
            "--stream",
            "lines",
            "--each-event",
            "json",
            "--sent-at",
            "/at",
        ];
        let found = rule(&words).unwrap().unwrap();
        let text = as_yaml(&found);
        assert_eq!(text, "{framing: lines, each: json, sent-at: \"/at\"}");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (words, expected) in [
            (
                &["--stream", "json"][..],
                "expected sse, lines, chunks, multipart or messages",
            ),
            (&["--events", "5"], "--stream"),
            (&["--stream", "chunks", "--events", "5"], "chunks"),
            (
                &["--stream", "lines", "--stream-ends", "type:x"],
                "Only server-sent events",
            ),
            (
                &["--stream", "sse", "--stream-ends", "count:0"],
                "count:NUMBER",
            ),
            (&["--stream", "sse", "--stream-ends", "[DONE]"], "data:TEXT"),
            (&["--stream", "sse", "--sent-at", "at"], "JSON pointer"),
        ] {
            let error = rule(words).unwrap_err();
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
