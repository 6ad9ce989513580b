//! Boundaries of events in a body that arrives in pieces.

use model::Framing;

use crate::check::KEPT_MAX;
use crate::parser::Head;

/// Bytes before the length of a gRPC message: the flag of compression and the length.
const GRPC_PREFIX: usize = 5;

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The type of a server-sent event, or the flag of a message of gRPC. Otherwise empty.
    pub(crate) name: &'a [u8],
    /// The content of the event.
    pub(crate) data: &'a [u8],
}

/// Finds events in a body. Bytes of an incomplete event are kept, at most [`KEPT_MAX`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Splitter {
    framing: Option<Framing>,
    /// Multipart: two hyphens and the boundary.
    delimiter: Vec<u8>,
    /// The bytes that belong to no event yet: a line, a part of a multipart body, or a message.
    kept: Vec<u8>,
    /// Type and data of the event, up to here or complete.
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Server-sent events: true after a carriage return, because a line feed may follow.
    after_return: bool,
    /// Multipart: true after the first delimiter.
    is_inside: bool,
    is_too_large: bool,
    /// True if `name` and `data` are a complete event.
    is_complete: bool,
}

impl Splitter {
    /// Prepares for the body of a response with this head.
    pub(crate) fn start(&mut self, framing: Framing, head: &Head<'_>) {
        self.framing = Some(framing);
        self.delimiter = match framing {
            Framing::Multipart => delimiter(head.header("content-type").unwrap_or_default()),
            _ => Vec::new(),
        };
        self.kept.clear();
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        self.after_return = false;
        self.is_inside = false;
        self.is_too_large = false;
        self.is_complete = false;
    }

    /// Drops the bytes of an earlier response.
    pub(crate) fn reset(&mut self) {
        self.framing = None;
        self.is_too_large = false;
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// True if bytes of an incomplete event are kept.
    pub(crate) fn is_within(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns the complete event.
    pub(crate) fn part(&self) -> Part<'_> {
        Part {
            name: &self.name,
            data: &self.data,
        }
    }

    /// Reads the next event in `rest`, and shortens `rest` by the bytes that were used. False if more bytes
    /// are needed.
    pub(crate) fn next(&mut self, rest: &mut &[u8]) -> bool {
        self.forget();
        self.is_complete = match self.framing {
            None => false,
            Some(Framing::ServerSent) => self.next_server_sent(rest),
            Some(Framing::Lines) => self.next_line(rest),
            // Messages of WebSocket arrive whole, and not by this way.
            Some(Framing::Chunks | Framing::Messages) => {
                self.data.extend_from_slice(std::mem::take(rest));
                !self.data.is_empty()
            }
            Some(Framing::Multipart) => self.next_multipart(rest),
            Some(Framing::Grpc) => self.next_message(rest),
        };
        self.is_complete
    }

    /// Reads the event that the end of the body completes. False without such an event.
    pub(crate) fn last(&mut self) -> bool {
        self.forget();
        // An incomplete server-sent event is dropped (WHATWG HTML, section 9.2.6).
        if self.framing == Some(Framing::Lines) {
            self.data.extend_from_slice(trimmed(&self.kept));
            self.kept.clear();
            self.is_complete = !self.data.is_empty();
        }
        self.is_complete
    }

    /// Clears the previous event.
    fn forget(&mut self) {
        if std::mem::take(&mut self.is_complete) {
            self.name.clear();
            self.data.clear();
            self.has_data = false;
        }
    }

    /// Keeps bytes of an incomplete event.
    fn keep(&mut self, bytes: &[u8]) {
        if self.kept.len() + self.data.len() + bytes.len() > KEPT_MAX {
            self.is_too_large = true;
            // Not `clear`, which would keep the allocation.
            self.kept = Vec::new();
        } else {
            self.kept.extend_from_slice(bytes);
        }
    }

    fn next_line(&mut self, rest: &mut &[u8]) -> bool {
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.keep(&rest[..end]);
            *rest = &rest[end + 1..];
            self.data.extend_from_slice(trimmed(&self.kept));
            self.kept.clear();
            if !self.data.is_empty() {
                return true;
            }
        }
        self.keep(std::mem::take(rest));
        false
    }

