//! Turns events of a subgraph into parts of the response.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::graphql::engine::Engine;
use crate::graphql::subgraphs::Subgraphs;
use crate::http::observed;
use crate::http::reply::Reply;
use crate::process::clock;
use crate::process::worker_state::{Retirement, WorkerState};
use crate::stream::drain::until;
use crate::stream::parts::Part;
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::{Stream, stream};
use gateway_extensions::{Exchange, JWT_CLAIMS, PartOf, seconds_until_expiry};
use gateway_federation::{
    Fetch, GraphqlError, OperationKind, Prepared, SubgraphAnswer, SubgraphRequest, Variables,
    errors_body,
};
use graphql_http::EventFormat;

use super::format;
use super::opened::{EndReason, Opened};
use super::queue::{Ending, Event};
use super::sharing::Receiver;
use super::socket::EXPIRED;

/// Interval between two heartbeats to a client, as in the original.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The reason why a subscription ends before its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Reload(Retirement),
    Stopping,
    TokenExpired,
    TooOld,
    StageFailed,
}

impl End {
    fn error(self) -> GraphqlError {
        let (message, code) = match self {
            Self::Reload(Retirement::Schema) => (
                "subscription has been closed due to a schema reload",
                "SUBSCRIPTION_SCHEMA_RELOAD",
            ),
            Self::Reload(Retirement::Config) => (
                "subscription has been closed due to a configuration reload",
                "SUBSCRIPTION_CONFIG_RELOAD",
            ),
            Self::Stopping => ("the gateway stops; subscribe again", "GATEWAY_STOPPING"),
            Self::TokenExpired => ("subscription closed because the JWT has expired", EXPIRED),
            Self::TooOld => (
                "the subscription has lasted as long as allowed; subscribe again",
                "SUBSCRIPTION_MAX_LIFETIME",
            ),
            Self::StageFailed => (
                "a stage failed; the subscription ends",
                "INTERNAL_SERVER_ERROR",
            ),
        };
        GraphqlError::new(message, code)
    }
}

/// Executes the plan for one event after another.
pub(super) struct Answering {
    serving: Rc<WorkerState>,
    exchange: Exchange,
    plan: (Arc<Prepared>, Variables),
}

/// A response to an event.
pub(super) struct Answered {
    pub(super) body: Bytes,
    pub(super) error_count: usize,
    is_cut: bool,
}

impl Answering {
    pub(super) fn new(
        serving: &Rc<WorkerState>,
        exchange: &Exchange,
        plan: (Arc<Prepared>, Variables),
    ) -> Self {
        let mut exchange = exchange.shared();
        // The trace ends with the request that opens the subscription. A trace of a whole day would be
        // useless.
        exchange.trace = None;
        Self {
            serving: Rc::clone(serving),
            exchange,
            plan,
        }
    }

    pub(super) fn plan(&self) -> &(Arc<Prepared>, Variables) {
        &self.plan
    }

    /// The response to an event. The time limit of a request applies to it.
    pub(super) async fn answer(&self, event: SubgraphAnswer) -> Answered {
        let router = &self.serving.generation.config.traffic_shaping.router;
        let executed = tokio::time::timeout(router.timeout.0, self.execute(event)).await;
        executed.unwrap_or_else(|_| {
            let error = GraphqlError::new("Your request has been timed out", "GATEWAY_TIMEOUT");
            Answered {
                body: errors_body(&[error]).into(),
                error_count: 1,
                is_cut: false,
            }
        })
    }

    async fn execute(&self, event: SubgraphAnswer) -> Answered {
        let Engine::Federated { policies, .. } = &self.serving.generation.engine else {
            unreachable!("an operation comes from the engine of its own generation");
        };
        // A separate exchange, because gathered response headers would grow with each event.
        let exchange = self.exchange.shared();
        let (prepared, variables) = &self.plan;
        let fetch = Answers {
            event: RefCell::new(Some(event)),
            others: Subgraphs::new(&self.serving, &exchange),
        };
        let executed = prepared.execute(variables, &fetch, policies).await;
        let (error_count, is_cut) = (executed.error_count(), executed.is_cut());
        let body = executed.into_body();
        if let Some(cost_limit) = &self.serving.generation.cost_limit {
            cost_limit.answered(prepared, variables, &body, &exchange.context);
        }
        Answered {
            body,
            error_count,
            is_cut,
        }
    }

    /// Runs the response stages on a further response. `None` if a stage has failed.
    async fn staged(&self, answered: Answered, format: EventFormat) -> Option<Part> {
        let extensions = &self.serving.extensions;
        let mut reply = Reply {
            body: answered.body,
            part: Some(PartOf {
                is_first: false,
                has_next: true,
            }),
            ..Reply::default()
        };
        let services = [&extensions.execution, &extensions.supergraph];
        for service in services.into_iter().flatten() {
            service.response(&self.exchange, &mut reply).await;
            // If a stage failed, its replacement is a response without parts.
            reply.part?;
        }
        observed::part(&self.serving, &self.exchange, &reply);
        reply.body = format::next(format, &reply.body);
        if let Some(service) = &extensions.router {
            service.response(&self.exchange, &mut reply).await;
            reply.part?;
        }
        Some(Part {
            body: reply.body,
            error_count: answered.error_count,
            is_cut: answered.is_cut,
        })
    }
}

