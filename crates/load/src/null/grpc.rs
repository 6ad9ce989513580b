//! A null server for gRPC, gRPC-Web and Connect: it answers each message with the same message.
//!
//! It answers calls of every method, and describes the methods of `null.Echo` to clients that ask by reflection.
//! The first bytes of a connection decide if it carries HTTP/2 or HTTP/1.1.

use std::cell::Cell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use grpc_schema::reflection::METHODS;
use h2::server::SendResponse;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::call_form::Form;
use crate::clock::Clock;
use crate::general::Timer;
use crate::job::Job;

mod conversation;
mod outgoing;
mod plain;

use conversation::{Conversation, Upload};
use outgoing::{Outgoing, ResponseHead};

/// Bytes of a message that are kept for the answer. A longer message ends the call with the status 8
/// (RESOURCE_EXHAUSTED).
const CALL_MAX: usize = 4 << 20;

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

/// The head of a call.
struct CallHead {
    path: String,
    form: Form,
    /// The coding of its messages.
    coding: Option<String>,
}

async fn connection(stream: TcpStream, shared: Rc<Shared>) {
    // Without the option, a response is only later.
    let _ = stream.set_nodelay(true);
    match plain::is_http2(&stream).await {
        None => {}
        Some(true) => over_http2(stream, shared).await,
        Some(false) => plain::serve(stream, &shared).await,
    }
}

async fn over_http2(stream: TcpStream, shared: Rc<Shared>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (head, upload) = request.into_parts();
        tokio::task::spawn_local(shared_call(head, upload, respond, Rc::clone(&shared)));
    }
}

/// Answers a call over a stream of HTTP/2.
async fn shared_call(
    head: http::request::Parts,
    upload: h2::RecvStream,
    respond: SendResponse<Bytes>,
    shared: Rc<Shared>,
) {
    let text = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    let kind = text("content-type").unwrap_or_default();
    let form = Form::of_content_type(&kind).unwrap_or(Form::Grpc);
    let head = CallHead {
        path: head.uri.path().to_owned(),
        form,
        coding: text(form.encoding()),
    };
    let outgoing = Outgoing::over_http2(ResponseHead::of(&head), respond);
    answer(head, Upload::Shared(upload), outgoing, &shared).await;
}

/// Answers a call. Returns the response that left. `None` if the client left.
async fn answer(
    head: CallHead,
    upload: Upload,
    outgoing: Outgoing,
    shared: &Rc<Shared>,
) -> Option<Outgoing> {
    let timer = Timer::new(shared.clock, Job::SPIN_SHARE).ok()?;
    let mut conversation = Conversation {
        upload,
        outgoing,
        timer,
        shared: Rc::clone(shared),
    };
    let is_reflection = METHODS.contains(&&*head.path);
    let status = match (is_reflection, shared.behavior.status) {
        _ if head.form == Form::ConnectUnary => conversation.whole().await,
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
    // The client may be gone.
    conversation.outgoing.end(head.form, status?).await?;
    Some(conversation.outgoing)
}
