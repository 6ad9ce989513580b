//! The systems of this repository in the labs that are shipped with it.

mod graphiql_page;
mod remote_schema;
mod router;
mod webhook;
