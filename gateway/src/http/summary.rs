//! The summary of a request for the log and the metrics.

use std::net::IpAddr;
use std::time::Instant;

use crate::http::observed::Observed;
use crate::http::reply::Reply;
use crate::stream::parts::BodyTail;

/// The facts about a request for the log and the metrics. Rare parts are boxed, because the summary is moved
/// with every response.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Name of the operation, shortened.
    pub(crate) operation_name: Option<String>,
    /// The client's name and version, if it sent them.
    pub(crate) client: Option<Box<Client>>,
    /// The address that limits count the client by. `None` if they do not count it.
    pub(crate) address: Option<IpAddr>,
    /// Number of errors of the execution.
    pub(crate) error_count: usize,
    /// True if data is missing because of `limits`.
    pub(crate) is_cut: bool,
    /// True if the client accepts responses only as server-sent events.
    pub(crate) takes_events_only: bool,
    /// Time at which a response in parts must end. `None` if the response must have a single part.
    pub(crate) parts_until: Option<Instant>,
    /// The parts of the response after its first part. The first part is the reply.
    pub(crate) rest: Option<Box<BodyTail>>,
    /// The facts for `telemetry.instrumentation`. `None` without instrumentation of the router.
    pub(crate) observed: Option<Box<Observed>>,
}

/// A client's own name and version, shortened for the log and the metrics.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
}

impl Summary {
    /// True if more parts follow a reply. If a stage has replaced the reply, no parts follow.
    pub(crate) fn goes_on(&mut self, reply: &Reply) -> bool {
        if reply.part.is_none() {
            self.rest = None;
        }
        self.rest.is_some()
    }

    /// Adds the summary of one operation of a batch.
    pub(crate) fn add(&mut self, one: Summary) {
        self.error_count += one.error_count;
        self.is_cut |= one.is_cut;
        self.operation_name = self.operation_name.take().or(one.operation_name);
        self.client = self.client.take().or(one.client);
    }
}
