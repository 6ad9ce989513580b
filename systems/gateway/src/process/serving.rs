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
use crate::stream::subscription::opened::Counts;
use crate::stream::subscription::turns::Turns;

/// What a worker serves requests with until the next reload.
pub(crate) struct Serving {
    pub(crate) generation: Arc<Generation>,
    pub(crate) extensions: gateway_extensions::Worker,
    /// Keeps its connections across reloads.
    pub(crate) client: Client,
    pub(crate) lasting: Lasting,
    /// Its own end, for answers that would go on for longer.
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

/// What a worker has across reloads.
#[derive(Clone)]
pub(crate) struct Lasting {
    pub(crate) planning: Arc<Planning>,
    /// The end of the worker, for answers that go on.
    pub(crate) drain: Rc<Drain>,
    /// The subscriptions of all workers.
    pub(crate) subscriptions: Arc<Counts>,
    /// Those of them whose events come by callbacks.
    pub(crate) callbacks: Arc<Callbacks>,
    /// In which this worker completes their events.
    pub(crate) turns: Rc<Turns>,
}

impl Serving {
    /// Compiles what belongs to one thread.
    pub(crate) fn new(
        generation: Arc<Generation>,
        client: Client,
        shard: &Arc<Shard>,
        lasting: Lasting,
    ) -> Rc<Self> {
        let names = generation.subgraphs.iter().map(|it| it.name.as_str());
        let observer = shard.observer(names);
        Rc::new(Self {
            extensions: generation.extensions.worker(client.clone(), observer),
            client,
            generation,
            lasting,
            retired: Beginning::default(),
        })
    }

    /// Ends what would go on, because new requests are served with another generation.
    pub(crate) fn retire(&self, for_the_sake_of: &Generation) {
        let is_same = self.generation.schema_digest == for_the_sake_of.schema_digest;
        self.retired.begin(if is_same {
            Retirement::Config
        } else {
            Retirement::Schema
        });
    }

    /// Waits until it is retired.
    pub(crate) async fn retired(&self) -> Retirement {
        self.retired.begun().await
    }
}
