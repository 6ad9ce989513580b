//! Sends a plan and records the results.
//!
//! [`run`] runs a [`Job`], and [`run_together`] runs several at once. There is one event loop per generator
//! thread, over TCP or Unix sockets. Requests are rendered beforehand. Responses are parsed and checked as
//! they arrive.
//!
//! Start reading at `lane.rs`, which interprets slots, and at `pacing.rs`, which keeps the time. Both serve
//! every carrier. A carrier brings bytes to a target: `fast.rs` HTTP/1.1 without TLS, `general.rs` TLS,
//! HTTP/2, HTTP/3 and WebSocket. Open and closed loops only differ in `supply.rs`.
//!
//! Properties of every [`Measurement`]:
//! - Every slot has exactly one outcome. No slot is dropped or repeated silently. Only a request that the
//!   server declares unprocessed (HTTP/2, HTTP/3) is sent again, and that is counted.
//! - Latency counts from `due`, so a slot that waited for a connection, or for a stalled target, includes the
//!   wait in its latency.
//! - Every response is checked, by the code that [`check`] uses for a single response.
//! - Memory does not grow with the number of requests.
//!
//! Absent on purpose: pipelining, other retries, redirects and cookies. Not here yet: io_uring.

#![warn(missing_docs)]

mod answer;
mod awake;
mod backoff;
mod call_form;
mod check;
mod clock;
mod coding;
mod connection;
mod error;
mod exchange;
mod fast;
mod general;
mod generator;
mod grpc;
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
mod raw_place;
mod recorder;
mod reflection;
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
mod websocket;

pub use answer::{Answer, Failure};
pub use awake::{AwakeCores, keep_cores_awake};
pub use check::{GraphqlFault, check};
pub use coding::{CodingError, decoded, encoded};
pub use error::{LoadError, RequestError, TlsError};
pub use exchange::{WalkError, exchange, reach, walk};
pub use job::{
    Address, BodyRule, Bounds, ClientIdentity, Data, EncodedBody, EventCheck, Expectation, Framing,
    GrpcCall, GrpcDescriptors, GrpcRule, Job, Protocol, Range, Request, Resumption, RowOrder,
    StatusRule, StreamEnd, StreamRule, Target, Trust, Version, WebSocketCall,
};
pub use live::{Counts, Durations, JobProgress, Live, Progress};
pub use measurement::{
    CodedAnswers, EventsMeasurement, FailureKind, FailureSample, GeneratorCost, Handshakes,
    Iterations, Measurement, Outcomes, Packets, Pause, PositionSum, SlotTimes, Statuses,
    StepMeasurement, TimedSum, Window,
};
pub use mismatch::Mismatch;
pub use model::{Failed, Mismatched};
pub use parser::{End, Head, ParseError, Parsed, Parser, Sink};
pub use priority::raise as raise_priority;
pub use reflection::{describe, resolve};
pub use run::{run, run_and_look, run_together};
pub use scenario::{Capture, CaptureFrom, Step};
pub use slices::Slice;
pub use websocket::{ReceivedKind, ReceivedMessage};
