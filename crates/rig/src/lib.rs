//! Builds, starts, limits, readies, watches and stops systems.

mod error;
pub mod keeper;
pub mod launch;
pub mod machine;
mod outcome;
mod port;
mod program;
mod rig;
mod spec;
mod usage;

pub use error::{BuildError, ReadyError, RigError, SpawnError, UsageError};
pub use outcome::{Enforced, Leftover, Manner, State, Status, Stopped};
pub use port::{PortLease, free_port};
pub use program::find_program;
pub use rig::{Rig, System};
pub use spec::{BuildSpec, KeeperCommand, Limits, SystemSpec};
pub use usage::{Source, Throttled, Usage};
