//! The endpoints for GraphQL operations.

/// An endpoint of the gateway for GraphQL operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The GraphQL endpoint.
    Graphql,
    /// A stored operation as REST.
    Rest,
}
