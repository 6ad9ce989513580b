//! Checks that a subgraph receives the fields that its fields require.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::SelectionSet;

use super::Trial;
use super::objects::Id;
use crate::plan::Need;

impl Trial<'_> {
    /// True if a representation contains the fields that a field requires.
    pub(super) fn is_given(&self, required: &SelectionSet, given: &[Need], target: Id) -> bool {
        required.items.iter().all(|item| match item {
            SelectionItem::Field(field) if field.name == "__typename" => true,
            SelectionItem::Field(field) => {
                let mut found = Vec::new();
                self.given_as(&field.name, given, target, &mut found);
                // If the value is given twice, both must have one key. Objects would have to be merged, so
                // they are not accepted.
                let Some((&(key, needs), others)) = found.split_first() else {
                    return false;
                };
                if others
                    .iter()
                    .any(|(other, _)| *other != key || !needs.is_empty())
                {
                    return false;
                }
                let Some(member) = self.objects.member(target, key) else {
                    return false;
                };
                member.is_of(field)
                    && member
                        .below
                        .iter()
                        .all(|below| self.is_given(&field.selections, needs, *below))
            }
            SelectionItem::InlineFragment(inline) => {
                let behind = self.goal.schema.possible(&inline.type_condition);
                !behind.contains(&self.objects.real(target))
                    || self.is_given(&inline.selections, given, target)
            }
            SelectionItem::FragmentSpread(_) => true,
        })
    }

    /// Finds the sources of a member of a representation: keys in the data, and the fields of the objects
    /// there.
    fn given_as<'n>(
        &self,
        name: &str,
        given: &'n [Need],
        target: Id,
        found: &mut Vec<(&'n [u8], &'n [Need])>,
    ) {
        for need in given {
            match need {
                Need::Field {
                    key, opener, needs, ..
                } if *opener == crate::plan::opener(name) => found.push((key, needs)),
                Need::Fragment {
                    name: condition,
                    types,
                    needs,
                } => {
                    let known = self.objects.name(target).unwrap_or(condition);
                    if types.contains(known.as_bytes()) {
                        self.given_as(name, needs, target, found);
                    }
                }
                Need::Field { .. } | Need::Typename => {}
            }
        }
    }
}
