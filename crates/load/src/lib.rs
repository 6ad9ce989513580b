//! Sends a plan and records what happened.

mod check;
mod clock;
mod exchange;
mod job;
mod live;
mod measurement;
mod parser;
mod rendered;
mod socket;

pub use check::{GraphqlFault, Mismatch, check};
pub use exchange::{Answer, Failure, exchange};
pub use job::{Address, BodyRule, Bounds, Expectation, Job, Request, StatusRule, Target};
pub use live::{Live, Progress};
pub use measurement::{
    Failed, FailureKind, FailureSample, GeneratorCost, Measurement, Mismatched, Outcomes, Pause,
    Statuses, Window,
};
pub use parser::{End, Head, ParseError, Parsed, Parser, Sink};
pub use rendered::RequestError;
