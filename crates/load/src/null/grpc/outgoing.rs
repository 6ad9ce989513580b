//! The response of a call, over HTTP/2 or HTTP/1.1.

use std::future::poll_fn;

use bytes::Bytes;
use grpc_schema::{connect_code, connect_http};
use h2::SendStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::CallHead;
use crate::call_form::{Form, end_message};

/// The message of a planted status.
const PLANTED: &str = "planted by the null server";

/// The head of a response.
pub(super) struct ResponseHead {
    status: u16,
    content_type: &'static str,
    /// The header with the coding of messages.
    coding: Option<(&'static str, String)>,
}

impl ResponseHead {
    pub(super) fn of(call: &CallHead) -> ResponseHead {
        ResponseHead {
            status: 200,
            content_type: call.form.content_type(),
            // Messages return as they came, so compressed messages stay compressed.
            coding: call.coding.clone().map(|it| (call.form.encoding(), it)),
        }
    }

    fn over_http2(self) -> Option<http::Response<()>> {
        let mut response = http::Response::builder()
            .status(self.status)
            .header("content-type", self.content_type);
        if let Some((name, coding)) = self.coding {
            response = response.header(name, coding);
        }
        response.body(()).ok()
    }

    /// Returns the head as text. The body has chunks.
    fn over_http1(self) -> Vec<u8> {
        let reason = StatusCode::from_u16(self.status).ok();
        let reason = reason.and_then(|status| status.canonical_reason());
        let coding = self
            .coding
            .map(|(name, coding)| format!("{name}: {coding}\r\n"));
        let text = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: {}\r\n{}transfer-encoding: chunked\r\n\r\n",
            self.status,
            reason.unwrap_or("Error"),
            self.content_type,
            coding.unwrap_or_default()
        );
        text.into_bytes()
    }
}

/// The connection of a response.
enum Wire {
    Http2 {
        respond: SendResponse<Bytes>,
        stream: Option<SendStream<Bytes>>,
    },
    Http1(TcpStream),
}

/// The response of a call. Its head leaves with the first message, like the head of an ordinary server.
pub(super) struct Outgoing {
    head: Option<ResponseHead>,
    wire: Wire,
}

impl Outgoing {
    pub(super) fn over_http2(head: ResponseHead, respond: SendResponse<Bytes>) -> Outgoing {
        Outgoing {
            head: Some(head),
            wire: Wire::Http2 {
                respond,
                stream: None,
            },
        }
    }

    pub(super) fn over_http1(head: ResponseHead, stream: TcpStream) -> Outgoing {
        Outgoing {
            head: Some(head),
            wire: Wire::Http1(stream),
        }
    }

    /// Returns the connection of HTTP/1.1 for the next request.
    pub(super) fn into_stream(self) -> Option<TcpStream> {
        match self.wire {
            Wire::Http1(stream) => Some(stream),
            Wire::Http2 { .. } => None,
        }
    }

    /// Sends one message when the client has room for it. `None` if the client left.
    pub(super) async fn send(&mut self, part: Bytes) -> Option<()> {
        let head = self.head.take();
        match &mut self.wire {
            Wire::Http2 { respond, stream } => {
                if let Some(head) = head {
                    *stream = respond.send_response(head.over_http2()?, false).ok();
                }
                send(stream.as_mut()?, part).await
            }
            Wire::Http1(stream) => {
                let mut bytes = head.map(ResponseHead::over_http1).unwrap_or_default();
                if !part.is_empty() {
                    bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                    bytes.extend_from_slice(&part);
                    bytes.extend_from_slice(b"\r\n");
                }
                stream.write_all(&bytes).await.ok()
            }
        }
    }

    /// Ends the response with the status of the call. `None` if the client left.
    pub(super) async fn end(&mut self, form: Form, status: u32) -> Option<()> {
        let code = connect_code(status);
        let error = |code: &String| format!(r#"{{"code":"{code}","message":"{PLANTED}"}}"#);
        match (form, &code) {
            (Form::Grpc, _) => return self.trailers(status).await,
            (Form::Web, None) => self.last(form, "grpc-status: 0\r\n").await?,
            (Form::Web, Some(_)) => {
                let lines = format!("grpc-status: {status}\r\ngrpc-message: {PLANTED}\r\n");
                self.last(form, &lines).await?;
            }
            (Form::ConnectStream, None) => self.last(form, "{}").await?,
            (Form::ConnectStream, Some(code)) => {
                let json = format!(r#"{{"error":{}}}"#, error(code));
                self.last(form, &json).await?;
            }
            (Form::ConnectUnary, None) => {}
            (Form::ConnectUnary, Some(code)) => {
                self.head = Some(ResponseHead {
                    status: connect_http(status),
                    content_type: "application/json",
                    coding: None,
                });
                self.send(Bytes::from(error(code))).await?;
            }
        }
        self.close().await
    }

    /// Sends the message at the end of an answer.
    async fn last(&mut self, form: Form, text: &str) -> Option<()> {
        self.send(Bytes::from(end_message(form, text))).await
    }

    /// Ends the body.
    async fn close(&mut self) -> Option<()> {
        // The head of a response without a body.
        if self.head.is_some() {
            self.send(Bytes::new()).await?;
        }
        match &mut self.wire {
            Wire::Http2 { stream, .. } => stream.as_mut()?.send_data(Bytes::new(), true).ok(),
            Wire::Http1(stream) => stream.write_all(b"0\r\n\r\n").await.ok(),
        }
    }

    /// Ends the response with trailers, which only HTTP/2 carries here.
    async fn trailers(&mut self, status: u32) -> Option<()> {
        if self.head.is_some() {
            self.send(Bytes::new()).await?;
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(status));
        if status != 0 {
            trailers.insert("grpc-message", HeaderValue::from_static(PLANTED));
        }
        match &mut self.wire {
            Wire::Http2 { stream, .. } => stream.as_mut()?.send_trailers(trailers).ok(),
            Wire::Http1(_) => None,
        }
    }
}

/// Sends one piece when the client has room for it. `None` if the client left.
async fn send(answers: &mut SendStream<Bytes>, mut part: Bytes) -> Option<()> {
    while !part.is_empty() {
        answers.reserve_capacity(part.len());
        let room = match answers.capacity() {
            0 => poll_fn(|context| answers.poll_capacity(context))
                .await?
                .ok()?,
            room => room,
        };
        let now = part.split_to(room.min(part.len()));
        answers.send_data(now, false).ok()?;
    }
    Some(())
}
