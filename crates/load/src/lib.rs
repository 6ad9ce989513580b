//! Sends a plan and records what happened.

mod check;
mod clock;
mod connection;
mod exchange;
mod job;
mod live;
mod measurement;
mod parser;
mod poll;
mod recorder;
mod rendered;
mod run;
mod socket;
mod supply;
mod worker;

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
pub use run::{LoadError, run};
