//! Flags for conversations over WebSocket.

use std::time::Duration;

use experiment::address;
use http::Uri;
use model::{
    GraphqlProtocol, MessageContent, PlannedMessage, ReplyRule, WebSocketCall, WebSocketDialect,
};

use crate::yaml_text::quoted;

/// Flags for conversations over WebSocket.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct WebSocketArgs {
    /// The subprotocol, with a URL of ws or wss [default: graphql-transport-ws with --subscribe].
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    subprotocol: Option<String>,
    /// Start this GraphQL subscription. Each result is an event of the stream.
    #[arg(long, value_name = "OPERATION", conflicts_with_all = ["messages", "replies"], hide_short_help = true)]
    subscribe: Option<String>,
    /// Variables of the subscription, as JSON.
    #[arg(long, value_name = "JSON", value_parser = json, requires = "subscribe", hide_short_help = true)]
    variables: Option<String>,
    /// Payload of the message `connection_init`, as JSON.
    #[arg(long, value_name = "JSON", value_parser = json, requires = "subscribe", hide_short_help = true)]
    init: Option<String>,
    /// Send this text message. Each message of the server is an event of the stream.
    #[arg(long = "message", value_name = "TEXT", hide_short_help = true)]
    messages: Vec<String>,
    /// Send each message again after this time.
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires = "messages", hide_short_help = true)]
    message_every: Option<Duration>,
    /// The number of sends of each message [default: until the end of --hold].
    #[arg(long, value_name = "N", requires = "message_every", hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..))]
    message_count: Option<u64>,
    /// Every message has a reply: in order, or with the same id at a JSON pointer such as /id.
    ///
    /// The report then contains round trips from the planned time of each message to its reply. The number
    /// of each message is written at the pointer.
    #[arg(long, value_name = "order|POINTER", value_parser = replies, requires = "messages", hide_short_help = true)]
    replies: Option<ReplyRule>,
    /// Hold each conversation for this time.
    #[arg(long, value_name = "TIME", value_parser = lab::duration, hide_short_help = true)]
    hold: Option<Duration>,
}

impl WebSocketArgs {
    /// Returns the conversation of the flags. `None` for a URL of HTTP.
    ///
    /// # Errors
    /// If the flags and the URL do not fit together, or if the conversation has no end.
    pub(crate) fn call(&self, url: &Uri) -> Result<Option<WebSocketCall>, String> {
        if !address::is_websocket(url) {
            return match self.first() {
                None => Ok(None),
                Some(flag) => Err(format!(
                    "expected a URL of ws or wss with `{flag}`, found `{url}`"
                )),
            };
        }
        let named = self.subprotocol.as_deref().and_then(GraphqlProtocol::named);
        let dialect = match (&self.subscribe, &self.subprotocol) {
            (Some(_), Some(other)) if named.is_none() => {
                return Err(format!(
                    "expected graphql-transport-ws or graphql-ws with `--subscribe`, found `{other}`"
                ));
            }
            (Some(query), _) => WebSocketDialect::Graphql {
                protocol: named.unwrap_or(GraphqlProtocol::TransportWs),
                init: self.init.clone(),
                subscribe: self.operation(query),
            },
            (None, Some(name)) if named.is_some() => {
                return Err(format!(
                    "expected a subscription with `--subprotocol {name}`, found none. Give it with \
                     `--subscribe`"
                ));
            }
            (None, name) => WebSocketDialect::Raw {
                subprotocol: name.clone(),
                messages: self.planned()?,
                replies: self.replies.clone().unwrap_or_default(),
            },
        };
        Ok(Some(WebSocketCall {
            is_kept: self.subscribe.is_some(),
            dialect,
            offers: Vec::new(),
            hold: self.hold,
        }))
    }

