//! Measures an operation including its fragments.
//!
//! Ten fragments that each spread the next one ten times select ten thousand million fields, and the
//! validator visits them all. Here each fragment is measured once, no matter how often it is spread. So the
//! time depends only on the length of the text.

use std::collections::HashMap;

use async_graphql::parser::types::{ExecutableDocument, Field, Selection, SelectionSet};

use crate::bounds::NESTING_MAX;
use crate::error::DocumentError;

/// The location of a field, which distinguishes fields with equal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldPlace {
    /// A root field of the operation.
    Root,
    /// A field below `__schema` or `__type`.
    Schema,
    /// A field below another field.
    Below,
}

/// Size of one field in a response, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Objects in its value. Each of them contains the fields below.
    pub objects: u64,
    /// Bytes of a text value. 0 for short values.
    pub bytes: u64,
}

impl Size {
    /// A single object or a short value.
    pub const ONE: Self = Self {
        objects: 1,
        bytes: 0,
    };
}

/// The size of one operation or fragment, including its fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Fields, inline fragments and spreads. Spreads count, so that the limit also covers fragments without
    /// fields.
    pub(crate) selections: u64,
    /// Levels of nested fields.
    pub(crate) depth: u64,
    /// Fields that are not below another field.
    pub(crate) root_fields: u64,
    /// Fields with an alias.
    pub(crate) aliases: u64,
    /// Fields of the response, each counted once per object that contains it.
    pub(crate) complexity: u64,
    /// Bytes of the response in names of fields, and in texts counted by [`Size`].
    pub(crate) bytes: u64,
}

impl Extent {
    /// Adds one selection and its extent.
    fn add(&mut self, one: Extent) {
        // All sums saturate: fragments that double 64 times exceed any integer, and a saturated total exceeds
        // every limit.
        self.selections = self.selections.saturating_add(1);
        self.selections = self.selections.saturating_add(one.selections);
        self.depth = self.depth.max(one.depth);
        self.root_fields = self.root_fields.saturating_add(one.root_fields);
        self.aliases = self.aliases.saturating_add(one.aliases);
        self.complexity = self.complexity.saturating_add(one.complexity);
        self.bytes = self.bytes.saturating_add(one.bytes);
    }
}

/// Measures the operations of a document.
pub(crate) struct Measuring<'a, O> {
    document: &'a ExecutableDocument,
    /// Returns the maximum size that a field adds to the response.
    size: O,
    /// Extents by fragment and place of the spread. While a fragment is being measured, its extent is empty,
    /// which ends cycles. The validator reports cycles.
    known: HashMap<(&'a str, FieldPlace), Extent>,
}

impl<'a, O: Fn(&Field, FieldPlace) -> Size> Measuring<'a, O> {
    pub(crate) fn new(document: &'a ExecutableDocument, size: O) -> Self {
        Self {
            document,
            size,
            known: HashMap::new(),
        }
    }

    /// Measures the selections of an operation.
    pub(crate) fn operation(&mut self, set: &'a SelectionSet) -> Result<Extent, DocumentError> {
        self.set(set, FieldPlace::Root, 1)
    }

    fn set(
        &mut self,
        set: &'a SelectionSet,
        place: FieldPlace,
        nesting: usize,
    ) -> Result<Extent, DocumentError> {
        // The length of the text is limited, but not the depth that fragments create.
        if nesting > NESTING_MAX {
            return Err(DocumentError::Nesting(NESTING_MAX));
        }
        let mut total = Extent::default();
        for selection in &set.items {
            total.add(match &selection.node {
                Selection::Field(field) => self.field(&field.node, place, nesting)?,
                Selection::InlineFragment(inline) => {
                    self.set(&inline.node.selection_set.node, place, nesting + 1)?
                }
                Selection::FragmentSpread(spread) => {
                    self.fragment(&spread.node.fragment_name.node, place, nesting)?
                }
            });
        }
        Ok(total)
    }

