//! Tests of merged schemas in one process: services are functions, and one of them executes operations
//! against its own schema.

#![cfg(test)]

mod echo;
mod names;
mod responses;
mod sessions;
mod stand;
