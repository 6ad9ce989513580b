//! Responses in several parts to operations with deferred fragments.
//!
//! The execution is a future that owns all its data. The pipeline drives it to the first part, which is the
//! reply. The body drives it from there (see `parts`). Each later part passes the response stages of
//! execution, supergraph and router, like the first part. Its status and headers have no effect, because they
//! are sent by then.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{Either, select};
use futures_util::stream;
use gateway_extensions::{Exchange, PartOf, Service};
use gateway_federation::{GraphqlError, Open, PartsFormat, Piece, Prepared, Variables};
use graphql_http::{IncrementalFormat, Media, incremental_format};
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use crate::graphql::engine::Engine;
use crate::graphql::subgraphs::Subgraphs;
use crate::http::observed;
use crate::http::reply::{self, Reply};
use crate::http::summary::Summary;
use crate::process::worker_state::WorkerState;
use crate::stream::drain::{End, Term};
use crate::stream::parts::{BodyTail, Multipart, Part};

/// The multipart format that a client accepts, if any.
pub(crate) fn format(headers: &HeaderMap) -> Option<IncrementalFormat> {
    let accept = headers.get_all(header::ACCEPT).iter();
    incremental_format(accept.map(HeaderValue::as_bytes))
}

/// Executes an operation up to the first part of its response, and stores the rest in the summary. If no
/// fragment is deferred in the end, the response has a single part.
pub(crate) async fn execute(
    serving: &Rc<WorkerState>,
    exchange: &Exchange,
    plan: (Arc<Prepared>, Variables),
    media: Media,
    format: IncrementalFormat,
    summary: &mut Summary,
) -> Reply {
    let exchange = Rc::new(exchange.shared());
    let mut work = Work::begin(serving, &exchange, plan, of_federation(format));
    let Some(piece) = work.next().await else {
        unreachable!("an execution has at least one part");
    };
    summary.error_count = piece.error_count;
    summary.is_cut = piece.is_cut;
    let media = if piece.has_next {
        content_type(format)
    } else {
        work.count_cost(&piece);
        reply::content_type(media)
    };
    let mut reply = reply::with_body(StatusCode::OK, media, piece.body);
    exchange.give_headers_so_far(&mut reply.headers);
    if piece.has_next {
        reply.part = Some(PartOf {
            is_first: true,
            has_next: true,
        });
        let term = Term {
            deadline: summary.parts_until,
            drain: Rc::clone(&serving.shared.drain),
        };
        let rest = Remainder {
            work,
            term,
            open: piece.open,
            is_over: false,
        };
        summary.rest = Some(Box::new(BodyTail::new(stream::unfold(
            rest,
            Remainder::next,
        ))));
    }
    reply
}

const fn of_federation(format: IncrementalFormat) -> PartsFormat {
    match format {
        IncrementalFormat::Defer20220824 => PartsFormat::Path,
        IncrementalFormat::IncrementalV02 => PartsFormat::Pending,
    }
}

const fn content_type(format: IncrementalFormat) -> HeaderValue {
    HeaderValue::from_static(match format {
        IncrementalFormat::Defer20220824 => {
            "multipart/mixed;boundary=\"graphql\";deferSpec=20220824"
        }
        IncrementalFormat::IncrementalV02 => {
            "multipart/mixed;boundary=\"graphql\";incrementalSpec=v0.2"
        }
    })
}

/// A running execution.
struct Work {
    serving: Rc<WorkerState>,
    exchange: Rc<Exchange>,
    plan: Rc<(Arc<Prepared>, Variables)>,
    format: PartsFormat,
    /// `None` after its end.
    execution: Option<Pin<Box<dyn Future<Output = ()>>>>,
    given: Rc<RefCell<VecDeque<Piece>>>,
}

impl Work {
    fn begin(
        serving: &Rc<WorkerState>,
        exchange: &Rc<Exchange>,
        plan: (Arc<Prepared>, Variables),
        format: PartsFormat,
    ) -> Self {
        let plan = Rc::new(plan);
        let given = Rc::<RefCell<VecDeque<Piece>>>::default();
        let own = (Rc::clone(serving), Rc::clone(exchange), Rc::clone(&plan));
        let out = Rc::clone(&given);
        let execution = async move {
            let (serving, exchange, plan) = own;
            let Engine::Federated { policies, .. } = &serving.generation.engine else {
                unreachable!("an operation comes from the engine of its own generation");
            };
            let (prepared, variables) = &*plan;
            let subgraphs = Subgraphs::new(&serving, &exchange);
            let give = |piece| out.borrow_mut().push_back(piece);
            prepared
                .execute_in_parts(variables, &subgraphs, policies, format, give)
                .await;
        };
        Self {
            serving: Rc::clone(serving),
            exchange: Rc::clone(exchange),
            plan,
            format,
            execution: Some(Box::pin(execution)),
            given,
        }
    }

