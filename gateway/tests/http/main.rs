//! Tests the gateway as a process: HTTP, limits, extension points, reload and stopping.
//!
//! Subgraphs and coprocessors are stubs inside the test. So each test chooses their responses and sees their
//! requests.

#![cfg(test)]

mod abuse;
mod actions;
mod audit;
mod authorization;
mod batching;
mod callbacks;
mod client;
mod collector;
mod connections;
mod context;
mod deferred;
mod deferred_ends;
mod demand_control;
mod deploy;
mod endpoint;
mod expansion;
mod extensions;
mod gateway;
mod healing;
mod importing;
mod instrumentation;
mod keys;
mod lifecycle;
mod limits;
mod operation_list;
mod otelcol;
mod overrides;
mod persisted_queries;
mod planning;
mod pushed_metrics;

mod quick_start;
mod remote_schema_limits;
mod remote_schemas;
mod response_cache;
mod rest;
mod scripts;
mod sessions;
mod sockets;
mod stub;
mod subgraph_traffic;
mod subscription_ends;
mod subscription_fairness;
mod subscription_reconnects;
mod subscription_sharing;
mod subscription_transports;
mod subscriptions;
mod tls;
mod trace_receivers;
mod tracing;
mod traffic;
mod upstream_limits;
