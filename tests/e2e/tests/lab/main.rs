//! What `weigh lab`, `weigh check` and `weigh up` do: proofs, verdicts, costs, faults, and that
//! nothing is left running.

mod action;
mod chosen_load;
mod compose;
mod containers;
mod cost;
mod debug_log;
mod demo;
mod documents;
mod elsewhere;
mod faults;
mod files;
mod flamegraph;
mod gates;
mod init;
mod loads;
mod null_servers;
mod overlap;
mod placement;
mod pr;
mod proofs;
mod protocols;
mod published;
mod replicas;
mod scenarios;
mod screen;
mod sent;
mod side_by_side;
mod slices;
mod stopping;
mod sweep;
mod together;
mod until;
mod verdicts;
