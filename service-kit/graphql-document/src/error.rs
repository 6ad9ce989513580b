//! The reason why a document is not executed.

use crate::bounds::NAME_BYTES_MAX;

/// The reason why a document is not executed. Each variant contains the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Brackets or selection sets are nested too deeply.
    #[error("the document nests deeper than {0} levels")]
    Nesting(usize),
    /// The text has too many tokens.
    #[error("the document has more than {0} tokens")]
    Tokens(usize),
    /// The operation has too many fields and fragments.
    #[error("an operation of the document selects more than {0} fields")]
    Selections(u64),
    /// The fields of the operation are nested too deeply.
    #[error("an operation of the document has more than {0} levels of fields")]
    Depth(u64),
    /// The operation has too many root fields.
    #[error("an operation of the document has more than {0} root fields")]
    RootFields(u64),
    /// Too many fields have an alias.
    #[error("an operation of the document has more than {0} aliases")]
    Aliases(u64),
    /// The response would be too large.
    #[error("the answer to an operation of the document may have more than {0} fields")]
    Complexity(u64),
    /// A name, such as an alias, is too long.
    #[error("a name of the document has {found} bytes; a name may have {NAME_BYTES_MAX}")]
    Name {
        /// Length of the name in bytes.
        found: usize,
    },
    /// The response would have too many fields.
    #[error(
        "the answer may have {found} fields, each counted in every object of a list; an answer may \
         have {most}: ask for less at once"
    )]
    AnswerFields {
        /// Estimated number of fields in the response.
        found: u64,
        /// Maximum number of fields in a response.
        most: u64,
    },
    /// The names and texts of the response would be too long in total.
    #[error(
        "the names and texts of the answer may have {found} bytes; those of an answer may have \
         {most}: ask for less at once, or by shorter aliases"
    )]
    AnswerBytes {
        /// Estimated bytes of names and texts.
        found: u64,
        /// Maximum of these bytes in a response.
        most: u64,
    },
}

impl DocumentError {
    /// The error code for programs. It equals the gateway's code if the gateway has the same limit.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Nesting(_) | Self::Tokens(_) | Self::Name { .. } => "PARSING_ERROR",
            Self::Selections(_) => "GRAPHQL_VALIDATION_FAILED",
            Self::Depth(_) => "MAX_DEPTH_LIMIT",
            Self::RootFields(_) => "MAX_ROOT_FIELDS_LIMIT",
            Self::Aliases(_) => "MAX_ALIASES_LIMIT",
            Self::Complexity(_) | Self::AnswerFields { .. } | Self::AnswerBytes { .. } => {
                "MAX_COMPLEXITY_LIMIT"
            }
        }
    }
}
