//! One request over HTTP/3, and its response.

use std::cell::RefCell;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use h3::client::RequestStream;
use h3::error::{Code, StreamError};
use http::{Method, StatusCode};
use quinn::SendStream;

use super::fault::{Stage, broken, of_connection, of_frames, of_part, of_request, rejected};
use super::frames::{Frames, Part, data_head};
use super::library::{Heads, RequestStream as LibraryStream, Writer};
use super::{Client, Early, Room, Session, UnderWay, number};
use crate::check::stream::STREAM_END;
use crate::general::http2::{Limits, head_bytes, lines, too_large};
use crate::general::message::Message;
use crate::general::progress::{ExchangeError, ResponseProgress};
use crate::measurement::FailureKind;
use crate::parser::{Head, Sink};

impl Session {
    /// Passes the head of a request to the library, and the part of the body that there is room for.
    pub(in crate::general) async fn send(
        self: &Rc<Session>,
        message: Message,
        room: Room,
    ) -> Result<Sending, ExchangeError> {
        let Message { head, body, .. } = message;
        let Room {
            under_way,
            send,
            receive,
        } = room;
        let is_bodiless = head.method() == Method::HEAD;
        let id = receive.id().into();
        let (heads, writer) = (Heads::default(), Rc::new(RefCell::new(send)));
        // The library takes the stream in its first step, before another request can replace it.
        let stream = LibraryStream::new(Rc::clone(&writer), &receive, heads.clone());
        let Client { mut sender, next } = self.client.borrow().clone();
        next.set(Some(stream));
        let was_early = self.shared.early.get() != Early::Over;
        let sent = sender.send_request(head).await;
        let stream = sent.map_err(|error| {
            next.take();
            if was_early && self.connection.close_reason().is_none() {
                return rejected(&self.shared);
            }
            of_request(&error, &self.connection, &self.shared)
        })?;
        let parts = match body.len() as u64 {
            0 => Vec::new(),
            length => vec![body, data_head(length)],
        };
        let mut sending = Sending {
            under_way,
            id,
            stream,
            heads,
            writer,
            upload: Some(parts),
            frames: Frames::new(receive),
            is_bodiless,
            is_complete: false,
        };
        // Most bodies fit into the first window and leave with the head.
        poll_fn(|context| {
            sending.poll_upload(context);
            Poll::Ready(())
        })
        .await;
        Ok(sending)
    }
}

/// A request that was passed to the library. Dropping it cancels its stream.
pub(in crate::general) struct Sending {
    under_way: UnderWay,
    id: u64,
    stream: RequestStream<LibraryStream, Bytes>,
    heads: Heads,
    writer: Writer,
    /// The parts of the body that have not left, the last part first. `None` after the end of the request.
    upload: Option<Vec<Bytes>>,
    frames: Frames,
    /// True if the response has no body, whatever its `content-length`.
    is_bodiless: bool,
    is_complete: bool,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.is_complete {
            self.frames.stop();
        }
        if self.upload.is_some() {
            // A stream that has ended needs no reset.
            let _ = self
                .writer
                .borrow_mut()
                .reset(number(Code::H3_REQUEST_CANCELLED));
        }
    }
}

impl Sending {
    /// Sends the rest of the body, as far as there is room for it.
    fn poll_upload(&mut self, context: &mut Context<'_>) {
        if let Some(parts) = &mut self.upload
            && poll_write(&mut self.writer.borrow_mut(), parts, context).is_ready()
        {
            self.upload = None;
        }
    }

    /// Receives the response, while the rest of the request leaves.
    pub(in crate::general) async fn receive(
        mut self,
        limits: Limits,
        progress: &mut ResponseProgress,
        sink: &mut impl Sink,
    ) -> Result<(), ExchangeError> {
        self.frames.limit_heads(limits.bounds.head_bytes);
        progress.spoken = "HTTP/3";
        let (status, length) = self.head(limits, progress, sink).await?;
        let stage = Stage::Body;
        let mut body_bytes = 0;
        let trailers = loop {
            let part = match sink.is_ended() {
                false => self.part(stage).await?,
                // The stream has ended. If the response does not end soon, it is complete without that.
                true => match tokio::time::timeout(STREAM_END, self.part(stage)).await {
                    Ok(part) => part?,
                    Err(_) => return Ok(()),
                },
            };
            let piece = match part {
                None => break None,
                Some(Part::Head(frame)) => break Some(frame),
                Some(Part::Body(piece)) => piece,
            };
            progress.keep(&piece, limits.clock.now_ns());
            body_bytes += piece.len() as u64;
            if body_bytes > limits.bounds.body_bytes {
                return Err(too_large("body", limits.bounds.body_bytes));
            }
            if length.is_some_and(|length| body_bytes > length) {
                return Err(wrong_length(length));
            }
            sink.body(&piece);
            if sink.is_over() {
                // The stream is stopped when it is dropped.
                return Ok(());
            }
            if let Some(refusal) = sink.refusal() {
                return Err(ExchangeError::failed(refusal.kind(), refusal.to_string()));
            }
        };
        if length.is_some_and(|length| body_bytes != length) {
            return Err(wrong_length(length));
        }
        if let Some(frame) = trailers {
            self.trailers(frame, status, limits, sink).await?;
        }
        self.is_complete = true;
        Ok(())
    }