    fn field(
        &mut self,
        field: &'a Field,
        place: FieldPlace,
        nesting: usize,
    ) -> Result<Extent, DocumentError> {
        let set = &field.selection_set.node;
        let inside = match field.name.node.as_str() {
            "__schema" | "__type" => FieldPlace::Schema,
            _ if place == FieldPlace::Schema => FieldPlace::Schema,
            _ => FieldPlace::Below,
        };
        let below = if set.items.is_empty() {
            Extent::default()
        } else {
            self.set(set, inside, nesting + 1)?
        };
        let size = (self.size)(field, place);
        let name = field.alias.as_ref().unwrap_or(&field.name);
        let own = (name.node.len() as u64).saturating_add(size.bytes);
        Ok(Extent {
            selections: below.selections,
            depth: below.depth + 1,
            root_fields: 1,
            aliases: below
                .aliases
                .saturating_add(u64::from(field.alias.is_some())),
            complexity: size
                .objects
                .saturating_mul(below.complexity)
                .saturating_add(1),
            bytes: size.objects.saturating_mul(below.bytes).saturating_add(own),
        })
    }

    fn fragment(
        &mut self,
        name: &'a str,
        place: FieldPlace,
        nesting: usize,
    ) -> Result<Extent, DocumentError> {
        // A known fragment is not visited again, even at a greater depth. The library checks that depth after
        // the number of selections is limited.
        if let Some(extent) = self.known.get(&(name, place)) {
            return Ok(*extent);
        }
        let Some(fragment) = self.document.fragments.get(name) else {
            return Ok(Extent::default());
        };
        // Before the measurement, so that a cycle ends at itself.
        self.known.insert((name, place), Extent::default());
        let extent = self.set(&fragment.node.selection_set.node, place, nesting + 1)?;
        self.known.insert((name, place), extent);
        Ok(extent)
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    fn measured(text: &str, objects: impl Fn(&Field) -> u64) -> Result<Extent, DocumentError> {
        let document = parse_query(text).unwrap();
        let (_, operation) = document.operations.iter().next().unwrap();
        let size = |field: &Field, _| Size {
            objects: objects(field),
            bytes: 0,
        };
        Measuring::new(&document, size).operation(&operation.node.selection_set.node)
    }

    #[test]
    fn fragments_count_where_they_are_spread() {
        let text =
            "{ a { ...F x: b } y: a { ...F } } fragment F on T { p { q } ... on T { z: r } }";
        let ten = |field: &Field| {
            if field.name.node.as_str() == "a" {
                10
            } else {
                1
            }
        };
        let extent = measured(text, ten).unwrap();
        let expected = Extent {
            selections: 13,
            depth: 3,
            root_fields: 2,
            aliases: 4,
            // Each `a` itself. Below it are `p`, `q`, `z`, and once `x`.
            complexity: 2 + 10 * 3 + 10 * 4,
            // The same names, with one letter each.
            bytes: 2 + 10 * 3 + 10 * 4,
        };
        assert_eq!(extent, expected);
    }

    #[test]
    fn a_fragment_within_itself_ends() {
        let text = "{ ...A } fragment A on Q { a { ...B } } fragment B on Q { ...A ...A }";
        // Once below the operation, and once below `a`.
        assert_eq!(measured(text, |_| 1).unwrap().depth, 2);
    }

    #[test]
    fn a_chain_of_fragments_is_as_deep_as_it_leads() {
        let chain = |length: usize| {
            let links = (1..length).map(|link| {
                let next = link + 1;
                format!(" fragment F{link} on Q {{ ...F{next} }}")
            });
            let links: String = links.collect();
            format!("{{ ...F1 }}{links} fragment F{length} on Q {{ a }}")
        };
        assert!(measured(&chain(NESTING_MAX - 1), |_| 1).is_ok());
        for length in [NESTING_MAX, 5_000] {
            let refused = measured(&chain(length), |_| 1);
            assert_eq!(refused, Err(DocumentError::Nesting(NESTING_MAX)));
        }
    }
}
