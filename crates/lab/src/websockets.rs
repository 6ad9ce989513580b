//! Rules for conversations over WebSocket.

use model::{
    GraphqlProtocol, MessageContent, PlannedMessage, ReplyRule, StatusRule, WebSocketCall,
    WebSocketDialect,
};
use yaml_with_places::{At, Finding, Json, Place, quote};

use crate::experiment::RequestTemplate;
use crate::formats::{Format, Pointer, Written, is_token};
use crate::places::{Places, Within};
use crate::quantities::LongerThanZero;
use crate::reading::Reading;
use crate::requests::files::bytes;
use crate::wire::{
    ExpectFile, MessageFile, RequestFile, StepFile, SubscribeFile, Switch, WebSocketFile,
};

/// The status of the answer to an upgrade.
const UPGRADED: u16 = 101;

/// A conversation that is being read.
pub(crate) struct Writing<'a, 'p> {
    file: &'a WebSocketFile,
    at: Place,
    places: Places<'p>,
}

/// Returns the conversation of a request.
pub(crate) fn call(
    request: &RequestFile,
    places: Places<'_>,
    reading: &mut Reading<'_>,
) -> Option<WebSocketCall> {
    let written = request.websocket.as_ref()?;
    let writing = Writing {
        file: &written.value,
        at: written.place,
        places,
    };
    writing.call(reading)
}

/// Refuses keys of a request of HTTP in a request with a conversation.
pub(crate) fn check_request(request: &RequestFile, reading: &mut Reading<'_>) {
    let Some(at) = request.websocket.as_ref().map(|it| it.place) else {
        return;
    };
    let status = request
        .expect
        .as_ref()
        .and_then(|expect| expect.status.as_ref());
    let others = [
        request.grpc.as_ref().map(|it| ("grpc", it.place)),
        request.method.as_ref().map(|_| ("method", at)),
        status.map(|it| ("expect.status", it.place)),
    ];
    for (key, place) in request.bodies().chain(others.into_iter().flatten()) {
        let help = match key {
            "query" => "write the operation as `websocket.subscribe: {query: …}`",
            "grpc" => "a request has one protocol. Remove one of the two",
            "method" => "an upgrade is always a GET. Remove `method`",
            "expect.status" => "the answer to an upgrade has the status 101. Remove `status`",
            _ => "write what the generator sends as `websocket.messages`",
        };
        reading.findings.add(
            Finding::new(place, format!("`{key}` and `websocket` exclude each other"))
                .related(at, "`websocket` is given here")
                .help(help),
        );
    }
}

impl Writing<'_, '_> {
    fn call(&self, reading: &mut Reading<'_>) -> Option<WebSocketCall> {
        let file = self.file;
        let word = file.protocol.as_ref().map(|it| it.value.as_str());
        let graphql = word.and_then(GraphqlProtocol::named);
        let hold = file.hold.as_ref().map(|it| it.value.0.0);
        let dialect = match graphql {
            Some(protocol) => self.graphql(protocol, reading)?,
            None => self.raw(word, reading)?,
        };
        Some(WebSocketCall {
            dialect,
            offers: self.offers(reading),
            hold,
            is_kept: match file.keep {
                None => graphql.is_some(),
                Some(switch) => switch == Switch::On,
            },
        })
    }

    /// Returns the further subprotocols. The load checks its own values.
    fn offers(&self, reading: &mut Reading<'_>) -> Vec<String> {
        let mut offers = Vec::new();
        for At { value, place } in &self.file.offers.0 {
            let filled = self.places.fill(value, Within::Text, *place, reading);
            check_token(&without_places(&filled), value, *place, reading);
            offers.push(filled);
        }
        offers
    }

    fn graphql(
        &self,
        protocol: GraphqlProtocol,
        reading: &mut Reading<'_>,
    ) -> Option<WebSocketDialect> {
        let file = self.file;
        let first = file.messages.0.first().map(|it| ("messages", it.place));
        let replies = file.replies.as_ref().map(|it| ("replies", it.place));
        for (key, place) in first.into_iter().chain(replies) {
            reading.findings.add(
                Finding::new(place, format!("`{key}` is not for `{}`", protocol.word()))
                    .help("the generator itself writes the messages of GraphQL. Remove the key"),
            );
        }
        let Some(subscribe) = &file.subscribe else {
            reading.findings.add(
                Finding::new(
                    self.at,
                    format!("`{}` without `subscribe`", protocol.word()),
                )
                .help("for example: `subscribe: {query: 'subscription { price }'}`"),
            );
            return None;
        };
        Some(WebSocketDialect::Graphql {
            protocol,
            init: file.init.as_ref().map(|init| self.json(init, reading)),
            subscribe: self.operation(&subscribe.value, reading),
        })
    }

