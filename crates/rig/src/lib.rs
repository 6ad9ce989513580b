//! Builds, starts, limits, readies, watches and stops systems.
//!
//! Main idea: every process is ended in every case. The owner of a [`Rig`] talks to a [`keeper`] that
//! outlives it. The keeper starts a shepherd for each system. Each of them detects the death of the process
//! above it, because the kernel closes a pipe. [`launch`] lists all cases.
//!
//! A system's first process must stay in the foreground. A program that turns itself into a daemon counts as
//! exited (and is still ended completely).
//!
//! Absent on purpose: labs, HTTP (the caller's probe decides readiness), statistics, containers.

mod attached;
mod cgroup;
mod clock;
mod console;
mod error;
pub mod keeper;
pub mod launch;
mod lines;
mod link;
mod listening;
mod log_tail;
pub mod machine;
mod moment;
mod outcome;
mod port;
mod precedence;
mod processes;
mod program;
mod protocol;
mod reaper;
mod rig;
mod segments;
mod spec;
mod usage;
mod wakeups;

pub use attached::{AttachError, Attached, processor_time};
pub use error::{BuildError, ReadyError, RigError, SpawnError, UsageError};
pub use listening::listening;
pub use moment::{Moment, busy_share_for, moment, stolen};
pub use outcome::{Enforced, Leftover, Manner, State, Status, Stopped};
pub use port::{PortLease, free_port};
pub use program::find_program;
pub use rig::{Rig, System};
pub use segments::{Segments, segments, segments_to};
pub use spec::{BuildSpec, KeeperCommand, ProcessLimits, SystemSpec};
pub use usage::{ContextSwitches, Usage, UsageSource};
