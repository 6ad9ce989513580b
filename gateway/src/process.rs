//! The process: its configuration, threads, sockets and metrics.

pub(crate) mod beginning;
mod checking;
pub(crate) mod clock;
mod command_line;
mod environment;
mod exporting;
mod exports;
pub(crate) mod generation;
mod listen;
mod loader;
mod log_form;
mod mailbox;
pub(crate) mod metrics;
mod process_state;
mod reload;
mod sites;
pub(crate) mod startup;
pub(crate) mod token_keys;
mod worker;
pub(crate) mod worker_state;
