//! Two GraphQL servers with the same schema and the same answers.
//!
//! The programs are juniper on ntex and async-graphql on actix-web. What they answer is the same;
//! what it costs is what Weighbridge weighs. So everything that is not one of the four libraries
//! lives here once: the content behind the schema, configuration, metrics, log and start-up. The
//! programs hold the schema in the terms of their GraphQL library and the glue to their HTTP
//! library.

mod clock;
pub mod config;
pub mod connections;
pub mod content;
pub mod exchange;
pub mod identity;
pub mod introspection;
pub mod metrics;
pub mod reply;
pub mod startup;
pub mod wire;
pub mod worker;