    fn operation(&self, file: &SubscribeFile, reading: &mut Reading<'_>) -> String {
        let mut fill = |text: &At<String>| {
            let filled = self
                .places
                .fill(&text.value, Within::Quoted, text.place, reading);
            quote(&filled)
        };
        let query = fill(&file.query);
        let name = file.operation_name.as_ref().map(fill);
        let variables = file.variables.as_ref().map(|it| self.json(it, reading));
        let mut text = format!(r#"{{"query":{query}"#);
        for (key, value) in [("variables", variables), ("operationName", name)] {
            if let Some(value) = value {
                text.push_str(&format!(r#","{key}":{value}"#));
            }
        }
        text.push('}');
        text
    }

    fn raw(&self, word: Option<&str>, reading: &mut Reading<'_>) -> Option<WebSocketDialect> {
        let file = self.file;
        let init = file.init.as_ref().map(|it| ("init", it.place));
        let subscribe = file.subscribe.as_ref().map(|it| ("subscribe", it.place));
        for (key, place) in init.into_iter().chain(subscribe) {
            reading.findings.add(
                Finding::new(place, format!("`{key}` without a protocol of GraphQL")).help(
                    "write `protocol: graphql-transport-ws`, or `graphql-ws` for the older protocol",
                ),
            );
        }
        if let Some(At { value, place }) = &file.protocol {
            check_token(value, value, *place, reading);
        }
        let messages: Option<Vec<PlannedMessage>> = file
            .messages
            .0
            .iter()
            .map(|message| self.message(message, reading))
            .collect();
        Some(WebSocketDialect::Raw {
            subprotocol: word.map(str::to_owned),
            replies: self.replies(reading),
            messages: messages?,
        })
    }

    fn message(
        &self,
        written: &At<MessageFile>,
        reading: &mut Reading<'_>,
    ) -> Option<PlannedMessage> {
        let At { value: file, place } = written;
        let text = file.text.as_ref().map(|text| {
            let filled = self
                .places
                .fill(&text.value, Within::Text, text.place, reading);
            MessageContent::Text(filled)
        });
        let json = file
            .json
            .as_ref()
            .map(|json| MessageContent::Text(self.json(json, reading)));
        let binary = match &file.file {
            None => None,
            Some(file) => {
                let path = reading.resolve(&file.value, file.place);
                Some(MessageContent::Binary(bytes(&path, file.place, reading)?))
            }
        };
        let mut contents: Vec<_> = [text, json, binary].into_iter().flatten().collect();
        if contents.len() != 1 {
            let found = contents.len();
            let wrong = format!("expected one of `text`, `json` and `file`, found {found}");
            let help = "for example: `{text: hello, every: 100ms}`";
            reading.findings.add(Finding::new(*place, wrong).help(help));
            return None;
        }
        self.check_times(written, reading);
        let span = |written: &Written<LongerThanZero>| written.0.0;
        Some(PlannedMessage {
            content: contents.pop()?,
            after: file.after.as_ref().map(span).unwrap_or_default(),
            every: file.every.as_ref().map(span),
            count: file.count.as_ref().map(|it| it.value),
        })
    }

    /// Refuses a message that is never sent, or that has no last send.
    fn check_times(&self, written: &At<MessageFile>, reading: &mut Reading<'_>) {
        let At { value: file, place } = written;
        let (has_every, hold) = (file.every.is_some(), self.file.hold.is_some());
        let (wrong, help) = match &file.count {
            Some(count) if count.value == 0 => (
                "expected at least 1 send, found 0",
                "remove the message if it is not sent",
            ),
            Some(_) if !has_every => (
                "`count` without `every`",
                "write the time between two sends, such as `every: 100ms`",
            ),
            None if has_every && !hold => (
                "a repeated message without an end",
                "write its `count`, or `hold` for the whole conversation",
            ),
            _ => return,
        };
        reading.findings.add(Finding::new(*place, wrong).help(help));
    }

    fn replies(&self, reading: &mut Reading<'_>) -> ReplyRule {
        let Some(At { value, place }) = &self.file.replies else {
            return ReplyRule::None;
        };
        if self.file.messages.0.is_empty() {
            reading.findings.add(
                Finding::new(*place, "`replies` without `messages`")
                    .help("write the messages that have replies, or remove `replies`"),
            );
        }
        match value.as_str() {
            "order" => ReplyRule::Order,
            text => match Pointer::read(text) {
                Ok(pointer) if !pointer.0.is_empty() => ReplyRule::Id(pointer.0),
                _ => {
                    let wrong = format!("expected `order` or a JSON pointer, found `{text}`");
                    let help = "for example: `replies: /id`";
                    reading.findings.add(Finding::new(*place, wrong).help(help));
                    ReplyRule::None
                }
            },
        }
    }

    fn json(&self, json: &At<Json>, reading: &mut Reading<'_>) -> String {
        self.places
            .fill(&json.value.0, Within::Json, json.place, reading)
    }
}

/// Refuses a text that is no name of a subprotocol.
fn check_token(text: &str, written: &str, place: Place, reading: &mut Reading<'_>) {
    if is_token(text) {
        return;
    }
    let wrong = format!("expected the name of a subprotocol, found `{written}`");
    let help = "a name consists of letters, digits and `!#$%&'*+-.^_|~`";
    reading.findings.add(Finding::new(place, wrong).help(help));
}

/// Returns a text with a letter for each value of the load.
fn without_places(text: &str) -> String {
    let mut parts = text.split("{{");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, after) = part.split_once("}}").unwrap_or(("", part));
        whole.push('x');
        whole.push_str(after);
    }
    whole
}

/// Refuses captures of a step with a conversation. Its answer is the answer to the upgrade.
pub(crate) fn check_step(step: &StepFile, reading: &mut Reading<'_>) {
    let (Some(socket), Some((name, _))) = (&step.websocket, step.capture.0.first()) else {
        return;
    };
    reading.findings.add(
        Finding::new(
            name.place,
            "no value can be captured from the messages of `websocket`",
        )
        .related(socket.place, "`websocket` is given here")
        .help("capture the value in a step of HTTP or gRPC"),
    );
}

/// Refuses a status of the lab that no upgrade has, if a conversation has no rules of its own.
pub(crate) fn check_usual(
    requests: &[RequestTemplate],
    file: &ExpectFile,
    rule: StatusRule,
    reading: &mut Reading<'_>,
) {
    let is_meant = |it: &RequestTemplate| it.websocket.is_some() && it.expect.is_none();
    let Some(status) = &file.status else {
        return;
    };
    if rule.accepts(UPGRADED) || !requests.iter().any(is_meant) {
        return;
    }
    reading.findings.add(
        Finding::new(
            status.place,
            format!(
                "`status` is for answers of HTTP, and the answer to a `websocket` has {UPGRADED}"
            ),
        )
        .help("remove `status`, and give the requests of HTTP an `expect` of their own"),
    );
}

/// Refuses a conversation with two ends.
pub(crate) fn check_end(file: &WebSocketFile, ends: Place, reading: &mut Reading<'_>) {
    let hold = file.hold.as_ref().map(|it| ("hold", it.place));
    let replies = file.replies.as_ref().map(|it| ("replies", it.place));
    for (key, place) in hold.into_iter().chain(replies) {
        reading.findings.add(
            Finding::new(
                ends,
                format!("`ends` and `websocket.{key}` exclude each other"),
            )
            .related(place, format!("`{key}` is given here"))
            .help("a conversation has one end. Remove one of the two"),
        );
    }
}

/// Refuses a load with requests of HTTP and of WebSocket.
pub(crate) fn check_kinds<'a>(
    found: impl Iterator<Item = (bool, Place)> + Clone + 'a,
    reading: &mut Reading<'_>,
) {
    let first = found.clone().find(|(is_socket, _)| *is_socket);
    let other = found.clone().find(|(is_socket, _)| !is_socket);
    if let (Some((_, socket)), Some((_, place))) = (first, other) {
        reading.findings.add(
            Finding::new(place, "requests of HTTP and of WebSocket are in one load")
                .related(socket, "a request of WebSocket")
                .help("write two labs, one for each kind, or a `scenario` with both as steps"),
        );
    }
}
