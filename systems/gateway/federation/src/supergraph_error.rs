//! Reasons to refuse a supergraph.

/// A reason to refuse a text as a supergraph.
#[derive(Debug, thiserror::Error)]
pub enum SupergraphError {
    /// It is not GraphQL.
    #[error("the supergraph is not valid GraphQL SDL: {reason}")]
    Syntax {
        /// What the parser said, with line and column.
        reason: String,
    },
    /// It is GraphQL, but not composed.
    #[error(
        "the text is a GraphQL schema, yet no supergraph: {missing}; compose the subgraphs first"
    )]
    NotComposed {
        /// What a supergraph has and this text lacks.
        missing: String,
    },
    /// It follows specifications that this gateway does not know.
    #[error(
        "the supergraph needs what this gateway does not know: {features}; compose it without, or for versions that are known"
    )]
    UnknownFeatures {
        /// The features, and their known versions.
        features: String,
    },
    /// Fields of it come from REST services.
    #[error(
        "the supergraph has connectors (`@connect`, `@source`), which this gateway does not serve: it would send GraphQL to REST services; put a subgraph in front of them"
    )]
    Connectors,
    /// A directive of authorization does not say what it demands.
    #[error(
        "`@{directive}` of `{place}` cannot be read: expected a list of lists of texts that is not empty"
    )]
    Authorization {
        /// The type, or the field as `Type.field`.
        place: String,
        /// The directive as it is called here.
        directive: String,
    },
    /// It needs what this gateway does not do. To ignore it would give wrong answers.
    #[error(
        "the supergraph uses {directive} at `{place}`, which this gateway does not serve; take it out of the subgraph and compose again, for example with an argument that clients give"
    )]
    Unserved {
        /// The directive as subgraphs write it.
        directive: &'static str,
        /// `Type.field`.
        place: String,
    },
    /// The planner knows fewer costs than the specification.
    #[error(
        "`@cost` of `{place}` cannot be used: expected a `weight` that is a whole number and not negative, found {found}; correct it in the subgraph and compose again"
    )]
    Cost {
        /// The type, the field as `Type.field`, or its argument as `Type.field(argument:)`.
        place: String,
        /// The weight as it is written.
        found: String,
    },
    /// The planner cannot work with it.
    #[error("the supergraph cannot be planned with: {reason}")]
    Unusable {
        /// What the planner said.
        reason: String,
    },
}
