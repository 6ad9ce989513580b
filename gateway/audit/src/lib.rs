//! The reference for tests of the gateway's federation.
//!
//! A corpus is a folder with the schemas of some subgraphs, the supergraph composed from them, one set of
//! data and a list of operations. Every subgraph answers from the data as its own schema allows. It refuses
//! the requests that a strict server would refuse. The same interpreter with the supergraph's schema is one
//! server with all the data. The gateway's response must equal the response of this single server.
//!
//! The crate deliberately shares no code with the gateway. It even uses another parser, so that a mistake in
//! reading or writing GraphQL does not cancel itself out.

mod corpus;
mod execute;
mod fieldset;
mod input;
mod invent;
mod sample;
mod schema;
mod subgraph;
mod value;
mod verify;
mod world;

pub use corpus::{Case, Corpus, CorpusError};
pub use execute::{Answer, FieldError};
pub use invent::Inventor;
pub use sample::Sample;
pub use schema::{Schema, SchemaError};
pub use subgraph::Subgraph;
pub use value::Output;
pub use world::World;
