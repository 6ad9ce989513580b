//! Calls of gRPC-Web and Connect over HTTP/1.1.

use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use grpc_schema::PREFIX_BYTES;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::conversation::Upload;
use super::outgoing::{Outgoing, ResponseHead};
use super::{CALL_MAX, CallHead, Shared};
use crate::call_form::Form;

/// Bytes of the head of a request.
const HEAD_MAX: usize = 64 * 1024;

/// Header lines of a request.
const LINES_MAX: usize = 128;

/// The response to a request that is no call.
const REFUSED: &[u8] =
    b"HTTP/1.1 415 Unsupported Media Type\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Time until the second byte of a connection.
const LOOK: Duration = Duration::from_millis(1);

/// True if a connection begins with the preface of HTTP/2 (`PRI`). `None` if the client left.
pub(super) async fn is_http2(stream: &TcpStream) -> Option<bool> {
    let mut first = [0; 2];
    loop {
        match stream.peek(&mut first).await.ok()? {
            0 => return None,
            1 => tokio::time::sleep(LOOK).await,
            _ => return Some(&first == b"PR"),
        }
    }
}

/// A request: its call, the length of its body, and the bytes of its head.
struct Request {
    call: CallHead,
    body_bytes: usize,
    head_bytes: usize,
}

/// Answers the calls of a connection, one after the other.
pub(super) async fn serve(mut stream: TcpStream, shared: &Rc<Shared>) {
    let mut received = BytesMut::new();
    loop {
        let request = match read(&mut stream, &mut received).await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(NoCall) => {
                // The client may be gone.
                let _ = stream.write_all(REFUSED).await;
                return;
            }
        };
        let Request { call, .. } = request;
        let _ = received.split_to(request.head_bytes);
        let body = received.split_to(request.body_bytes).freeze();
        let outgoing = Outgoing::over_http1(ResponseHead::of(&call), stream);
        let answered = super::answer(call, Upload::Whole(body), outgoing, shared).await;
        match answered.and_then(Outgoing::into_stream) {
            Some(kept) => stream = kept,
            None => return,
        }
    }
}

/// The request is no call of gRPC-Web or Connect, or it is too long.
struct NoCall;

/// Reads a whole request. `None` if the client left.
async fn read(stream: &mut TcpStream, received: &mut BytesMut) -> Result<Option<Request>, NoCall> {
    loop {
        if let Some(request) = parse(received)?
            && received.len() >= request.head_bytes + request.body_bytes
        {
            return Ok(Some(request));
        }
        match stream.read_buf(received).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
    }
}

/// Reads the head of a request. `None` if it has not arrived.
fn parse(received: &[u8]) -> Result<Option<Request>, NoCall> {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MAX];
    let mut head = httparse::Request::new(&mut lines);
    let head_bytes = match head.parse(received) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if received.len() <= HEAD_MAX => return Ok(None),
        _ => return Err(NoCall),
    };
    let text = |name: &str| {
        let mut lines = head.headers.iter();
        let line = lines.find(|line| line.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(line.value).into_owned())
    };
    let form = Form::of_content_type(&text("content-type").unwrap_or_default());
    let form = form.filter(|form| *form != Form::Grpc).ok_or(NoCall)?;
    // A body in chunks has no length.
    let body_bytes: usize = text("content-length")
        .and_then(|length| length.parse().ok())
        .filter(|length| *length <= CALL_MAX + PREFIX_BYTES)
        .ok_or(NoCall)?;
    Ok(Some(Request {
        call: CallHead {
            path: head.path.unwrap_or_default().to_owned(),
            form,
            coding: text(form.encoding()),
        },
        body_bytes,
        head_bytes,
    }))
}
