//! Tests of the process from outside.

#![cfg(test)]

mod ab;
mod cases;
mod cluster;
mod flood;
mod lifecycle;
mod manifests;
mod objects;
mod ordered;
mod properties;
mod python;
mod quick_start;
mod server;
mod yaml;