    fn first(&self) -> Option<&'static str> {
        [
            (self.subprotocol.is_some(), "--subprotocol"),
            (self.subscribe.is_some(), "--subscribe"),
            (!self.messages.is_empty(), "--message"),
            (self.hold.is_some(), "--hold"),
        ]
        .into_iter()
        .find_map(|(is_given, flag)| is_given.then_some(flag))
    }

    fn operation(&self, query: &str) -> String {
        let query = serde_json::Value::from(query);
        match &self.variables {
            Some(variables) => format!(r#"{{"query":{query},"variables":{variables}}}"#),
            None => format!(r#"{{"query":{query}}}"#),
        }
    }

    fn planned(&self) -> Result<Vec<PlannedMessage>, String> {
        if self.message_every.is_some() && self.message_count.is_none() && self.hold.is_none() {
            return Err(
                "expected an end with `--message-every`, found none. Give `--message-count` or `--hold`"
                    .to_owned(),
            );
        }
        let planned = |text: &String| PlannedMessage {
            content: MessageContent::Text(text.clone()),
            after: Duration::ZERO,
            every: self.message_every,
            count: self.message_count,
        };
        Ok(self.messages.iter().map(planned).collect())
    }
}

/// Returns a conversation of flags as the value of `websocket` in a lab.
pub(crate) fn as_yaml(call: &WebSocketCall) -> String {
    let span = |time: Duration| format!("{}ns", time.as_nanos());
    let mut keys = Vec::new();
    match &call.dialect {
        WebSocketDialect::Raw {
            subprotocol,
            messages,
            replies,
        } => {
            keys.extend(
                subprotocol
                    .iter()
                    .map(|it| format!("protocol: {}", quoted(it))),
            );
            let message = |message: &PlannedMessage| {
                let text = match &message.content {
                    MessageContent::Text(text) => quoted(text),
                    // Flags have no binary messages.
                    MessageContent::Binary(bytes) => quoted(&String::from_utf8_lossy(bytes)),
                };
                let mut keys = vec![format!("text: {text}")];
                keys.extend(message.every.map(|every| format!("every: {}", span(every))));
                keys.extend(message.count.map(|count| format!("count: {count}")));
                format!("{{{}}}", keys.join(", "))
            };
            let list: Vec<String> = messages.iter().map(message).collect();
            keys.push(format!("messages: [{}]", list.join(", ")));
            match replies {
                ReplyRule::None => {}
                ReplyRule::Order => keys.push("replies: order".to_owned()),
                ReplyRule::Id(pointer) => keys.push(format!("replies: {}", quoted(pointer))),
            }
        }
        WebSocketDialect::Graphql {
            protocol,
            init,
            subscribe,
        } => {
            keys.push(format!("protocol: {}", protocol.word()));
            // JSON is YAML.
            keys.extend(init.iter().map(|init| format!("init: {init}")));
            keys.push(format!("subscribe: {subscribe}"));
        }
    }
    keys.extend(call.hold.map(|hold| format!("hold: {}", span(hold))));
    format!("{{{}}}", keys.join(", "))
}

fn json(text: &str) -> Result<String, String> {
    serde_json::from_str::<serde_json::Value>(text)
        .map(|_| text.to_owned())
        .map_err(|error| format!("expected JSON, found `{text}`: {error}"))
}

fn replies(text: &str) -> Result<ReplyRule, String> {
    match text {
        "order" => Ok(ReplyRule::Order),
        pointer if pointer.len() > 1 && pointer.starts_with('/') => {
            Ok(ReplyRule::Id(pointer.to_owned()))
        }
        _ => Err(format!(
            "expected `order` or a JSON pointer such as /id, found `{text}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Program {
        #[command(flatten)]
        websocket: WebSocketArgs,
    }

    fn call(url: &str, words: &[&str]) -> Result<Option<WebSocketCall>, String> {
        let words = std::iter::once(&"program").chain(words);
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        program.websocket.call(&address::socket_url(url)?)
    }

    #[test]
    fn flags_become_a_conversation_and_its_text_in_a_lab() {
        assert_eq!(call("http://a/", &[]), Ok(None));
        let found = call(
            "wss://a/",
            &["--subscribe", "subscription { a }", "--init", "{\"t\":1}"],
        );
        let text = as_yaml(&found.unwrap().unwrap());
        assert_eq!(
            text,
            r#"{protocol: graphql-transport-ws, init: {"t":1}, subscribe: {"query":"subscription { a }"}}"#
        );
        let words = [
            "--message",
            "{\"id\":0}",
            "--message-every",
            "5ms",
            "--message-count",
            "3",
            "--replies",
            "/id",
            "--hold",
            "2s",
        ];
        let found = call("ws://a/", &words).unwrap().unwrap();
        assert_eq!(found.hold, Some(Duration::from_secs(2)));
        assert_eq!(
            as_yaml(&found),
            r#"{messages: [{text: "{\"id\":0}", every: 5000000ns, count: 3}], replies: "/id", hold: 2000000000ns}"#
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (url, words, expected) in [
            ("http://a/", &["--hold", "1s"][..], "`--hold`"),
            ("http://a/", &["--subscribe", "a"], "ws or wss"),
            (
                "ws://a/",
                &["--subscribe", "a", "--subprotocol", "chat"],
                "found `chat`",
            ),
            ("ws://a/", &["--subprotocol", "graphql-ws"], "`--subscribe`"),
            (
                "ws://a/",
                &["--message", "a", "--message-every", "1s"],
                "--hold",
            ),
            (
                "ws://a/",
                &["--message", "a", "--replies", "id"],
                "JSON pointer",
            ),
            (
                "ws://a/",
                &["--subscribe", "a", "--init", "x"],
                "expected JSON",
            ),
            (
                "ws://a/",
                &["--subscribe", "a", "--message", "x"],
                "cannot be used",
            ),
            ("ftp://a/", &[], "expected http or https"),
        ] {
            let error = call(url, words).unwrap_err();
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
