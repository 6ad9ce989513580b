//! One request on a new connection, outside of a load, with the code that carries a load.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::feed::Feed;
use super::grpc;
use super::http1::Exchange;
use super::http2::{self, Limits};
use super::http3;
use super::message::Message;
use super::planned::PlainAlarms;
use super::progress::{ExchangeError, ResponseProgress};
use super::route::{Channel, Route, Session};
use super::stream::Stream;
use super::websocket;
use crate::answer::{Answer, Failure, Gathering};
use crate::clock::Clock;
use crate::job::{Bounds, Target, WebSocketCall};
use crate::measurement::FailureKind;
use crate::parser::Parser;
use crate::rendered::Rendered;
use crate::socket::Peer;

/// Sends one request and reads the whole response.
pub(crate) fn exchange(
    target: &Target,
    asked: &Rendered,
    request: &[u8],
    timeout: Duration,
) -> Result<Answer, Failure> {
    let once = Once::new(target)?;
    let mut progress = ResponseProgress::default();
    let mut gathering = Gathering::new(asked.rules.stream.as_ref());
    let conversation = async {
        let channel = once.connect().await?;
        if let Some(call) = &asked.conversation {
            return converse(channel, call, request, &mut progress, gathering).await;
        }
        let single = Single {
            asked,
            route: &once.route,
            clock: Clock::start(),
        };
        single
            .carry(channel, request, &mut progress, &mut gathering)
            .await?;
        Ok(gathering.answer)
    };
    let hold = asked.conversation.as_ref().and_then(|call| call.hold);
    let call = asked.calling.as_ref().map(|calling| calling.call.length());
    let timeout = timeout + hold.or(call).unwrap_or_default();
    let answered = once.within(timeout, conversation);
    answered.unwrap_or(Err(Failure::Timeout {
        limit: timeout,
        found_bytes: progress.bytes,
    }))
}

/// Opens one connection, and closes it.
pub(crate) fn reach(target: &Target, timeout: Duration) -> Result<(), Failure> {
    let once = Once::new(target)?;
    let connected = once.within(timeout, once.connect());
    let late = || Failure::Connect(format!("no connection within {timeout:?}"));
    connected.unwrap_or_else(|| Err(late())).map(drop)
}

/// The way to a target for one connection, outside of a load.
struct Once {
    route: Route,
    peer: Peer,
    runtime: Runtime,
}

impl Once {
    fn new(target: &Target) -> Result<Once, Failure> {
        let failed = |error: std::io::Error| Failure::Connect(crate::socket::refusal(&error).1);
        let route = Route::new(target).map_err(|error| Failure::Connect(error.to_string()))?;
        let peer = Peer::new(&target.address).map_err(failed)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Once {
            route,
            peer,
            runtime: runtime.map_err(failed)?,
        })
    }

    async fn connect(&self) -> Result<Channel, Failure> {
        let channel = self.route.connect(&self.peer, &Rc::default()).await;
        channel.map_err(|(_, reason)| Failure::Connect(reason))
    }

    /// Runs until the end, and then closes connections. `None` if the time is over first.
    fn within<T>(&self, timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
        let tasks = LocalSet::new();
        let work = async { tokio::time::timeout(timeout, work).await };
        let done = tasks.block_on(&self.runtime, work);
        // The task of a connection holds it.
        drop(tasks);
        self.runtime.block_on(self.route.leave());
        done.ok()
    }
}

/// The limits of one exchange.
fn limits(clock: Clock) -> Limits {
    Limits {
        clock,
        bounds: Bounds::of_one_exchange(),
        was_idle: false,
    }
}

/// One request on its connection.
struct Single<'a> {
    asked: &'a Rendered,
    route: &'a Route,
    clock: Clock,
}

