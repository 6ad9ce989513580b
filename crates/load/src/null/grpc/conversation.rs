//! One call: the messages of the client, and the answers.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use grpc_schema::PREFIX_BYTES;
use grpc_schema::reflection::echo;

use super::outgoing::Outgoing;
use super::{CALL_MAX, Shared};
use crate::clock::to_ns;
use crate::general::Timer;

/// Messages of a call that may wait for their answers.
const WAITING_MAX: usize = 64;

/// The body of a call.
pub(super) enum Upload {
    /// A stream of HTTP/2.
    Shared(h2::RecvStream),
    /// The whole body of a request over HTTP/1.1, until it is taken.
    Whole(Bytes),
}

impl Upload {
    /// Returns the next part. `None` at the end.
    async fn data(&mut self) -> Option<Bytes> {
        match self {
            Upload::Shared(stream) => {
                let part = stream.data().await?.ok()?;
                let _ = stream.flow_control().release_capacity(part.len());
                Some(part)
            }
            Upload::Whole(body) => {
                let body = std::mem::take(body);
                (!body.is_empty()).then_some(body)
            }
        }
    }
}

/// One call: the messages of the client, and the answers.
pub(super) struct Conversation {
    pub(super) upload: Upload,
    pub(super) outgoing: Outgoing,
    pub(super) timer: Timer,
    pub(super) shared: Rc<Shared>,
}

/// The messages of a client, as their bytes arrive.
struct Incoming<'a> {
    upload: &'a mut Upload,
    received: BytesMut,
}

impl Incoming<'_> {
    /// Returns the next message with its prefix. `None` at the end, and the status of a call that is too long.
    async fn next(&mut self) -> Result<Option<Bytes>, u32> {
        loop {
            if let Some(end) = end_of_message(&self.received) {
                match end {
                    end if end > CALL_MAX => return Err(8),
                    end if end <= self.received.len() => {
                        return Ok(Some(self.received.split_to(end).freeze()));
                    }
                    _ => {}
                }
            }
            let Some(part) = self.upload.data().await else {
                return Ok(None);
            };
            self.received.extend_from_slice(&part);
        }
    }
}

/// Each kind of answer returns the status of the call, and `None` if the client left.
impl Conversation {
    /// Answers each message when it has arrived, after the delay.
    pub(super) async fn echo(&mut self) -> Option<u32> {
        let delay_ns = to_ns(self.shared.behavior.delay);
        // Messages that arrive during a delay have their own times.
        let (sender, mut arrived) = tokio::sync::mpsc::channel(WAITING_MAX);
        let (clock, upload) = (self.shared.clock, &mut self.upload);
        let reading = async move {
            let mut incoming = Incoming {
                upload,
                received: BytesMut::new(),
            };
            loop {
                match incoming.next().await {
                    Ok(Some(message)) => {
                        if sender.send((clock.now_ns(), message)).await.is_err() {
                            return 0;
                        }
                    }
                    Ok(None) => return 0,
                    Err(status) => return status,
                }
            }
        };
        let (outgoing, timer) = (&mut self.outgoing, &self.timer);
        let answering = async move {
            while let Some((arrived_ns, message)) = arrived.recv().await {
                if delay_ns > 0 {
                    timer.wait_until(arrived_ns + delay_ns, true).await;
                }
                outgoing.send(message).await?;
            }
            Some(())
        };
        let (status, answered) = futures_util::future::join(reading, answering).await;
        answered.map(|()| status)
    }

    /// Answers with the first message of the call, this number of times.
    pub(super) async fn repeat(&mut self, events: u64) -> Option<u32> {
        let mut incoming = Incoming {
            upload: &mut self.upload,
            received: BytesMut::new(),
        };
        let mut first = None;
        loop {
            match incoming.next().await {
                Ok(Some(message)) => {
                    first.get_or_insert(message);
                }
                Ok(None) => break,
                Err(status) => return Some(status),
            }
        }
        let first = first.unwrap_or_default();
        let behavior = &self.shared.behavior;
        let ready_ns = self.shared.clock.now_ns() + to_ns(behavior.delay);
        let gap_ns = to_ns(behavior.gap);
        for index in 0..events {
            let due_ns = ready_ns + index * gap_ns;
            if due_ns > self.shared.clock.now_ns() {
                self.timer.wait_until(due_ns, true).await;
            }
            self.outgoing.send(first.clone()).await?;
        }
        Some(0)
    }

    /// Answers a message without a prefix with the same message, after the delay.
    pub(super) async fn whole(&mut self) -> Option<u32> {
        let mut received = BytesMut::new();
        while received.len() <= CALL_MAX
            && let Some(part) = self.upload.data().await
        {
            received.extend_from_slice(&part);
        }
        self.delay().await;
        if received.len() > CALL_MAX {
            return Some(8);
        }
        let status = self.shared.behavior.status;
        if status == 0 {
            self.outgoing.send(received.freeze()).await?;
        }
        Some(status)
    }

    async fn delay(&self) {
        let delay_ns = to_ns(self.shared.behavior.delay);
        if delay_ns > 0 {
            let now_ns = self.shared.clock.now_ns();
            self.timer.wait_until(now_ns + delay_ns, true).await;
        }
    }

    /// Ends the call with a status, after its messages and the delay.
    pub(super) async fn refuse(&mut self, status: u32) -> Option<u32> {
        let mut incoming = Incoming {
            upload: &mut self.upload,
            received: BytesMut::new(),
        };
        while let Ok(Some(_)) = incoming.next().await {}
        self.delay().await;
        Some(status)
    }

    /// Answers questions about the small schema of the server.
    pub(super) async fn reflect(&mut self) -> Option<u32> {
        let mut incoming = Incoming {
            upload: &mut self.upload,
            received: BytesMut::new(),
        };
        loop {
            match incoming.next().await {
                Ok(Some(question)) => {
                    let answer = echo::answer(&question[PREFIX_BYTES..]);
                    let mut framed = Vec::new();
                    grpc_schema::frame(&answer, false, &mut framed);
                    self.outgoing.send(Bytes::from(framed)).await?;
                }
                Ok(None) => return Some(0),
                Err(status) => return Some(status),
            }
        }
    }
}

/// Returns the length of the first message with its prefix. `None` if the prefix has not arrived.
fn end_of_message(received: &[u8]) -> Option<usize> {
    let prefix = received.get(..PREFIX_BYTES)?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    usize::try_from(length).ok()?.checked_add(PREFIX_BYTES)
}
