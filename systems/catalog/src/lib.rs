//! Products and line items over PostgreSQL or SQLite, as GraphQL and REST.
//!
//! Start reading at `select`, which says what can be asked for; `store` asks a database for it;
//! `rest`, `graphql` and `exchange` are the way there and back.

mod clock;
mod config;
mod datum;
mod entity;
mod exchange;
mod graphql;
mod id;
mod metrics;
mod migrations;
mod moment;
mod rest;
mod seed;
mod select;
mod serve;
mod store;

pub use serve::run;
