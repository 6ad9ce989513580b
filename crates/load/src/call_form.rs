//! The forms of calls on a connection: gRPC, gRPC-Web, and the two forms of Connect.

use grpc_schema::Method;
use model::RpcProtocol;

/// The largest message at the end of an answer, and the largest error of Connect. Both contain a status.
pub(crate) const END_MAX: usize = 1024 * 1024;

/// The flag of a compressed message.
pub(crate) const COMPRESSED: u8 = 1;

/// The form of a call and its answers on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Messages with prefixes, and the status in trailers of HTTP.
    Grpc,
    /// Messages with prefixes. The last message of an answer has the trailers.
    Web,
    /// One message without a prefix. An error is JSON with another HTTP status than 200.
    ConnectUnary,
    /// Messages with prefixes. The last message of an answer is JSON with the status.
    ConnectStream,
}

impl Form {
    /// The form of the calls of a method. An unknown method may have streams.
    pub(crate) fn of(protocol: RpcProtocol, method: Option<&Method>) -> Form {
        let is_unary = |method: &Method| !method.takes_several() && !method.answers_several();
        match protocol {
            RpcProtocol::Grpc => Form::Grpc,
            RpcProtocol::GrpcWeb => Form::Web,
            RpcProtocol::Connect if method.is_some_and(is_unary) => Form::ConnectUnary,
            RpcProtocol::Connect => Form::ConnectStream,
        }
    }

    /// The form of a call with this content type.
    pub(crate) fn of_content_type(content_type: &str) -> Option<Form> {
        let all = [
            Form::Grpc,
            Form::Web,
            Form::ConnectUnary,
            Form::ConnectStream,
        ];
        all.into_iter().find(|form| form.accepts(content_type))
    }

    /// The content type of a call.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Form::Grpc => "application/grpc",
            Form::Web => "application/grpc-web+proto",
            Form::ConnectUnary => "application/proto",
            Form::ConnectStream => "application/connect+proto",
        }
    }

    /// The content type of an answer, in messages. gRPC and gRPC-Web allow a suffix.
    pub(crate) fn answer_type(self) -> &'static str {
        match self {
            Form::Web => "application/grpc-web",
            form => form.content_type(),
        }
    }

    /// True if an answer may have this content type.
    pub(crate) fn accepts(self, content_type: &str) -> bool {
        let Some(rest) = content_type.strip_prefix(self.answer_type()) else {
            return false;
        };
        let rest = match self {
            Form::Web => rest.strip_prefix("+proto").unwrap_or(rest),
            _ => rest,
        };
        rest.is_empty() || rest.starts_with(';') || (self == Form::Grpc && rest.starts_with('+'))
    }

    /// The header with the coding of compressed messages.
    pub(crate) fn encoding(self) -> &'static str {
        match self {
            Form::Grpc | Form::Web => "grpc-encoding",
            Form::ConnectUnary => "content-encoding",
            Form::ConnectStream => "connect-content-encoding",
        }
    }

    /// The header with the codings that the server may use.
    pub(crate) fn accepted_encoding(self) -> &'static str {
        match self {
            Form::Grpc | Form::Web => "grpc-accept-encoding",
            Form::ConnectUnary => "accept-encoding",
            Form::ConnectStream => "connect-accept-encoding",
        }
    }

    /// The flag of the message at the end of an answer. `None` if an answer has no such message.
    pub(crate) fn end_flag(self) -> Option<u8> {
        match self {
            Form::Grpc | Form::ConnectUnary => None,
            Form::Web => Some(0x80),
            Form::ConnectStream => Some(0x02),
        }
    }

    /// True if the status is in trailers, of HTTP or at the end of the body.
    pub(crate) fn has_trailers(self) -> bool {
        matches!(self, Form::Grpc | Form::Web)
    }
}

/// Returns the message at the end of an answer.
pub(crate) fn end_message(form: Form, text: &str) -> Vec<u8> {
    let mut framed = Vec::new();
    grpc_schema::frame(text.as_bytes(), false, &mut framed);
    framed[0] |= form.end_flag().unwrap_or_default();
    framed
}

/// Returns the lines in the last message of gRPC-Web.
///
/// # Errors
/// The first line without a name.
pub(crate) fn trailer_lines(message: &[u8]) -> Result<Vec<(String, String)>, String> {
    let lines = message.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| String::from_utf8_lossy(line.trim_ascii()));
    let lines = lines.filter(|line| !line.is_empty());
    let pair = |line: std::borrow::Cow<'_, str>| match line.split_once(':') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("trailers with a line that has no name".to_owned()),
    };
    lines.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_content_type_of_its_form() {
        for (form, right, wrong) in [
            (Form::Grpc, "application/grpc+proto", "application/grpc-web"),
            (
                Form::Web,
                "application/grpc-web+proto; charset=utf-8",
                "application/grpc-web+json",
            ),
            (
                Form::Web,
                "application/grpc-web",
                "application/grpc-web-text",
            ),
            (Form::ConnectUnary, "application/proto", "application/json"),
            (
                Form::ConnectStream,
                "application/connect+proto",
                "application/connect+json",
            ),
        ] {
            assert!(form.accepts(right), "{form:?} {right}");
            assert!(!form.accepts(wrong), "{form:?} {wrong}");
            assert_eq!(Form::of_content_type(form.content_type()), Some(form));
        }
    }

    #[test]
    fn trailers_are_lines_with_names() {
        let lines = trailer_lines(b"grpc-status: 0\r\nA:b:c\r\n\r\n").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(lines, [pair("grpc-status", "0"), pair("A", "b:c")]);
        assert_eq!(trailer_lines(b"").unwrap(), []);
        for wrong in [&b"grpc-status"[..], b": 0\r\n", b"\xff\xfe"] {
            assert!(trailer_lines(wrong).is_err(), "{wrong:?}");
        }
    }
}
