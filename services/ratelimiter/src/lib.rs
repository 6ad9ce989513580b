//! The login rate limiter: GraphQL over HTTP, with its own memory or Redis as the store.
//!
//! Start reading at [`rule`], which contains the decision. `rules` has the current rules, from a file or the
//! seed's. `gate` calls a store to decide, and decides by a policy if the store fails. `graphql` and `exchange` convert requests to events, and decisions to
//! responses.

pub mod address;
mod advice;
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
mod redis_flags;
pub mod redis_store;
pub mod rule;
mod rules;
mod serve;
pub mod subject;

pub use serve::run;
