//! `graphql-server-juniper-ntex`: GraphQL by juniper, HTTP by ntex.

mod acceptor;
mod connections;
mod schema;
mod server;

fn main() -> std::process::ExitCode {
    graphql_server::startup::run(graphql_server::identity::JUNIPER_NTEX, server::serve)
}