impl Single<'_> {
    /// Sends the request and reads the response. A call ends at its deadline.
    async fn carry(
        &self,
        channel: Channel,
        request: &[u8],
        progress: &mut ResponseProgress,
        gathering: &mut Gathering,
    ) -> Result<(), Failure> {
        let calling = self.asked.calling.as_deref();
        let message = || self.route.message(request, calling);
        let (clock, begin_ns) = (self.clock, self.clock.now_ns());
        let deadline = calling.and_then(|calling| calling.call.deadline);
        let received = match channel {
            Channel::WebSocket(_) => unreachable!("a new connection is not upgraded"),
            Channel::Http1 { stream, .. } => {
                let bytes = self.asked.over_http1(request)?;
                let received = self.over_http1(stream, &bytes, progress, gathering);
                grpc::within(deadline, clock, begin_ns, received).await
            }
            Channel::Shared(Session::Http2(session)) => {
                let received = self.over_http2(&session, message()?, progress, gathering);
                grpc::within(deadline, clock, begin_ns, received).await
            }
            Channel::Shared(Session::Http3(session)) => {
                let received = self.over_http3(&session, message()?, progress, gathering);
                grpc::within(deadline, clock, begin_ns, received).await
            }
        };
        match (received, calling) {
            (Ok(received), _) => received.map_err(|error| failure(error, progress.bytes))?,
            (Err(grpc::Expired), Some(calling)) => calling.expire(&mut gathering.answer),
            (Err(grpc::Expired), None) => unreachable!("only a call has a deadline"),
        }
        if let Some(calling) = calling {
            calling.plain(&mut gathering.answer);
        }
        Ok(())
    }

    async fn over_http1(
        &self,
        mut stream: Box<dyn Stream>,
        request: &[u8],
        progress: &mut ResponseProgress,
        gathering: &mut Gathering,
    ) -> Result<(), ExchangeError> {
        let mut parser = Parser::new(Bounds::of_one_exchange());
        parser.start(self.asked.bodiless);
        let mut exchange = Exchange {
            clock: self.clock,
            stream: &mut *stream,
            request,
            written: 0,
            is_sent: false,
            is_used: false,
            buffer: &RefCell::new(vec![0; 64 * 1024]),
            parser: &mut parser,
            progress,
            sink: gathering,
        };
        // Without `begin`, which only reports when the request counts as sent. That is not needed here.
        exchange.finish().await.map(drop)
    }

    /// The messages of a call leave once each, unless its rule counts events.
    async fn over_http2(
        &self,
        session: &http2::Session,
        message: Message,
        progress: &mut ResponseProgress,
        gathering: &mut Gathering,
    ) -> Result<(), ExchangeError> {
        let clock = self.clock;
        let alarms = PlainAlarms { clock };
        let call = self.asked.calling.as_ref().map(|calling| &calling.call);
        let feed = call.filter(|call| call.is_spaced()).map(|call| {
            let feed = Feed::new(call, message.frames.clone(), clock, &alarms);
            match gathering.counts_events() {
                true => feed,
                false => feed.once(),
            }
        });
        let sending = session.send(message, feed).await?;
        sending.receive(limits(clock), progress, gathering).await
    }

    async fn over_http3(
        &self,
        session: &Rc<http3::Session>,
        message: Message,
        progress: &mut ResponseProgress,
        gathering: &mut Gathering,
    ) -> Result<(), ExchangeError> {
        let room = session.enter(message.head.method()).await?;
        let sending = session.send(message, room).await?;
        sending
            .receive(limits(self.clock), progress, gathering)
            .await
    }
}

/// Holds one conversation over WebSocket.
async fn converse(
    channel: Channel,
    call: &WebSocketCall,
    request: &[u8],
    progress: &mut ResponseProgress,
    mut gathering: Gathering,
) -> Result<Answer, Failure> {
    let carried = websocket::once(channel, call, request, progress, &mut gathering).await;
    match carried {
        Ok(()) => Ok(gathering.answer),
        Err(ExchangeError::Failed(FailureKind::Closed, reason)) => Err(Failure::Protocol(reason)),
        Err(error) => Err(failure(error, progress.bytes)),
    }
}

fn failure(error: ExchangeError, found_bytes: usize) -> Failure {
    match error {
        ExchangeError::Failed(FailureKind::Closed, _) => Failure::Closed { found_bytes },
        ExchangeError::Failed(FailureKind::Protocol, reason) => Failure::Protocol(reason),
        ExchangeError::Failed(FailureKind::TooLarge, reason) => Failure::TooLarge(reason),
        ExchangeError::Failed(_, reason)
        | ExchangeError::Stale(reason)
        | ExchangeError::Unprocessed { reason, .. } => Failure::Reset {
            found_bytes,
            reason,
        },
    }
}
