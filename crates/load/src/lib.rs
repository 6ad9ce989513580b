//! Sends a plan and records what happened.
//!
//! [`run`] carries out a [`Job`], [`run_together`] several at once: one event loop per generator
//! thread, over TCP or Unix sockets, requests rendered beforehand, answers parsed and checked as they
//! arrive. Start reading at `lane.rs`, which knows what a slot means, and at `pacing.rs`, which keeps
//! the time; both serve every carrier. A carrier brings bytes to a target: `fast.rs` HTTP/1.1 in the
//! clear, `general.rs` TLS and HTTP/2. The two meanings of a load, open and closed, differ in
//! `supply.rs` only.
//!
//! What holds for every [`Measurement`]:
//! - every slot has exactly one outcome, and none is dropped or retried in silence: only a request that the
//!   server declares unprocessed (HTTP/2) is sent again, and that is counted;
//! - latency counts from `due`, so a slot that waited for a connection, or for a stalled target, has
//!   the wait in its latency;
//! - every answer is checked, by the code that [`check`] uses on a single one;
//! - memory does not grow with the number of requests.
//!
//! Absent on purpose: pipelining, other retries, redirects and cookies. Not here yet: io_uring.

mod answer;
mod awake;
mod backoff;
mod check;
mod clock;
mod coding;
mod connection;
mod error;
mod exchange;
mod fast;
mod general;
mod generator;
mod job;
mod lane;
mod live;
mod measurement;
mod mismatch;
pub mod null;
mod pacing;
mod parser;
mod poll;
mod prepared;
mod priority;
mod recorder;
mod rendered;
mod run;
mod sample;
mod scenario;
mod script;
mod slices;
mod slot_queue;
mod socket;
mod spin;
mod supply;
mod template;

pub use answer::{Answer, Failure};
pub use awake::{AwakeCores, keep_cores_awake};
pub use check::{GraphqlFault, check};
pub use coding::{CodingError, decoded, encoded};
pub use error::{LoadError, RequestError, TlsError};
pub use exchange::{WalkError, exchange, walk};
pub use job::{
    Address, BodyRule, Bounds, Data, EncodedBody, Expectation, Job, Protocol, Range, Request,
    RowOrder, StatusRule, Target, Trust, Version,
};
pub use live::{Counts, Durations, JobProgress, Live, Progress};
pub use measurement::{
    CodedAnswers, FailureKind, FailureSample, GeneratorCost, Iterations, Measurement, Outcomes,
    Pause, SlotTimes, Statuses, StepMeasurement, Window,
};
pub use mismatch::Mismatch;
pub use model::{Failed, Mismatched};
pub use parser::{End, Head, ParseError, Parsed, Parser, Sink};
pub use priority::raise as raise_priority;
pub use run::{run, run_and_look, run_together};
pub use scenario::{Capture, CaptureFrom, Step};
pub use slices::Slice;
