//! Calls of gRPC: the replies to their messages over a stream of HTTP/2, and the deadline over any connection.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use model::GrpcCall;

use super::feed::Ledger;
use super::http2::{Limits, Sending};
use super::progress::{ExchangeError, Judging, ResponseProgress};
use crate::check::GrpcFindings;
use crate::clock::{Clock, to_ns};
use crate::measurement::FailureKind;
use crate::parser::{Head, ParseError, Sink};
use crate::websocket::Listener as _;

/// A judge that also assigns the answers to the messages before them.
struct Replying<'a, 's> {
    judging: &'a mut Judging<'s>,
    ledger: Rc<RefCell<Ledger>>,
    clock: Clock,
}

impl Sink for Replying<'_, '_> {
    fn head(&mut self, head: &Head<'_>) {
        self.judging.head(head);
    }

    fn body(&mut self, part: &[u8]) {
        let before = self.judging.messages();
        self.judging.body(part);
        let now_ns = self.clock.now_ns();
        for _ in before..self.judging.messages() {
            let due_ns = self.ledger.borrow_mut().reply();
            if let Some(due_ns) = due_ns {
                self.judging.replied(now_ns.saturating_sub(due_ns));
            }
        }
    }

    fn refusal(&self) -> Option<ParseError> {
        self.judging.refusal()
    }

    fn trailers(&mut self, trailers: &Head<'_>) {
        self.judging.trailers(trailers);
    }

    fn is_over(&self) -> bool {
        self.judging.is_over()
    }

    fn is_ended(&self) -> bool {
        self.judging.is_ended()
    }
}

/// Receives the answers to a call. With a ledger, each answer is a reply.
pub(super) async fn receive(
    sending: Sending<'_>,
    call: &GrpcCall,
    ledger: Option<Rc<RefCell<Ledger>>>,
    limits: Limits,
    progress: &mut ResponseProgress,
    judging: &mut Judging<'_>,
) -> Result<(), ExchangeError> {
    let (clock, begin_ns) = (limits.clock, limits.clock.now_ns());
    let replies = ledger.clone().filter(|_| call.has_replies);
    let received = async {
        match replies {
            None => sending.receive(limits, progress, judging).await,
            Some(ledger) => {
                let mut sink = Replying {
                    judging,
                    ledger,
                    clock,
                };
                sending.receive(limits, progress, &mut sink).await
            }
        }
    };
    let received = within(call.deadline, clock, begin_ns, received).await;
    let findings = &mut judging.findings.grpc;
    ended(received, Some(call), findings)?;
    if let Some(ledger) = ledger.filter(|_| call.has_replies) {
        let (unanswered, sent) = ledger.borrow().unanswered();
        findings.lacks_replies(unanswered, sent);
    }
    Ok(())
}

/// The deadline of a call has passed.
#[derive(Debug)]
pub(super) struct Expired;

/// Waits for the answers until the deadline. A server may also reset the stream at that time.
pub(super) async fn within<T>(
    deadline: Option<Duration>,
    clock: Clock,
    begin_ns: u64,
    received: impl Future<Output = Result<T, ExchangeError>>,
) -> Result<Result<T, ExchangeError>, Expired> {
    let Some(limit) = deadline else {
        return Ok(received.await);
    };
    let is_past = || clock.now_ns() >= begin_ns.saturating_add(to_ns(limit));
    match tokio::time::timeout(limit, received).await {
        Err(_) => Err(Expired),
        Ok(Err(ExchangeError::Failed(FailureKind::Reset, _))) if is_past() => Err(Expired),
        Ok(received) => Ok(received),
    }
}

/// Returns the result of a call. `None` if its deadline has passed, and the rule of the call expects that.
pub(super) fn ended<T>(
    received: Result<Result<T, ExchangeError>, Expired>,
    call: Option<&GrpcCall>,
    findings: &mut GrpcFindings,
) -> Result<Option<T>, ExchangeError> {
    match (received, call) {
        (Ok(received), _) => received.map(Some),
        (Err(Expired), Some(call)) if call.status == 4 => {
            findings.expire();
            Ok(None)
        }
        (Err(Expired), call) => {
            let limit = call.and_then(|call| call.deadline);
            Err(expired(limit.unwrap_or_default()))
        }
    }
}

/// The failure of a call after its deadline.
fn expired(limit: Duration) -> ExchangeError {
    let name = grpc_schema::named(4);
    let reason = format!("no complete answer within the deadline of {limit:?}: grpc-status {name}");
    ExchangeError::failed(FailureKind::Timeout, reason)
}
