//! A null server for gRPC: it answers each message with the same message.
//!
//! It answers calls of every method, and describes the methods of `null.Echo` to clients that ask by reflection.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use grpc_schema::PREFIX_BYTES;
use grpc_schema::reflection::{METHODS, echo};
use h2::SendStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::clock::{Clock, to_ns};
use crate::general::Timer;
use crate::job::Job;

/// Bytes of a message that are kept for the answer. A longer message ends the call with the status 8
/// (RESOURCE_EXHAUSTED).
const CALL_MAX: usize = 4 << 20;

/// Messages of a call that may wait for their answers.
const WAITING_MAX: usize = 64;

/// Time between two looks at the stop flag.
const LOOK: Duration = Duration::from_millis(20);

/// The behavior of a null server for gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcBehavior {
    /// Time from the arrival of a message to its answer.
    pub delay: Duration,
    /// Number of answers of each call, after its last message. Each is the first message of the call. `None`
    /// for one answer to each message.
    pub events: Option<u64>,
    /// Time between two answers of a call.
    pub gap: Duration,
    /// The status in the trailers. With another status than 0, there is no answer.
    pub status: u32,
}

/// The state that all tasks share.
struct Shared {
    clock: Clock,
    behavior: GrpcBehavior,
    calls: Cell<u64>,
}

/// Serves until `stop` is set. Returns the number of calls.
///
/// # Errors
/// If the listener cannot be used with an event loop.
pub fn serve_grpc(
    listener: TcpListener,
    behavior: &GrpcBehavior,
    stop: &AtomicBool,
) -> io::Result<u64> {
    super::prepare(&listener)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let shared = Rc::new(Shared {
        clock: Clock::start(),
        behavior: behavior.clone(),
        calls: Cell::new(0),
    });
    let tasks = LocalSet::new();
    let accepting = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        while !stop.load(Ordering::Relaxed) {
            // A client that left the queue is no reason to end.
            if let Ok(Ok((stream, _))) = tokio::time::timeout(LOOK, listener.accept()).await {
                tokio::task::spawn_local(connection(stream, Rc::clone(&shared)));
            }
        }
        Ok(shared.calls.get())
    };
    tasks.block_on(&runtime, accepting)
}

async fn connection(stream: TcpStream, shared: Rc<Shared>) {
    // Without the option, a response is only later.
    let _ = stream.set_nodelay(true);
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (head, upload) = request.into_parts();
        tokio::task::spawn_local(call(head, upload, respond, Rc::clone(&shared)));
    }
}

async fn call(
    head: http::request::Parts,
    upload: h2::RecvStream,
    respond: SendResponse<Bytes>,
    shared: Rc<Shared>,
) {
    let Ok(timer) = Timer::new(shared.clock, Job::SPIN_SHARE) else {
        return;
    };
    let mut response = http::Response::builder().header("content-type", "application/grpc");
    // Messages return as they came, so compressed messages stay compressed.
    if let Some(coding) = head.headers.get("grpc-encoding") {
        response = response.header("grpc-encoding", coding);
    }
    let outgoing = Outgoing {
        respond,
        head: Some(response.body(()).expect("a head of ours")),
        stream: None,
    };
    let mut conversation = Conversation {
        upload,
        outgoing,
        timer,
        shared: Rc::clone(&shared),
    };
    let is_reflection = METHODS.contains(&head.uri.path());
    let status = match (is_reflection, shared.behavior.status) {
        (true, _) => conversation.reflect().await,
        (false, 0) => match shared.behavior.events {
            None => conversation.echo().await,
            Some(events) => conversation.repeat(events).await,
        },
        (false, status) => conversation.refuse(status).await,
    };
    shared
        .calls
        .set(shared.calls.get() + u64::from(!is_reflection));
    let Some(status) = status else {
        return;
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status));
    if status != 0 {
        let message = HeaderValue::from_static("planted by the null server");
        trailers.insert("grpc-message", message);
    }
    // The client may be gone.
    if let Some(stream) = conversation.outgoing.open() {
        let _ = stream.send_trailers(trailers);
    }
}

/// The response of a call. Its head leaves with the first message, like the head of an ordinary server.
struct Outgoing {
    respond: SendResponse<Bytes>,
    head: Option<http::Response<()>>,
    stream: Option<SendStream<Bytes>>,
}

impl Outgoing {
    /// Returns the open response. `None` if the client left.
    fn open(&mut self) -> Option<&mut SendStream<Bytes>> {
        if let Some(head) = self.head.take() {
            self.stream = self.respond.send_response(head, false).ok();
        }
        self.stream.as_mut()
    }

    /// Sends one message when the client has room for it. `None` if the client left.
    async fn send(&mut self, part: Bytes) -> Option<()> {
        send(self.open()?, part).await
    }
}

/// One call: the messages of the client, and the answers.
struct Conversation {
    upload: h2::RecvStream,
    outgoing: Outgoing,
    timer: Timer,
    shared: Rc<Shared>,
}

/// The messages of a client, as their bytes arrive.
struct Incoming<'a> {
    upload: &'a mut h2::RecvStream,
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
            let Some(Ok(part)) = self.upload.data().await else {
                return Ok(None);
            };
            let _ = self.upload.flow_control().release_capacity(part.len());
            self.received.extend_from_slice(&part);
        }
    }
}

/// Each kind of answer returns the status of the call, and `None` if the client left.
impl Conversation {
    /// Answers each message when it has arrived, after the delay.
    async fn echo(&mut self) -> Option<u32> {
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
    async fn repeat(&mut self, events: u64) -> Option<u32> {
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

    /// Ends the call with a status, after its messages and the delay.
    async fn refuse(&mut self, status: u32) -> Option<u32> {
        let mut incoming = Incoming {
            upload: &mut self.upload,
            received: BytesMut::new(),
        };
        while let Ok(Some(_)) = incoming.next().await {}
        let delay_ns = to_ns(self.shared.behavior.delay);
        if delay_ns > 0 {
            let now_ns = self.shared.clock.now_ns();
            self.timer.wait_until(now_ns + delay_ns, true).await;
        }
        Some(status)
    }

    /// Answers questions about the small schema of the server.
    async fn reflect(&mut self) -> Option<u32> {
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

/// Returns the length of the first message with its prefix. `None` if the prefix has not arrived.
fn end_of_message(received: &[u8]) -> Option<usize> {
    let prefix = received.get(..PREFIX_BYTES)?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    usize::try_from(length).ok()?.checked_add(PREFIX_BYTES)
}
