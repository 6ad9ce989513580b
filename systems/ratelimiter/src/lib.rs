//! The login rate limiter: GraphQL over HTTP, its own memory or Redis as the store.
//!
//! Start reading at [`rule`], which decides; `gate` asks a store to decide and has an answer when
//! the store has none; `graphql` and `exchange` are the way there and back.

pub mod address;
mod clock;
mod config;
mod cors;
pub mod email;
mod error_shape;
mod exchange;
mod gate;
mod graphql;
pub mod memory;
mod metrics;
pub mod redis_store;
pub mod rule;
mod serve;

pub use serve::run;
