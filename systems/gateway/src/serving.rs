//! One worker's view of one generation.

use std::rc::Rc;
use std::sync::Arc;

use gateway_upstream::Client;

use crate::generation::Generation;
use crate::metrics::Shard;
use crate::parts::Drain;
use crate::planning::Planning;

/// What a worker serves requests with until the next reload.
pub(crate) struct Serving {
    pub(crate) generation: Arc<Generation>,
    pub(crate) extensions: gateway_extensions::Worker,
    pub(crate) planning: Arc<Planning>,
    /// The end of the worker, for answers that go on.
    pub(crate) drain: Rc<Drain>,
}

impl Serving {
    /// Compiles what belongs to one thread. `client` keeps its connections across reloads.
    pub(crate) fn new(
        generation: Arc<Generation>,
        client: Client,
        shard: &Arc<Shard>,
        (planning, drain): (&Arc<Planning>, &Rc<Drain>),
    ) -> Rc<Self> {
        let names = generation.subgraphs.iter().map(|it| it.name.as_str());
        let observer = shard.observer(names);
        Rc::new(Self {
            extensions: generation.extensions.worker(client, observer),
            generation,
            planning: Arc::clone(planning),
            drain: Rc::clone(drain),
        })
    }
}
