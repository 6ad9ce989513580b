//! Common types of the instrument, each defined once: loads, outcomes of requests, metrics and stopping
//! rules.
//!
//! `lab` makes these types from the user's text, and `schedule` plans with them. `load` sends their requests,
//! `recording` stores them, and `report` shows them. If a recording contains a type, its serialized form here
//! *is* the format of the recording. Durations are whole microseconds ([`as_micros`]), and names contain their
//! units.
//!
//! Planning, sending, reading files and drawing are absent on purpose. A type that only one crate uses stays
//! in that crate.

#![warn(missing_docs)]

// All crates that need Linux depend on this crate. So the compiler prints one sentence instead of a list of
// missing names.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "weigh runs on Linux only, because it measures with epoll, control groups and /proc. Use a Linux machine or a virtual machine"
);

pub mod as_micros;
mod capacity;
mod coded;
mod data;
mod expectation;
mod factorial;
mod gate;
mod generator;
mod grpc;
mod handshakes;
mod invalid;
mod load;
mod metric;
mod order;
mod outcome;
mod packets;
mod pod_settings;
mod protocol;
mod rate;
mod scenario;
mod shard;
mod stream;
mod throttled;
mod until;
mod websocket;

pub use as_micros::micros;
pub use capacity::{Capacity, CapacityError};
pub use coded::{CodedAnswers, IDENTITY};
pub use data::{Data, Range, RowOrder};
pub use expectation::{BodyRule, EncodedBody, Expectation, StatusPart, StatusRule, StatusSet};
pub use factorial::{Alias, FactorSet, FactorialDesign};
pub use gate::{Gate, GateError, Relation, Subject, gate_grammar};
pub use generator::{GeneratorCost, Pause};
pub use grpc::{GrpcAnswers, GrpcCall, GrpcDescriptors, GrpcRule, RpcProtocol};
pub use handshakes::{Handshakes, handshakes};
pub use invalid::InvalidKind;
pub use load::{Arrival, Load, Phase, Settle, Stop};
pub use metric::{Direction, Metric, Unit};
pub use order::Order;
pub use outcome::{Failed, FailureKind, FailureSample, Iterations, Mismatched, Outcomes};
pub use packets::{Packets, packets};
pub use pod_settings::PodSettings;
pub use protocol::{ClientIdentity, Protocol, Resumption, Trust, Version};
pub use rate::{Rate, RateError};
pub use scenario::{Capture, CaptureFrom, Step};
pub use shard::{Shard, ShardError};
pub use stream::{EventCheck, Framing, StreamEnd, StreamRule};
pub use throttled::Throttled;
pub use until::{Goal, HalfWidth, Until, UntilError, until_grammar};
pub use websocket::{
    GraphqlProtocol, MessageContent, PlannedMessage, ReplyRule, WebSocketCall, WebSocketDialect,
};
