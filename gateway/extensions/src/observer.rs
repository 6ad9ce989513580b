//! Reports of stages about their calls, for metrics.

use std::sync::Arc;
use std::time::Duration;

use gateway_telemetry::{InstrumentHead, Series};

/// One of the eight stages of a coprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the protocol")]
pub enum StageKind {
    RouterRequest,
    RouterResponse,
    SupergraphRequest,
    SupergraphResponse,
    ExecutionRequest,
    ExecutionResponse,
    SubgraphRequest,
    SubgraphResponse,
}

impl StageKind {
    pub(crate) const ALL: [Self; 8] = [
        Self::RouterRequest,
        Self::RouterResponse,
        Self::SupergraphRequest,
        Self::SupergraphResponse,
        Self::ExecutionRequest,
        Self::ExecutionResponse,
        Self::SubgraphRequest,
        Self::SubgraphResponse,
    ];

    /// The name of the stage in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RouterRequest => "RouterRequest",
            Self::RouterResponse => "RouterResponse",
            Self::SupergraphRequest => "SupergraphRequest",
            Self::SupergraphResponse => "SupergraphResponse",
            Self::ExecutionRequest => "ExecutionRequest",
            Self::ExecutionResponse => "ExecutionResponse",
            Self::SubgraphRequest => "SubgraphRequest",
            Self::SubgraphResponse => "SubgraphResponse",
        }
    }

    pub(crate) fn is_request(self) -> bool {
        matches!(
            self,
            Self::RouterRequest
                | Self::SupergraphRequest
                | Self::ExecutionRequest
                | Self::SubgraphRequest
        )
    }

    pub(crate) fn is_router(self) -> bool {
        matches!(self, Self::RouterRequest | Self::RouterResponse)
    }
}

/// Receives the result of each call.
pub trait Observer {
    /// A call to a coprocessor ended.
    fn coprocessor(&self, stage: StageKind, succeeded: bool, took: Duration);
    /// A call to a subgraph ended. `None` means that no response arrived.
    fn subgraph(&self, index: usize, status: Option<u16>, took: Duration);
    /// The gateway sends a failed subgraph request again.
    fn retried(&self, _index: usize) {}
    /// The series of an instrument for the values of this worker.
    fn series(&self, instrument: &Arc<InstrumentHead>) -> Arc<Series> {
        Arc::new(Series::new(Arc::clone(instrument)))
    }
}

/// Ignores all results.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn coprocessor(&self, _: StageKind, _: bool, _: Duration) {}
    fn subgraph(&self, _: usize, _: Option<u16>, _: Duration) {}
}
