//! Tests of the process from outside.

#![cfg(test)]

mod ab;
mod cases;
mod chart;
mod cluster;
mod flood;
mod hooks;
mod lifecycle;
mod manifests;
mod ordered;
mod properties;
mod python;
mod quick_start;
mod server;
mod tls;
mod yaml;