    /// Receives the head. Returns its status, and the length of the body that it announces.
    async fn head(
        &mut self,
        limits: Limits,
        progress: &mut ResponseProgress,
        sink: &mut impl Sink,
    ) -> Result<(u16, Option<u64>), ExchangeError> {
        let stage = Stage::Head {
            was_idle: limits.was_idle,
        };
        let head = loop {
            let frame = match self.part(stage).await? {
                Some(Part::Head(frame)) => frame,
                Some(Part::Body(_)) => {
                    return Err(broken(Code::H3_FRAME_UNEXPECTED, "a body before its head"));
                }
                None => {
                    return Err(broken(
                        Code::H3_MESSAGE_ERROR,
                        "the stream ended before the head of the answer",
                    ));
                }
            };
            progress.keep(&[], limits.clock.now_ns());
            self.heads.push(frame);
            let received = self.stream.recv_response().await;
            let head = match received {
                Ok(head) => head.into_parts().0,
                Err(error) => return Err(self.refused(&error, limits).await),
            };
            // Heads before the head, such as 103.
            if !head.status.is_informational() {
                break head;
            }
        };
        let is_empty = self.is_bodiless
            || matches!(
                head.status,
                StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
            );
        let length = head.headers.get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let is_small = head_bytes(&head.headers) <= limits.bounds.head_bytes;
        let (status, headers) = progress.head.insert((head.status, head.headers));
        if !is_small {
            return Err(too_large("head", limits.bounds.head_bytes as u64));
        }
        let status = status.as_u16();
        sink.head(&Head::new(status, &lines(headers)));
        Ok((status, length.filter(|_| !is_empty)))
    }

    /// Receives the end of a response with trailers.
    async fn trailers(
        &mut self,
        frame: Bytes,
        status: u16,
        limits: Limits,
        sink: &mut impl Sink,
    ) -> Result<(), ExchangeError> {
        // The library is asked once the stream has ended, because it reads to the end.
        if self.part(Stage::Body).await?.is_some() {
            return Err(broken(
                Code::H3_FRAME_UNEXPECTED,
                "a frame after the trailers",
            ));
        }
        self.heads.push(frame);
        let trailers = match self.stream.recv_trailers().await {
            Ok(trailers) => trailers,
            Err(error) => return Err(self.refused(&error, limits).await),
        };
        if let Some(trailers) = trailers {
            if head_bytes(&trailers) > limits.bounds.head_bytes {
                return Err(too_large("trailers", limits.bounds.head_bytes as u64));
            }
            sink.trailers(&Head::new(status, &lines(&trailers)));
        }
        Ok(())
    }

    /// Returns the failure of a head that the library did not accept.
    async fn refused(&self, error: &StreamError, limits: Limits) -> ExchangeError {
        let Session {
            connection, shared, ..
        } = &*self.under_way.0;
        if let Some(failure) = of_part(error, limits.bounds) {
            return failure;
        }
        // The task of the connection closes it, with the reason.
        connection.closed().await;
        let (kind, reason) = of_connection(connection, shared);
        ExchangeError::failed(kind, reason)
    }

    /// Returns the next part of the response. `None` at its end.
    async fn part(&mut self, stage: Stage) -> Result<Option<Part>, ExchangeError> {
        let session = Rc::clone(&self.under_way.0);
        let mut gone = pin!(session.gone(self.id));
        poll_fn(|context| {
            self.poll_upload(context);
            if matches!(stage, Stage::Head { .. }) && gone.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(ExchangeError::Unprocessed {
                    is_leaving: true,
                    reason: "the server ended the connection (GOAWAY)".to_owned(),
                }));
            }
            self.frames
                .poll(context)
                .map_err(|error| of_frames(error, stage, &session.connection, &session.shared))
        })
        .await
    }
}

fn wrong_length(length: Option<u64>) -> ExchangeError {
    let length = length.unwrap_or_default();
    ExchangeError::failed(
        FailureKind::Protocol,
        format!("the length of the body differs from the {length} bytes of its `content-length`"),
    )
}

/// Writes parts, the last part first, and ends the stream after them.
fn poll_write(
    writer: &mut SendStream,
    parts: &mut Vec<Bytes>,
    context: &mut Context<'_>,
) -> Poll<()> {
    while let Some(part) = parts.last_mut() {
        match ready!(Pin::new(&mut *writer).poll_write(context, part)) {
            Ok(written) => part.advance(written),
            // The target no longer reads this body. The response shows if that matters.
            Err(_) => return Poll::Ready(()),
        }
        if part.is_empty() {
            parts.pop();
        }
    }
    // A stream that the server stopped has ended, too.
    let _ = writer.finish();
    Poll::Ready(())
}
