//! One worker's view of one generation.

use std::rc::Rc;
use std::sync::Arc;

use gateway_upstream::Client;

use crate::generation::Generation;
use crate::metrics::Shard;

/// What a worker serves requests with until the next reload.
pub(crate) struct Serving {
    pub(crate) generation: Arc<Generation>,
    pub(crate) extensions: gateway_extensions::Worker,
}

impl Serving {
    /// Compiles what belongs to one thread. `client` keeps its connections across reloads.
    pub(crate) fn new(generation: Arc<Generation>, client: Client, shard: &Arc<Shard>) -> Rc<Self> {
        let names = generation.subgraphs.iter().map(|it| it.name.as_str());
        let observer = shard.observer(names);
        Rc::new(Self {
            extensions: generation.extensions.worker(client, observer),
            generation,
        })
    }
}
