//! A null server for gRPC: it answers each call with the message of the call.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::clock::{Clock, to_ns};
use crate::general::Timer;
use crate::job::Job;

/// Bytes of a call that are kept for the answer. A longer call ends with the status 8 (RESOURCE_EXHAUSTED).
const CALL_MAX: usize = 4 << 20;

/// Time between two looks at the stop flag.
const LOOK: Duration = Duration::from_millis(20);

/// The behavior of a null server for gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcBehavior {
    /// Time from the end of a call's messages to the answer.
    pub delay: Duration,
    /// Number of answers of each call. Each is the first message of the call. `None` for one answer with all
    /// messages of the call.
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
        tokio::task::spawn_local(call(request.into_body(), respond, Rc::clone(&shared)));
    }
}

async fn call(mut upload: h2::RecvStream, mut respond: SendResponse<Bytes>, shared: Rc<Shared>) {
    let mut body = Vec::new();
    let mut status = shared.behavior.status;
    while let Some(Ok(part)) = upload.data().await {
        let _ = upload.flow_control().release_capacity(part.len());
        match body.len() + part.len() <= CALL_MAX {
            true => body.extend_from_slice(&part),
            false => status = 8,
        }
    }
    shared.calls.set(shared.calls.get() + 1);
    let ready_ns = shared.clock.now_ns() + to_ns(shared.behavior.delay);
    let Ok(timer) = Timer::new(shared.clock, Job::SPIN_SHARE) else {
        return;
    };
    if !shared.behavior.delay.is_zero() {
        timer.wait_until(ready_ns, true).await;
    }
    let head = http::Response::builder().header("content-type", "application/grpc");
    let Ok(mut answers) = respond.send_response(head.body(()).expect("a head of ours"), false)
    else {
        return;
    };
    if status == 0 {
        let body = Bytes::from(body);
        let first = first_message(&body);
        let gap_ns = to_ns(shared.behavior.gap);
        for index in 0..shared.behavior.events.unwrap_or(1) {
            if index > 0 && gap_ns > 0 {
                timer.wait_until(ready_ns + index * gap_ns, true).await;
            }
            let part = match shared.behavior.events {
                None => body.clone(),
                Some(_) => first.clone(),
            };
            if send(&mut answers, part).await.is_none() {
                return;
            }
        }
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status));
    if status != 0 {
        let message = HeaderValue::from_static("planted by the null server");
        trailers.insert("grpc-message", message);
    }
    // The client may be gone.
    let _ = answers.send_trailers(trailers);
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

/// Returns the first message of a call with its prefix.
fn first_message(body: &Bytes) -> Bytes {
    let Some(prefix) = body.get(..5) else {
        return Bytes::new();
    };
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    let end = usize::try_from(length).map_or(body.len(), |length| (5 + length).min(body.len()));
    body.slice(..end)
}
