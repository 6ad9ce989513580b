//! Products and line items over PostgreSQL or SQLite, as GraphQL and REST.
//!
//! Start reading at `select`, which describes queries. `store` sends them to a database. `rest`, `graphql`
//! and `exchange` convert requests to queries, and rows to responses.

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
