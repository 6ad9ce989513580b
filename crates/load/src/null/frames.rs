//! Frames of WebSocket, as a server reads and writes them (RFC 6455, section 5.2).

use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// The opcodes of this server.
pub(super) const OP_TEXT: u8 = 1;
const OP_BINARY: u8 = 2;
pub(super) const OP_CLOSE: u8 = 8;
pub(super) const OP_PING: u8 = 9;
pub(super) const OP_PONG: u8 = 10;

/// The largest payload that is read.
const PAYLOAD_MAX: u64 = 2 * 1024 * 1024;

/// A frame of a client, without its mask.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) code: u8,
    pub(super) payload: Vec<u8>,
}

/// An upgrade that is accepted.
pub(super) struct Accepted {
    /// Length of the request.
    pub(super) bytes: usize,
    /// The first subprotocol that the client offers.
    pub(super) protocol: Option<String>,
    pub(super) answer: Vec<u8>,
}

/// Reads the request of an upgrade. `None` if more bytes are needed.
pub(super) fn upgrade(bytes: &[u8]) -> Result<Option<Accepted>, ()> {
    let mut lines = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut lines);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(head)) => head,
        Err(_) => return Err(()),
    };
    let value = |name: &str| {
        let mut lines = request.headers.iter();
        let line = lines.find(|line| line.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(line.value).ok()
    };
    let key = value("sec-websocket-key").ok_or(())?;
    let offered = value("sec-websocket-protocol");
    let protocol = offered.and_then(|names| names.split(',').next());
    let protocol = protocol.map(|name| name.trim().to_owned());
    let mut answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n",
        derive_accept_key(key.as_bytes())
    );
    if let Some(name) = &protocol {
        answer.push_str(&format!("Sec-WebSocket-Protocol: {name}\r\n"));
    }
    answer.push_str("\r\n");
    Ok(Some(Accepted {
        bytes: head,
        protocol,
        answer: answer.into_bytes(),
    }))
}

/// Reads the first frame and its length. `None` if more bytes are needed. An error for fragments, for frames
/// without a mask, and for frames with another opcode.
pub(super) fn first_frame(bytes: &[u8]) -> Result<Option<(usize, Frame)>, ()> {
    let (Some(first), Some(second)) = (bytes.first(), bytes.get(1)) else {
        return Ok(None);
    };
    let code = first & 0x0f;
    let is_known = matches!(code, OP_TEXT | OP_BINARY | OP_CLOSE | OP_PING | OP_PONG);
    if first & 0xf0 != 0x80 || second & 0x80 == 0 || !is_known {
        return Err(());
    }
    let (length, at) = match second & 0x7f {
        126 => match bytes.get(2..4) {
            None => return Ok(None),
            Some(two) => (u64::from(u16::from_be_bytes([two[0], two[1]])), 4),
        },
        127 => match bytes.get(2..10).and_then(|eight| eight.try_into().ok()) {
            None => return Ok(None),
            Some(eight) => (u64::from_be_bytes(eight), 10),
        },
        short => (u64::from(short), 2),
    };
    if length > PAYLOAD_MAX {
        return Err(());
    }
    let length = usize::try_from(length).map_err(|_| ())?;
    let (Some(mask), Some(masked)) = (bytes.get(at..at + 4), bytes.get(at + 4..at + 4 + length))
    else {
        return Ok(None);
    };
    let payload = masked.iter().zip(mask.iter().cycle());
    let frame = Frame {
        code,
        payload: payload.map(|(byte, mask)| byte ^ mask).collect(),
    };
    Ok(Some((at + 4 + length, frame)))
}

/// Returns a whole message as one frame.
pub(super) fn frame(code: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | code];
    let length = payload.len();
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => bytes.push(short),
        (_, Ok(long)) => {
            bytes.push(126);
            bytes.extend_from_slice(&long.to_be_bytes());
        }
        _ => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_a_client_loses_its_mask() {
        // The example of RFC 6455, section 5.7.
        let hello = [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        for end in 0..hello.len() {
            assert_eq!(first_frame(&hello[..end]), Ok(None), "{end}");
        }
        let frame = Frame {
            code: OP_TEXT,
            payload: b"Hello".to_vec(),
        };
        assert_eq!(first_frame(&hello), Ok(Some((11, frame))));
        assert_eq!(first_frame(&[0x81, 0x05]), Err(()), "without a mask");
        assert_eq!(first_frame(&[0x01, 0x85]), Err(()), "a fragment");
        assert_eq!(first_frame(&[0x83, 0x85]), Err(()), "an unknown opcode");
    }

    #[test]
    fn lengths_have_three_forms() {
        assert_eq!(frame(OP_TEXT, b"Hello"), b"\x81\x05Hello");
        assert_eq!(frame(OP_TEXT, &[0; 256])[..4], [0x81, 126, 1, 0]);
        let long = frame(OP_TEXT, &[0; 65536]);
        assert_eq!(long[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn the_key_of_the_example_has_its_answer() {
        let request = "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                       Sec-WebSocket-Protocol: chat, other\r\n\r\nrest";
        let Ok(Some(accepted)) = upgrade(request.as_bytes()) else {
            panic!("a whole request");
        };
        let answer = String::from_utf8(accepted.answer).unwrap();
        assert!(answer.contains("Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        assert!(answer.contains("Protocol: chat\r\n"));
        assert_eq!(accepted.bytes, request.len() - 4);
        assert!(upgrade(b"GET / HTTP/1.1\r\n\r\n").is_err());
    }
}
