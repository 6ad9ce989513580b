//! The subprotocols in the request of an upgrade, and the choice of the server.

use crate::general::progress::ExchangeError;
use crate::job::WebSocketCall;
use crate::measurement::FailureKind;

const NAME: &[u8] = b"sec-websocket-protocol:";

/// The subprotocols of an upgrade, filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offered {
    words: Vec<String>,
    /// True if the server must select the first.
    is_first_required: bool,
}

impl Offered {
    /// Reads the subprotocols of a rendered upgrade.
    ///
    /// # Errors
    ///
    /// If a captured value is no part of the name of a subprotocol.
    pub(super) fn read(call: &WebSocketCall, request: &[u8]) -> Result<Offered, ExchangeError> {
        let is_first_required = call.subprotocol().is_some();
        let expected = usize::from(is_first_required) + call.offers.len();
        let words = words(request);
        match words.iter().find(|word| !is_token(word)) {
            None if words.len() == expected => Ok(Offered {
                words,
                is_first_required,
            }),
            wrong => {
                let found = wrong.map_or_else(|| words.join(", "), Clone::clone);
                let reason = format!(
                    "expected a subprotocol of letters, digits and `!#$%&'*+-.^_|~`, found `{found}`"
                );
                Err(ExchangeError::failed(FailureKind::Protocol, reason))
            }
        }
    }

    /// True if the server may select this subprotocol.
    pub(super) fn accepts(&self, found: Option<&str>) -> bool {
        match found {
            None => !self.is_first_required,
            Some(found) if self.is_first_required => self.words[0] == found,
            Some(found) => self.words.iter().any(|word| word == found),
        }
    }

    /// The right answer, as text.
    pub(super) fn expected(&self) -> String {
        match &self.words[..] {
            [] => "(none)".to_owned(),
            [first, ..] if self.is_first_required => first.clone(),
            words => words.join(" or "),
        }
    }
}

fn words(request: &[u8]) -> Vec<String> {
    let mut lines = request.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then_some(value)
    });
    let text = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
    let words = text.split(',').map(str::trim);
    match text.trim().is_empty() {
        true => Vec::new(),
        false => words.map(str::to_owned).collect(),
    }
}

/// True if a text is a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use model::{ReplyRule, WebSocketDialect};

    use super::*;

    fn call(subprotocol: Option<&str>, offers: &[&str]) -> WebSocketCall {
        WebSocketCall {
            dialect: WebSocketDialect::Raw {
                subprotocol: subprotocol.map(str::to_owned),
                messages: Vec::new(),
                replies: ReplyRule::None,
            },
            offers: offers.iter().map(|&word| word.to_owned()).collect(),
            hold: None,
            is_kept: false,
        }
    }

    #[test]
    fn the_server_selects_the_protocol_and_no_token() {
        let request = b"GET / HTTP/1.1\r\nSec-WebSocket-Protocol: chat, bearer.a1\r\n\r\n";
        let named = Offered::read(&call(Some("chat"), &["{{token}}"]), request).unwrap();
        assert!(named.accepts(Some("chat")));
        assert!(!named.accepts(Some("bearer.a1")) && !named.accepts(None));
        assert_eq!(named.expected(), "chat");
        let free = Offered::read(&call(None, &["a", "b"]), request).unwrap();
        assert!(free.accepts(None) && free.accepts(Some("bearer.a1")));
        assert!(!free.accepts(Some("other")));
        assert_eq!(free.expected(), "chat or bearer.a1");
        let none = Offered::read(&call(None, &[]), b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(none.accepts(None) && !none.accepts(Some("chat")));
    }

    #[test]
    fn a_value_that_is_no_subprotocol_is_refused_in_words() {
        for value in ["a b", "a, b", "", "a=="] {
            let request = format!("GET / HTTP/1.1\r\nsec-websocket-protocol: chat, {value}\r\n");
            let refused = Offered::read(&call(Some("chat"), &["{{token}}"]), request.as_bytes());
            let words = format!("{:?}", refused.unwrap_err());
            assert!(words.contains("expected a subprotocol"), "{words}");
        }
    }
}
