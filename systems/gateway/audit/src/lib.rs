//! What the gateway's federation is compared with.
//!
//! A corpus is a folder: the schemas of some subgraphs, the supergraph composed from them, one set
//! of data and a list of operations. Every subgraph answers from the data what its own schema
//! allows, and refuses what a strict server would refuse. The same interpreter with the
//! supergraph's schema is one server with all data: what it answers is what the gateway must
//! answer.
//!
//! Absent on purpose: anything of the gateway. Even the parser is another one, so that a mistake
//! in reading or writing GraphQL does not cancel itself out.

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
