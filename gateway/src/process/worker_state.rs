//! One worker's view of one generation.

use std::rc::Rc;
use std::sync::Arc;

use gateway_upstream::Client;

use crate::graphql::planning::Planning;
use crate::process::beginning::Beginning;
use crate::process::generation::Generation;
use crate::process::metrics::Shard;
use crate::stream::drain::Drain;
use crate::stream::subscription::callback::Callbacks;
use crate::stream::subscription::completion_turns::CompletionTurns;
use crate::stream::subscription::opened::SubscriptionCounters;

/// A worker's state for requests, until the next reload.
pub(crate) struct WorkerState {
    pub(crate) generation: Arc<Generation>,
    pub(crate) extensions: gateway_extensions::ExtensionsWorker,
    /// The HTTP client. It keeps its connections across reloads.
    pub(crate) client: Client,
    pub(crate) shared: SharedState,
    /// Begins when a new generation takes over, for responses that would otherwise continue.
    retired: Beginning<Retirement>,
}

/// The reason why a worker serves new requests with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retirement {
    /// The schema has changed.
    Schema,
    /// The configuration, or a file that belongs to it, was read again.
    Config,
}

/// A worker's state that survives reloads.
#[derive(Clone)]
pub(crate) struct SharedState {
    pub(crate) planning: Arc<Planning>,
    /// The stop of the worker, for responses that still run.
    pub(crate) drain: Rc<Drain>,
    /// The subscriptions of all workers.
    pub(crate) subscriptions: Arc<SubscriptionCounters>,
    /// The subscriptions that receive events by callbacks.
    pub(crate) callbacks: Arc<Callbacks>,
    /// The turns for the completion of this worker's events.
    pub(crate) completion_turns: Rc<CompletionTurns>,
}

impl WorkerState {
    /// Compiles the parts that belong to one thread.
    pub(crate) fn new(
        generation: Arc<Generation>,
        client: Client,
        shard: &Arc<Shard>,
        shared: SharedState,
    ) -> Rc<Self> {
        let names = generation.subgraphs.iter().map(|it| it.name.as_str());
        let observer = shard.observer(names);
        Rc::new(Self {
            extensions: generation.extensions.worker(client.clone(), observer),
            client,
            generation,
            shared,
            retired: Beginning::default(),
        })
    }

    /// Ends responses that would continue, because new requests use the generation `for_the_sake_of`.
    pub(crate) fn retire(&self, for_the_sake_of: &Generation) {
        let is_same = self.generation.schema_digest == for_the_sake_of.schema_digest;
        self.retired.begin(if is_same {
            Retirement::Config
        } else {
            Retirement::Schema
        });
    }

    /// Waits until a new generation takes over.
    pub(crate) async fn retired(&self) -> Retirement {
        self.retired.begun().await
    }
}
