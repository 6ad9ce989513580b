//! A limit that async-graphql lacks: how much a document becomes when fragments are followed.
//!
//! Ten fragments that each spread the next one ten times select ten thousand million fields, and
//! the validator follows them all. Each fragment is looked at once here, whatever spreads it.

use std::collections::HashMap;

use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};

use crate::{DocumentError, FIELDS_MAX};

/// Checks every operation against [`FIELDS_MAX`].
///
/// Spreads count like fields, so that fragments without fields are bounded too.
///
/// # Errors
/// When an operation selects more.
pub fn check_fragments(document: &ExecutableDocument) -> Result<(), DocumentError> {
    if document.fragments.is_empty() {
        // Each field is a token, and those are bounded already.
        return Ok(());
    }
    let mut expansion = Expansion {
        document,
        known: HashMap::new(),
    };
    for (_, operation) in document.operations.iter() {
        if expansion.selections(&operation.node.selection_set.node) > FIELDS_MAX {
            return Err(DocumentError::Fields);
        }
    }
    Ok(())
}

struct Expansion<'a> {
    document: &'a ExecutableDocument,
    /// Size by fragment; 0 while a fragment is being counted, which ends cycles. The validator
    /// reports those.
    known: HashMap<&'a str, usize>,
}

impl<'a> Expansion<'a> {
    fn selections(&mut self, set: &'a SelectionSet) -> usize {
        let sizes = set.items.iter().map(|selection| match &selection.node {
            Selection::Field(field) => self.selections(&field.node.selection_set.node),
            Selection::InlineFragment(inline) => self.selections(&inline.node.selection_set.node),
            Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node),
        });
        // Saturating: ten levels of ten spreads already exceed any count.
        sizes.fold(0, |sum, size| sum.saturating_add(1).saturating_add(size))
    }

    fn fragment(&mut self, name: &'a str) -> usize {
        if let Some(size) = self.known.get(name) {
            return *size;
        }
        let Some(fragment) = self.document.fragments.get(name) else {
            return 0;
        };
        // Before counting, so that a cycle ends at itself.
        self.known.insert(name, 0);
        let size = self.selections(&fragment.node.selection_set.node);
        self.known.insert(name, size);
        size
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    fn checked(text: &str) -> Result<(), DocumentError> {
        check_fragments(&parse_query(text).unwrap())
    }

    #[test]
    fn fragments_that_multiply_are_refused_in_linear_time() {
        let mut text = "{ ...F0 }".to_owned();
        for level in 0..300 {
            let next = level + 1;
            text += &format!(" fragment F{level} on Query {{ ...F{next} ...F{next} }}");
        }
        let with_end = |end: &str| format!("{text} fragment F300 on Query {{ {end} }}");
        for end in ["total", "...Missing", "...F0"] {
            assert_eq!(checked(&with_end(end)), Err(DocumentError::Fields));
        }
    }

    #[test]
    fn the_limit_counts_each_spread() {
        let spreads = |times: usize| {
            let fields = "total ".repeat(9);
            let spread = "...F ".repeat(times);
            format!("{{ {spread} }} fragment F on Query {{ {fields} }}")
        };
        // A spread and its nine fields are ten.
        assert_eq!(checked(&spreads(FIELDS_MAX / 10)), Ok(()));
        let refused = checked(&spreads(FIELDS_MAX / 10 + 1));
        assert_eq!(refused, Err(DocumentError::Fields));
    }
}
