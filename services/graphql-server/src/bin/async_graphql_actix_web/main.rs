//! `graphql-server-async-graphql-actix-web`: GraphQL by async-graphql, HTTP by actix-web.

mod connections;
mod schema;
mod server;

fn main() -> std::process::ExitCode {
    graphql_server::startup::run(
        graphql_server::identity::ASYNC_GRAPHQL_ACTIX_WEB,
        server::serve,
    )
}
