//! Errors about a supergraph that the gateway refuses.

/// Reason for refusing a text as a supergraph.
#[derive(Debug, thiserror::Error)]
pub enum SupergraphError {
    /// The text is not valid GraphQL SDL.
    #[error("the supergraph is not valid GraphQL SDL: {reason}")]
    Syntax {
        /// The parser's message, with line and column.
        reason: String,
    },
    /// The text is GraphQL, but not a composed supergraph.
    #[error(
        "the text is a GraphQL schema, yet no supergraph: {missing}; compose the subgraphs first"
    )]
    NotComposed {
        /// The missing part of a supergraph.
        missing: String,
    },
    /// The supergraph uses specifications that this gateway does not support.
    #[error(
        "the supergraph needs what this gateway does not know: {features}; compose it without, or for versions that are known"
    )]
    UnknownFeatures {
        /// The features, with their supported versions.
        features: String,
    },
    /// Some fields come from REST services.
    #[error(
        "the supergraph has connectors (`@connect`, `@source`), which this gateway does not serve: it would send GraphQL to REST services; put a subgraph in front of them"
    )]
    Connectors,
    /// An authorization directive has no readable demands.
    #[error(
        "`@{directive}` of `{place}` cannot be read: expected a list of lists of texts that is not empty"
    )]
    Authorization {
        /// The type, or the field as `Type.field`.
        place: String,
        /// The name of the directive in this supergraph.
        directive: String,
    },
    /// The supergraph needs a feature that this gateway lacks. Without it, responses would be wrong.
    #[error(
        "the supergraph uses {directive} at `{place}`, which this gateway does not serve; take it out of the subgraph and compose again, for example with an argument that clients give"
    )]
    Unserved {
        /// The directive as written in subgraphs.
        directive: &'static str,
        /// The field as `Type.field`.
        place: String,
    },
    /// The planner supports fewer costs than the specification.
    #[error(
        "`@cost` of `{place}` cannot be used: expected a `weight` that is a whole number and not negative, found {found}; correct it in the subgraph and compose again"
    )]
    Cost {
        /// The type, the field as `Type.field`, or its argument as `Type.field(argument:)`.
        place: String,
        /// The weight as written in the supergraph.
        found: String,
    },
    /// The planner refuses the supergraph.
    #[error("the supergraph cannot be planned with: {reason}")]
    Unusable {
        /// The planner's error message.
        reason: String,
    },
}