    /// The next part as executed, before the stages.
    async fn next(&mut self) -> Option<Piece> {
        std::future::poll_fn(|task| {
            loop {
                if let Some(piece) = self.given.borrow_mut().pop_front() {
                    return Poll::Ready(Some(piece));
                }
                let Some(execution) = &mut self.execution else {
                    return Poll::Ready(None);
                };
                if execution.as_mut().poll(task).is_ready() {
                    self.execution = None;
                } else if self.given.borrow().is_empty() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Counts the cost of the whole response, at its end.
    fn count_cost(&self, last: &Piece) {
        let (prepared, variables) = &*self.plan;
        if let (Some(cost_limit), Some(whole)) = (&self.serving.generation.cost_limit, &last.whole)
        {
            cost_limit.answered(prepared, variables, whole, &self.exchange.context);
        }
    }

    /// Runs the response stages on a part. `None` if a stage has failed.
    async fn staged(&self, piece: Piece) -> Option<Part> {
        let extensions = &self.serving.extensions;
        let part = PartOf {
            is_first: false,
            has_next: piece.has_next,
        };
        let mut reply = Reply {
            body: piece.body,
            part: Some(part),
            ..Reply::default()
        };
        for service in [&extensions.execution, &extensions.supergraph] {
            self.pass(service.as_ref(), &mut reply).await?;
        }
        observed::part(&self.serving, &self.exchange, &reply);
        reply.body = Multipart::next(&reply.body, !part.has_next);
        self.pass(extensions.router.as_ref(), &mut reply).await?;
        Some(Part {
            body: reply.body,
            error_count: piece.error_count,
            is_cut: piece.is_cut,
        })
    }

    async fn pass(&self, service: Option<&Service>, reply: &mut Reply) -> Option<()> {
        if let Some(service) = service {
            service.response(&self.exchange, reply).await;
        }
        // If a stage failed, its replacement is a response without parts.
        reply.part.map(drop)
    }
}

/// The parts after the first part.
struct Remainder {
    work: Work,
    term: Term,
    /// The parts that the client still expects.
    open: Open,
    is_over: bool,
}

impl Remainder {
    /// The next part and the remainder after it. `None` after the last part.
    async fn next(mut self) -> Option<(Part, Self)> {
        if self.is_over {
            return None;
        }
        let made = {
            let make = pin!(make(&mut self.work));
            let over = pin!(self.term.over());
            match select(make, over).await {
                Either::Left((made, _)) => made,
                Either::Right((end, _)) => Err(reason(end)),
            }
        };
        let part = match made {
            Ok((part, open, has_next)) => {
                self.open = open;
                self.is_over = !has_next;
                part
            }
            Err(reason) => {
                self.is_over = true;
                // The client gets no more of the running execution.
                self.work.execution = None;
                let body = self.open.end(self.work.format, &reason);
                Part {
                    body: Multipart::next(&body, true),
                    error_count: 1,
                    is_cut: false,
                }
            }
        };
        Some((part, self))
    }
}

/// A part, the parts that the client still expects, and a flag: true if more parts follow.
type Made = (Part, Open, bool);

async fn make(work: &mut Work) -> Result<Made, GraphqlError> {
    let internal = |message: &str| GraphqlError::new(message, "INTERNAL_SERVER_ERROR");
    let Some(mut piece) = work.next().await else {
        return Err(internal("the answer ended before its last part"));
    };
    let (open, has_next) = (std::mem::take(&mut piece.open), piece.has_next);
    if !has_next {
        work.count_cost(&piece);
    }
    match work.staged(piece).await {
        Some(part) => Ok((part, open, has_next)),
        None => Err(internal(
            "a stage failed; the rest of the answer is left out",
        )),
    }
}

fn reason(end: End) -> GraphqlError {
    match end {
        End::TimedOut => GraphqlError::new("Your request has been timed out", "GATEWAY_TIMEOUT"),
        End::Stopping => GraphqlError::new(
            "the gateway stops; send the request again",
            "GATEWAY_STOPPING",
        ),
    }
}
