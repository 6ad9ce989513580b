//! The results of a plan's fetches, if the plan is carried out without data.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use super::objects::{Id, Member};
use super::{
    Asking, MissingField, OBJECTS_BETWEEN_LOOKS, OBJECTS_MAX, ProofError, Seen, Trial, TrialError,
    proof_error,
};
use crate::composition::Graph;
use crate::entities::rewritten;
use crate::plan::{FetchPlan, Input, Need};

impl<'a> Trial<'a> {
    pub(super) fn fetch(&mut self, index: usize, root: Id) -> Result<(), TrialError> {
        let (plan, documents) = (self.plan, self.documents);
        let (Some(fetch), Some(document)) = (plan.fetches.get(index), documents.get(index)) else {
            return Ok(());
        };
        let asking = Asking {
            graph: fetch.subgraph,
            operation: fetch.operation_name.as_deref().unwrap_or("a subgraph"),
            document,
        };
        let set = &document.operation.selection_set;
        if fetch.inputs.is_empty() {
            let seen = Seen {
                name: self.goal.root_type,
                given: None,
            };
            let answer = self.objects.add(self.goal.root_type);
            self.write(asking, answer, seen, set)?;
            self.objects.rewrite(answer, &fetch.rewrites);
            return self.merge(index, root, answer);
        }
        if let Some(input) = fetch.inputs.iter().find(|input| input.is_root) {
            return self.enter_root(index, asking, input, root);
        }
        // As in the executor, all representations are computed before the first entity is merged.
        let targets = self.targets(fetch, root);
        for (input, target, given, name) in targets {
            let mut answered = Vec::new();
            for output in fetch.outputs.iter().filter(|it| it.input == input) {
                let answer = self.objects.add(self.objects.real(target));
                let seen = Seen {
                    name,
                    given: Some((given, target)),
                };
                for item in &set.items {
                    if let SelectionItem::Field(field) = item
                        && field.selection_identifier().as_bytes() == output.key
                    {
                        self.write(asking, answer, seen, &field.selections)?;
                    }
                }
                self.objects.rewrite(answer, &output.rewrites);
                answered.push(answer);
            }
            for answer in answered {
                self.merge(index, target, answer)?;
            }
        }
        Ok(())
    }