    fn next_server_sent(&mut self, rest: &mut &[u8]) -> bool {
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                *rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let Some(end) = end else {
                self.keep(std::mem::take(rest));
                return false;
            };
            self.after_return = rest[end] == b'\r';
            let line = &rest[..end];
            *rest = &rest[end + 1..];
            let is_end = if self.kept.is_empty() {
                self.field(line)
            } else {
                self.keep(line);
                let mut line = std::mem::take(&mut self.kept);
                let is_end = self.field(&line);
                line.clear();
                self.kept = line;
                is_end
            };
            if is_end {
                return true;
            }
        }
        false
    }

    /// Takes one line. Returns true if it ends an event with a type or data.
    fn field(&mut self, line: &[u8]) -> bool {
        if line.is_empty() {
            return self.has_data || !self.name.is_empty();
        }
        // A byte order mark may precede the first line.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"data" if self.data.len() + value.len() > KEPT_MAX => {
                self.is_too_large = true;
                self.data = Vec::new();
            }
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            // Comments, `id`, `retry` and unknown fields.
            _ => {}
        }
        false
    }

    fn next_message(&mut self, rest: &mut &[u8]) -> bool {
        loop {
            let needed = match self.kept.get(..GRPC_PREFIX) {
                None => GRPC_PREFIX,
                Some(prefix) => GRPC_PREFIX + message_bytes(prefix),
            };
            let missing = needed.saturating_sub(self.kept.len()).min(rest.len());
            let (own, later) = rest.split_at(missing);
            *rest = later;
            self.keep(own);
            // The length is enough. A server must not make us keep that much.
            if self.kept.len() == GRPC_PREFIX && message_bytes(&self.kept) > KEPT_MAX {
                self.is_too_large = true;
                self.kept = Vec::new();
                return false;
            }
            if self.kept.len() >= GRPC_PREFIX
                && self.kept.len() == GRPC_PREFIX + message_bytes(&self.kept)
            {
                self.name.push(self.kept[0]);
                self.data.extend_from_slice(&self.kept[GRPC_PREFIX..]);
                self.kept.clear();
                return true;
            }
            if rest.is_empty() || self.is_too_large {
                return false;
            }
        }
    }

    fn next_multipart(&mut self, rest: &mut &[u8]) -> bool {
        // A delimiter may be cut by the end of a piece, so bytes are searched in the kept form.
        self.keep(std::mem::take(rest));
        while let Some(at) = find(&self.kept, &self.delimiter) {
            let after = at + self.delimiter.len();
            if std::mem::replace(&mut self.is_inside, true) {
                self.data.extend_from_slice(content(&self.kept[..at]));
            }
            // The bytes after the delimiter belong to the next part.
            self.kept.drain(..after);
            if !self.data.is_empty() {
                return true;
            }
        }
        false
    }
}

/// Returns the bytes of the message after a prefix of gRPC.
fn message_bytes(prefix: &[u8]) -> usize {
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    usize::try_from(length).unwrap_or(usize::MAX - GRPC_PREFIX)
}

/// Returns the bytes before each part: two hyphens and the boundary of the content type.
fn delimiter(content_type: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(content_type);
    let mut parameters = text.split(';').skip(1).map(str::trim);
    let boundary = parameters.find_map(|one| {
        let (name, value) = one.split_once('=')?;
        name.eq_ignore_ascii_case("boundary")
            .then(|| value.trim_matches('"').to_owned())
    });
    // The boundary of incremental delivery in GraphQL, for a header without a boundary.
    format!("--{}", boundary.as_deref().unwrap_or("-")).into_bytes()
}

/// Returns the content of a part, without its headers and the line end before the next delimiter.
fn content(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    let part = part.strip_suffix(b"\r").unwrap_or(part);
    for blank in [&b"\r\n\r\n"[..], b"\n\n"] {
        if let Some(at) = find(part, blank) {
            return &part[at + blank.len()..];
        }
    }
    // Only the line end after the delimiter, or the hyphens after the last.
    b""
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// Returns a line without its carriage return.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
