//! What the gateway's federation is held against.
//!
//! A corpus is a folder: the schemas of some subgraphs, the supergraph composed from them, one
//! set of data and a list of operations. Every subgraph answers from the data what its own schema
//! lets it answer, and refuses what a careful server would refuse. The same interpreter with the
//! supergraph's schema is one server that knows everything: what it answers is what the gateway
//! must answer.
//!
//! Absent on purpose: anything of the gateway. Even the parser is another one, so that a mistake
//! in reading or writing GraphQL does not cancel itself out.

mod corpus;
mod execute;
mod fieldset;
mod input;
mod invent;
mod schema;
mod subgraph;
mod value;
mod verify;
mod world;

pub use corpus::{Case, Corpus, CorpusError};
pub use execute::{Answer, FieldError};
pub use invent::Inventor;
pub use schema::{Schema, SchemaError};
pub use subgraph::Subgraph;
pub use value::Output;
pub use world::World;