    /// Carries out a fetch of root fields for query roots inside of the data.
    fn enter_root(
        &mut self,
        index: usize,
        asking: Asking<'a>,
        input: &'a Input,
        root: Id,
    ) -> Result<(), TrialError> {
        let query = self.goal.schema.query_root();
        let seen = Seen {
            name: query,
            given: None,
        };
        let plan = self.plan;
        for place in &input.places {
            for target in self.objects.at(root, &place.path) {
                let answer = self.objects.add(query);
                self.write(
                    asking,
                    answer,
                    seen,
                    &asking.document.operation.selection_set,
                )?;
                for output in &plan.fetches[index].outputs {
                    self.objects.rewrite(answer, &output.rewrites);
                }
                self.merge(index, target, answer)?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, fetch: usize, target: Id, answer: Id) -> Result<(), TrialError> {
        let replaced = self.replaced.get_mut(fetch);
        let replaced = replaced.filter(|_| !self.is_beside_others);
        Ok(self.objects.merge(target, answer, replaced)?)
    }

    /// The objects of an entity fetch: input, object, required fields, and the type name in the subgraph.
    fn targets(&self, fetch: &'a FetchPlan, root: Id) -> Vec<(usize, Id, &'a [Need], &'a str)> {
        let mut targets = Vec::new();
        for (index, input) in fetch.inputs.iter().enumerate() {
            for place in &input.places {
                for object in self.objects.at(root, &place.path) {
                    let Some(name) = self.objects.name(object) else {
                        continue;
                    };
                    let sent = rewritten(name.as_bytes(), &input.rewrites);
                    let Ok(sent) = std::str::from_utf8(sent) else {
                        continue;
                    };
                    let Some(seen) = self.resolved(fetch.subgraph, object, sent) else {
                        continue;
                    };
                    if input.is_singleton || self.is_complete(object, &place.needs) {
                        targets.push((index, object, place.needs.as_slice(), seen));
                    }
                }
            }
        }
        targets
    }

    /// The type that a subgraph resolves an object to, from the type name `sent` in its representation.
    /// `None` if the subgraph cannot resolve it.
    fn resolved(&self, graph: Graph, object: Id, sent: &'a str) -> Option<&'a str> {
        let composition = self.goal.composition;
        let is_own = self.goal.schema.is_object(sent.as_bytes());
        // For an interface that is not an interface object, the subgraph finds the object type itself.
        let found = match is_own || composition.is_interface_object(graph, sent) {
            true => sent,
            false => self.objects.real(object),
        };
        (composition.has(graph, sent) && composition.has(graph, found)).then_some(found)
    }

    /// True if an object has a representation with more than its type name.
    fn is_complete(&self, object: Id, needs: &[Need]) -> bool {
        self.values(object, needs).is_some_and(|values| values > 0)
    }

    /// Number of values in a representation. `None` if a value is missing.
    fn values(&self, object: Id, needs: &[Need]) -> Option<usize> {
        let mut values = 0;
        for need in needs {
            match need {
                Need::Typename => {}
                Need::Field {
                    key,
                    needs,
                    is_optional,
                    ..
                } => match self.objects.member(object, key) {
                    None if *is_optional => {}
                    None => return None,
                    Some(member) => {
                        for below in &member.below {
                            self.values(*below, needs)?;
                        }
                        values += 1;
                    }
                },
                Need::Fragment { name, types, needs } => {
                    let name = self.objects.name(object).unwrap_or(name);
                    if types.contains(name.as_bytes()) {
                        values += self.values(object, needs)?;
                    }
                }
            }
        }
        Some(values)
    }

    /// Writes the fields that the subgraph returns for an object.
    fn write(
        &mut self,
        asking: Asking<'a>,
        object: Id,
        seen: Seen<'a>,
        set: &'a SelectionSet,
    ) -> Result<(), TrialError> {
        for item in &set.items {
            match item {
                SelectionItem::Field(field) => {
                    if self.is_included(field.skip_if.as_deref(), field.include_if.as_deref()) {
                        self.write_field(asking, object, seen, field)?;
                    }
                }
                SelectionItem::InlineFragment(inline) => {
                    let (skip, include) = (inline.skip_if.as_deref(), inline.include_if.as_deref());
                    if self.is_included(skip, include)
                        && self.applies(asking.graph, object, seen.name, &inline.type_condition)
                    {
                        self.write(asking, object, seen, &inline.selections)?;
                    }
                }
                SelectionItem::FragmentSpread(name) => {
                    let mut fragments = asking.document.fragments.iter();
                    if let Some(fragment) = fragments.find(|it| it.name == *name)
                        && self.applies(asking.graph, object, seen.name, &fragment.type_condition)
                    {
                        self.write(asking, object, seen, &fragment.selection_set)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// True if a subgraph applies a fragment to an object with the type name `seen`.
    fn applies(&self, graph: Graph, object: Id, seen: &str, condition: &str) -> bool {
        let is_behind = || {
            let behind = self.goal.schema.possible(condition);
            behind.contains(&self.objects.real(object))
        };
        seen == condition || (seen == self.objects.real(object) && is_behind())
            // An interface object also satisfies the interfaces that it implements.
            || (self.goal.composition.is_interface_object(graph, seen)
                && self.goal.schema.is_subtype(seen, condition))
    }

    fn write_field(
        &mut self,
        asking: Asking<'a>,
        object: Id,
        seen: Seen<'a>,
        field: &'a FieldSelection,
    ) -> Result<(), TrialError> {
        let key = field.selection_identifier();
        if field.name == "__typename" {
            if key == "__typename" {
                self.objects.name_it(object, seen.name);
            } else {
                self.objects.set(object, key, Member::of(field))?;
            }
            return Ok(());
        }
        let Some(composed) = self.goal.composition.field(seen.name, &field.name) else {
            return Err(proof_error(format!("{} has no `{}`", seen.name, field.name)).into());
        };
        if !composed.is_in(asking.graph) {
            return Err(proof_error(format!(
                "`{}` is asked for `{}.{}`, which it does not have",
                asking.operation, seen.name, field.name
            ))
            .into());
        }
        if let Some(required) = composed.requires(asking.graph) {
            let is_given = seen
                .given
                .is_some_and(|(given, target)| self.is_given(required, given, target));
            if !is_given {
                let path = seen
                    .given
                    .and_then(|(_, target)| self.objects.path_to(target));
                return Err(TrialError::Proof(ProofError {
                    text: format!(
                        "`{}.{}` is not given what it requires",
                        seen.name, field.name
                    ),
                    missing: path.map(|path| MissingField {
                        path,
                        real: self.objects.real(object).to_owned(),
                        key: key.as_bytes().to_vec(),
                        is_asked: true,
                    }),
                }));
            }
        }
        let mut member = Member::of(field);
        if !field.selections.items.is_empty() {
            for (real, name) in self.answered(asking.graph, &composed.returns) {
                if self.objects.len() >= OBJECTS_MAX {
                    return Err(TrialError::TooLarge);
                }
                if self.objects.len().is_multiple_of(OBJECTS_BETWEEN_LOOKS)
                    && self.goal.work.go_on().is_err()
                {
                    return Err(TrialError::OutOfTime);
                }
                let below = self.objects.add(real);
                let seen = Seen { name, given: None };
                self.write(asking, below, seen, &field.selections)?;
                member.below.push(below);
            }
        }
        Ok(self.objects.set(object, key, member)?)
    }

    /// The objects that a subgraph may return for an expected type: the object type, and its type name in the
    /// subgraph.
    fn answered(&self, graph: Graph, expected: &'a str) -> Vec<(&'a str, &'a str)> {
        let (schema, composition) = (self.goal.schema, self.goal.composition);
        let possible = schema.possible(expected);
        if composition.is_interface_object(graph, expected) {
            return possible.into_iter().map(|real| (real, expected)).collect();
        }
        let known = possible.into_iter();
        known
            .filter(|real| composition.has(graph, real))
            .map(|real| (real, real))
            .collect()
    }
}