/// When the client's token expires.
pub(super) fn expiry(exchange: &Exchange) -> Option<Instant> {
    let left = exchange.context.with(JWT_CLAIMS, seconds_until_expiry)?;
    clock::now().checked_add(Duration::try_from_secs_f64(left.max(0.0)).ok()?)
}

/// Returns the event as the response to the request that subscribes, and sends all other requests.
struct Answers<'a> {
    event: RefCell<Option<SubgraphAnswer>>,
    others: Subgraphs<'a>,
}

impl Fetch for Answers<'_> {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        if request.kind == OperationKind::Subscription {
            return self.event.take().unwrap_or_default();
        }
        self.others.fetch(request).await
    }

    async fn give_way(&self) {
        self.others.give_way().await;
    }
}

/// The parts after the beginning of the response.
pub(super) struct Feed {
    answering: Answering,
    events: Receiver,
    opened: Opened,
    format: EventFormat,
    /// Time of the next heartbeat.
    heartbeat: Instant,
    /// Time at which the subscription must end, and the reason.
    limit: (Option<Instant>, End),
    is_over: bool,
}

impl Feed {
    pub(super) fn new(
        answering: Answering,
        events: Receiver,
        opened: Opened,
        format: EventFormat,
    ) -> Self {
        let now = clock::now();
        let config = answering.serving.generation.config.subscriptions();
        let lifetime = config.and_then(|it| it.max_lifetime.as_ref());
        let oldest = lifetime.and_then(|lifetime| now.checked_add(lifetime.0));
        let limits = [
            (expiry(&answering.exchange), End::TokenExpired),
            (oldest, End::TooOld),
        ];
        let limits = limits.into_iter().filter(|(time, _)| time.is_some());
        Self {
            limit: limits
                .min_by_key(|(time, _)| *time)
                .unwrap_or((None, End::TooOld)),
            answering,
            events,
            opened,
            format,
            heartbeat: now + HEARTBEAT,
            is_over: false,
        }
    }

    /// All parts, up to the last.
    pub(super) fn parts(self) -> impl Stream<Item = Part> {
        stream::unfold(self, Self::next)
    }

    async fn next(mut self) -> Option<(Part, Self)> {
        if self.is_over {
            return None;
        }
        let over = {
            let serving = Rc::clone(&self.answering.serving);
            let (time, late) = self.limit;
            async move { over(&serving, time, late).await }
        };
        let made = {
            let make = pin!(self.make());
            // The end comes first, so that a constant stream of events cannot delay it.
            match select(pin!(over), make).await {
                Either::Left((end, _)) => Err(end),
                Either::Right((made, _)) => made,
            }
        };
        let part = match made {
            Ok(Some(part)) => part,
            Ok(None) => {
                self.end(EndReason::Subgraph);
                of_gateway(format::complete(self.format))
            }
            Err(end) => {
                self.end(EndReason::Gateway);
                Part {
                    error_count: 1,
                    ..of_gateway(format::fatal(self.format, &end.error()))
                }
            }
        };
        Some((part, self))
    }

    fn end(&mut self, why: EndReason) {
        self.is_over = true;
        self.opened.ends(why);
    }

    /// The next part: a response to an event, or a heartbeat. `None` if there are no more.
    async fn make(&mut self) -> Result<Option<Part>, End> {
        let part = loop {
            let ready = {
                let ready = pin!(self.events.ready());
                match select(ready, pin!(until(Some(self.heartbeat)))).await {
                    Either::Left((ready, _)) => ready,
                    Either::Right(_) => break of_gateway(format::heartbeat(self.format)),
                }
            };
            let bytes = match ready {
                Ok(bytes) => bytes,
                Err(Ending::Complete) => return Ok(None),
                Err(Ending::Expired) => return Err(End::TokenExpired),
                Err(Ending::Cut) => return Err(End::Stopping),
            };
            // The event may have many clients. It stays in their queues until its turn.
            self.answering
                .serving
                .shared
                .completion_turns
                .take(bytes)
                .await;
            let Some(event) = self.events.take() else {
                continue;
            };
            let answered = self.answering.answer(answer_of(event)).await;
            self.opened.answered();
            let staged = self.answering.staged(answered, self.format).await;
            break staged.ok_or(End::StageFailed)?;
        };
        self.heartbeat = clock::now() + HEARTBEAT;
        Ok(Some(part))
    }
}

fn of_gateway(body: Bytes) -> Part {
    Part {
        body,
        ..Part::default()
    }
}

/// The event as the response to the request that subscribes.
pub(super) fn answer_of(event: Event) -> SubgraphAnswer {
    match event {
        Event::Response(body) => SubgraphAnswer::from_body(body),
        Event::Failed(error) => SubgraphAnswer::from_error(error),
    }
}

/// Waits until a subscription must end.
async fn over(serving: &WorkerState, time: Option<Instant>, late: End) -> End {
    let drained = pin!(serving.shared.drain.begun());
    let reloaded = pin!(serving.retired());
    match select(pin!(until(time)), select(drained, reloaded)).await {
        Either::Left(_) => late,
        Either::Right((Either::Left(_), _)) => End::Stopping,
        Either::Right((Either::Right((why, _)), _)) => End::Reload(why),
    }
}
