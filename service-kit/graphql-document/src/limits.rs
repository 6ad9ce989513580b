//! User settings for limits on operations, with the names of the gateway's configuration.

use async_graphql::parser::types::{ExecutableDocument, Field};

use crate::bounds::NESTING_MAX;
use crate::error::DocumentError;
use crate::extent::{Measuring, Size};
use crate::scan;

const PARSER_MAX_TOKENS: usize = 15_000;
const MAX_SELECTIONS: u64 = 4_000;
const MAX_DEPTH: u64 = 50;
const MAX_ROOT_FIELDS: u64 = 200;
const MAX_ALIASES: u64 = 500;
const MAX_COMPLEXITY: u64 = 20_000;

/// Limits for the size of an operation. Names and defaults match the gateway's configuration,
/// except for [`max_complexity`](Self::max_complexity), which the gateway lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct DocumentLimits {
    /// Maximum number of tokens in a document.
    #[arg(long, env, value_name = "N", default_value_t = PARSER_MAX_TOKENS)]
    pub parser_max_tokens: usize,

    /// Maximum number of selections in an operation, including fragments.
    #[arg(long, env, value_name = "N", default_value_t = MAX_SELECTIONS)]
    pub max_selections: u64,

    /// Maximum depth of fields in an operation, including fragments.
    #[arg(long, env, value_name = "N", default_value_t = MAX_DEPTH)]
    pub max_depth: u64,

    /// Maximum number of root fields in an operation, including fragments.
    #[arg(long, env, value_name = "N", default_value_t = MAX_ROOT_FIELDS)]
    pub max_root_fields: u64,

    /// Maximum number of aliases in an operation, including fragments.
    #[arg(long, env, value_name = "N", default_value_t = MAX_ALIASES)]
    pub max_aliases: u64,

    /// Maximum number of fields in a response, counted in every object of a list.
    #[arg(long, env, value_name = "N", default_value_t = MAX_COMPLEXITY)]
    pub max_complexity: u64,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
            parser_max_tokens: PARSER_MAX_TOKENS,
            max_selections: MAX_SELECTIONS,
            max_depth: MAX_DEPTH,
            max_root_fields: MAX_ROOT_FIELDS,
            max_aliases: MAX_ALIASES,
            max_complexity: MAX_COMPLEXITY,
        }
    }
}

impl DocumentLimits {
    /// Checks a text before it is parsed.
    ///
    /// # Errors
    /// The first exceeded limit: the number of tokens, or [`NESTING_MAX`].
    pub fn check_text(&self, text: &str) -> Result<(), DocumentError> {
        scan(text, NESTING_MAX, self.parser_max_tokens)
    }

    /// Checks every operation of a document, before the validator runs. `objects` returns the maximum number
    /// of objects in a field's value. Each of them contains the fields below.
    ///
    /// # Errors
    /// The first exceeded limit.
    pub fn check(
        &self,
        document: &ExecutableDocument,
        objects: impl Fn(&Field) -> u64,
    ) -> Result<(), DocumentError> {
        let size = |field: &Field, _| Size {
            objects: objects(field),
            bytes: 0,
        };
        let mut measuring = Measuring::new(document, size);
        for (_, operation) in document.operations.iter() {
            let extent = measuring.operation(&operation.node.selection_set.node)?;
            within(
                extent.selections,
                self.max_selections,
                DocumentError::Selections,
            )?;
            within(extent.depth, self.max_depth, DocumentError::Depth)?;
            within(
                extent.root_fields,
                self.max_root_fields,
                DocumentError::RootFields,
            )?;
            within(extent.aliases, self.max_aliases, DocumentError::Aliases)?;
            within(
                extent.complexity,
                self.max_complexity,
                DocumentError::Complexity,
            )?;
        }
        Ok(())
    }
}

fn within(found: u64, most: u64, error: fn(u64) -> DocumentError) -> Result<(), DocumentError> {
    if found > most {
        return Err(error(most));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    fn checked(text: &str, limits: DocumentLimits) -> Result<(), DocumentError> {
        limits.check_text(text)?;
        limits.check(&parse_query(text).unwrap(), |_| 2)
    }

    #[test]
    fn each_limit_lets_its_number_pass_and_no_more() {
        let all = DocumentLimits {
            parser_max_tokens: 14,
            max_selections: 4,
            max_depth: 3,
            max_root_fields: 2,
            max_aliases: 1,
            // `b`, `a`, two of `c`, and two of `d` in each of these.
            max_complexity: 2 + 2 + 4,
        };
        let text = "query Q { x: a { c { d } } b }";
        assert_eq!(checked(text, all), Ok(()));
        type Lower = fn(&mut DocumentLimits);
        let crossed: [(Lower, DocumentError); 6] = [
            (|it| it.parser_max_tokens = 13, DocumentError::Tokens(13)),
            (|it| it.max_selections = 3, DocumentError::Selections(3)),
            (|it| it.max_depth = 2, DocumentError::Depth(2)),
            (|it| it.max_root_fields = 1, DocumentError::RootFields(1)),
            (|it| it.max_aliases = 0, DocumentError::Aliases(0)),
            (|it| it.max_complexity = 7, DocumentError::Complexity(7)),
        ];
        for (lower, error) in crossed {
            let mut limits = all;
            lower(&mut limits);
            assert_eq!(checked(text, limits), Err(error));
        }
    }

    #[test]
    fn every_operation_of_a_document_counts() {
        let limits = DocumentLimits {
            max_aliases: 0,
            ..DocumentLimits::default()
        };
        let refused = checked("query A { a } query B { b: a }", limits);
        assert_eq!(refused, Err(DocumentError::Aliases(0)));
    }

    #[test]
    fn lists_in_lists_multiply_and_end_at_the_largest_number() {
        let text = "{a".repeat(60) + &"}".repeat(60);
        let limits = DocumentLimits {
            max_depth: 60,
            ..DocumentLimits::default()
        };
        let refused = limits.check(&parse_query(text).unwrap(), |_| u64::MAX / 2);
        assert_eq!(refused, Err(DocumentError::Complexity(MAX_COMPLEXITY)));
    }
}
