//! The program's part of merged schemas: their services, stored operations as REST, and the import of
//! metadata. `graphql::engine` chooses between merged schemas and a supergraph.

pub(crate) mod importing;
pub(crate) mod remotes;
pub(crate) mod rest;
pub(crate) mod sources;
