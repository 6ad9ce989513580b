//! Names and versions of the two servers, for `--version`, logs and metrics.

/// One of the two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The name of the program.
    pub name: &'static str,
    /// The version of this package.
    pub version: &'static str,
    /// The GraphQL library and its version.
    pub graphql: &'static str,
    /// The HTTP library and its version.
    pub http: &'static str,
    /// All versions in one line, as `--version` prints them after the name. A lab records the first.
    pub versions: &'static str,
}

macro_rules! identity {
    ($name:literal, $graphql:expr, $http:expr) => {
        Identity {
            name: $name,
            version: env!("CARGO_PKG_VERSION"),
            graphql: $graphql,
            http: $http,
            versions: concat!(env!("CARGO_PKG_VERSION"), " (", $graphql, ", ", $http, ")"),
        }
    };
}

/// The server with juniper on ntex.
pub const JUNIPER_NTEX: Identity = identity!(
    "graphql-server-juniper-ntex",
    concat!("juniper ", env!("JUNIPER_VERSION")),
    concat!("ntex ", env!("NTEX_VERSION"))
);

/// The server with async-graphql on actix-web.
pub const ASYNC_GRAPHQL_ACTIX_WEB: Identity = identity!(
    "graphql-server-async-graphql-actix-web",
    concat!("async-graphql ", env!("ASYNC_GRAPHQL_VERSION")),
    concat!("actix-web ", env!("ACTIX_WEB_VERSION"))
);
