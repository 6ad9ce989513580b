//! Plans fields with requirements if the planner finds no plan.
//!
//! The planner fails if three subgraphs are involved. The first has the required fields. The second has the
//! field, and identifies the object by a key of the third. So the operation is planned without such fields,
//! and with their required fields instead. Additional requests then fetch the fields. The proof decides if
//! the whole plan answers the operation.
//!
//! The planner also fails if several fields require one field with different arguments. Then each required field
//! has a key of its own in the data, and the requests have its value under its name.
//!
//! The planner also fails at objects without a key, if the first subgraph lacks one of their fields. Another
//! subgraph has all of their fields, and the entity around the object has a key there. Such an object is
//! requested as a whole in the second step, too.

use std::cell::RefCell;
use std::collections::BTreeSet;

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::operation::{
    OperationDefinition, SubgraphFetchOperation, VariableDefinition,
};
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{
    FieldSelection, InlineFragmentSelection, SelectionSet,
};
use hive_router_query_planner::ast::value::Value;
use hive_router_query_planner::planner::plan_nodes::{
    FetchNode, FlattenNode, FlattenNodePath, FlattenNodePathSegment as Segment, PlanNode,
};
use hive_router_query_planner::state::supergraph_state::{OperationKind, TypeNode};

use crate::composition::{ComposedField, Composition, Graph};
use crate::schema::Schema;
use crate::supergraph::Subgraph;

/// Name of the variable with the representations.
const REPRESENTATIONS: &str = "representations";

/// Beginning of the keys of renamed fields.
const RENAMED: &str = "_required_";

/// An operation, divided into two steps.
pub(crate) struct SplitOperation {
    /// The first step: the operation with the required fields instead of the fields.
    pub(crate) rest: SelectionSet,
    /// The second step: the requests for the fields.
    pub(crate) behind: Vec<PlanNode>,
}

/// Inputs for dividing an operation.
pub(crate) struct RequiresSplit<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) composition: &'a Composition,
    pub(crate) subgraphs: &'a [Subgraph],
    /// The declared variables of the operation.
    pub(crate) variables: &'a [VariableDefinition],
    /// True if objects without a key are also requested in the second step.
    pub(crate) splits_values: bool,
    /// True if required fields have keys of their own in the data.
    pub(crate) renames: bool,
    /// The texts of renamed fields. The position of a field is in its key.
    pub(crate) renamed: RefCell<Vec<String>>,
}

/// Fields of the objects of one type at one place, requested from one subgraph.
struct Group {
    path: Vec<Segment>,
    real: String,
    graph: Graph,
    fields: SelectionSet,
    given: SelectionSet,
}

impl RequiresSplit<'_> {
    /// Divides the operation into two steps. `None` if no field requires other fields.
    pub(crate) fn divide(&self, root_type: &str, asked: &SelectionSet) -> Option<SplitOperation> {
        let mut groups = Vec::new();
        let rest = self.set(root_type, asked, &mut Vec::new(), &mut groups);
        if groups.is_empty() {
            return None;
        }
        let behind = groups.into_iter().map(|group| self.request(group));
        let behind = behind.collect::<Option<_>>()?;
        Some(SplitOperation { rest, behind })
    }

    fn set(
        &self,
        parent: &str,
        set: &SelectionSet,
        path: &mut Vec<Segment>,
        groups: &mut Vec<Group>,
    ) -> SelectionSet {
        let mut rest = SelectionSet { items: Vec::new() };
        for item in &set.items {
            match item {
                SelectionItem::Field(field) => {
                    if let Some(required) = self.postponed(parent, field, path, groups) {
                        unite(&mut rest, &required);
                        continue;
                    }
                    let mut field = field.clone();
                    if let Some(returns) = self.schema.field_type(parent, &field.name) {
                        path.push(Segment::Field(field.selection_identifier().to_owned()));
                        field.selections = self.set(returns, &field.selections, path, groups);
                        path.pop();
                    }
                    rest.items.push(SelectionItem::Field(field));
                }
                SelectionItem::InlineFragment(inline) => {
                    let own = self.fragment(parent, inline, path, groups);
                    rest.items.push(SelectionItem::InlineFragment(own));
                }
                SelectionItem::FragmentSpread(_) => rest.items.push(item.clone()),
            }
        }
        rest
    }

    /// Divides a fragment. Its conditions also apply to the fields of the second step.
    fn fragment(
        &self,
        parent: &str,
        inline: &InlineFragmentSelection,
        path: &mut Vec<Segment>,
        groups: &mut Vec<Group>,
    ) -> InlineFragmentSelection {
        let condition = &inline.type_condition;
        let narrows = condition != parent;
        if narrows {
            path.push(Segment::TypeCondition(BTreeSet::from([condition.clone()])));
        }
        let mut own = Vec::new();
        let selections = self.set(condition, &inline.selections, path, &mut own);
        if narrows {
            path.pop();
        }
        for group in own {
            let wraps = inline.skip_if.is_some() || inline.include_if.is_some();
            let fields = match wraps && group.real == *condition {
                true => SelectionSet {
                    items: vec![SelectionItem::InlineFragment(InlineFragmentSelection {
                        selections: group.fields,
                        ..inline.clone()
                    })],
                },
                false => group.fields,
            };
            Group { fields, ..group }.put_into(groups);
        }
        InlineFragmentSelection {
            selections,
            ..inline.clone()
        }
    }

    /// Moves a field with requirements, or an object without a key, into its group. Returns the required fields.
    fn postponed(
        &self,
        parent: &str,
        field: &FieldSelection,
        path: &[Segment],
        groups: &mut Vec<Group>,
    ) -> Option<SelectionSet> {
        let composed = self.composition.field(parent, &field.name)?;
        let (graph, mut asked, given) = match composed.requiring() {
            Some((graph, required)) => {
                let mut keys = self.composition.resolvable_keys(graph, parent);
                let mut asked = keys.next()?.clone();
                let mut given = asked.clone();
                let (required, sent) = self.renamed(required);
                unite(&mut asked, &required);
                unite(&mut given, &sent);
                (graph, asked, given)
            }
            None if self.splits_values => {
                let (graph, key) = self.whole_value(parent, field, composed)?;
                (graph, key.clone(), key)
            }
            None => return None,
        };
        let name = FieldSelection::new_skipped_typename();
        asked.items.insert(0, SelectionItem::Field(name));
        let group = Group {
            path: path.to_vec(),
            real: parent.to_owned(),
            graph,
            fields: SelectionSet {
                items: vec![SelectionItem::Field(field.clone())],
            },
            given,
        };
        group.put_into(groups);
        Some(asked)
    }

    /// The required fields in the first step, and in the representations of the second step. There, the alias is
    /// the name in the subgraph, and the name is the key in the data.
    fn renamed(&self, required: &SelectionSet) -> (SelectionSet, SelectionSet) {
        let (mut asked, mut sent) = (required.clone(), required.clone());
        if !self.renames {
            return (asked, sent);
        }
        let mut known = self.renamed.borrow_mut();
        let items = asked.items.iter_mut().zip(&mut sent.items);
        for (asked, sent) in items {
            let (SelectionItem::Field(asked), SelectionItem::Field(sent)) = (asked, sent) else {
                continue;
            };
            if asked.name == "__typename" {
                continue;
            }
            // Compared as text, because fields of the planner are equal without their selections.
            let text = asked.to_string();
            let index = known.iter().position(|it| *it == text);
            let index = index.unwrap_or_else(|| {
                known.push(text);
                known.len() - 1
            });
            let key = format!("{RENAMED}{index}");
            asked.alias = Some(key.clone());
            sent.alias = Some(std::mem::replace(&mut sent.name, key));
            sent.arguments = None;
        }
        (asked, sent)
    }

    /// A subgraph that resolves all selections of an object without a key, and the key of the entity around the
    /// object. `None` if each subgraph with the object resolves them.
    fn whole_value(
        &self,
        parent: &str,
        field: &FieldSelection,
        composed: &ComposedField,
    ) -> Option<(Graph, SelectionSet)> {
        let composition = self.composition;
        if field.selections.items.is_empty() || !composition.is_value_type(&composed.returns) {
            return None;
        }
        let with_field = |graph: &Graph| composition.has(*graph, parent) && composed.is_in(*graph);
        let graphs = (0..self.subgraphs.len()).filter(with_field);
        let (whole, partial): (Vec<Graph>, Vec<Graph>) = graphs
            .partition(|graph| composition.resolves(*graph, &composed.returns, &field.selections));
        if partial.is_empty() {
            return None;
        }
        let keys = whole.iter().flat_map(|graph| {
            let keys = composition.resolvable_keys(*graph, parent);
            keys.map(move |key| (*graph, key))
        });
        // A key that a subgraph with the other part has saves a request.
        let is_near = |key: &SelectionSet| {
            let mut partial = partial.iter();
            partial.any(|graph| composition.resolves(*graph, parent, key))
        };
        let (graph, key) = keys.min_by_key(|(_, key)| !is_near(key))?;
        Some((graph, key.clone()))
    }

    /// The request for a group.
    fn request(&self, group: Group) -> Option<PlanNode> {
        let of_type = |selections: SelectionSet| SelectionSet {
            items: vec![SelectionItem::InlineFragment(InlineFragmentSelection {
                type_condition: group.real.clone(),
                selections,
                skip_if: None,
                include_if: None,
            })],
        };
        let used = group.fields.variable_usages();
        let name = SelectionItem::Field(FieldSelection::new_typename());
        let mut given = group.given.clone();
        given.items.insert(0, name);
        let any = TypeNode::NonNull(Box::new(TypeNode::Named("_Any".to_owned())));
        let mut variables = vec![VariableDefinition {
            name: REPRESENTATIONS.to_owned(),
            variable_type: TypeNode::NonNull(Box::new(TypeNode::List(Box::new(any)))),
            default_value: None,
        }];
        let known = self.variables.iter();
        variables.extend(known.filter(|it| used.contains(&it.name)).cloned());
        let representations = Value::Variable(REPRESENTATIONS.to_owned());
        let entities = FieldSelection {
            name: "_entities".to_owned(),
            arguments: Some((REPRESENTATIONS.to_owned(), representations).into()),
            selections: of_type(group.fields.clone()),
            ..FieldSelection::new_typename()
        };
        let operation = OperationDefinition {
            name: None,
            operation_kind: Some(OperationKind::Query),
            selection_set: SelectionSet {
                items: vec![SelectionItem::Field(entities)],
            },
            variable_definitions: Some(variables),
        };
        let document = Document {
            operation,
            fragments: Vec::new(),
        };
        let fetch = FetchNode {
            id: 0,
            service_name: self.subgraphs.get(group.graph)?.name.clone(),
            variable_usages: Some(used),
            operation_kind: Some(OperationKind::Query),
            operation: SubgraphFetchOperation::from_anonymous_operation(document),
            custom_scalar_paths: None,
            requires: Some(of_type(given)),
            input_rewrites: None,
            output_rewrites: None,
        };
        Some(PlanNode::Flatten(FlattenNode {
            path: path_of(&group.path)?,
            node: Box::new(PlanNode::Fetch(fetch)),
        }))
    }
}

impl Group {
    /// Adds the group to an existing group for the same objects and subgraph, or to the list.
    fn put_into(self, groups: &mut Vec<Group>) {
        match groups.iter_mut().find(|known| known.is_beside(&self)) {
            Some(known) => {
                unite(&mut known.fields, &self.fields);
                unite(&mut known.given, &self.given);
            }
            None => groups.push(self),
        }
    }

    fn is_beside(&self, other: &Group) -> bool {
        self.path == other.path
            && self.real == other.real
            && self.graph == other.graph
            && agree(&self.given, &other.given)
    }
}

/// True if no member of a representation has two values.
fn agree(one: &SelectionSet, other: &SelectionSet) -> bool {
    one.items.iter().all(|item| {
        other.items.iter().all(|other| match (item, other) {
            (SelectionItem::Field(item), SelectionItem::Field(other))
                if item.selection_identifier() == other.selection_identifier() =>
            {
                item.name == other.name
                    && item.arguments == other.arguments
                    && agree(&item.selections, &other.selections)
            }
            _ => true,
        })
    })
}

/// The planner's path of these steps. Its only constructor reads the text form.
fn path_of(steps: &[Segment]) -> Option<FlattenNodePath> {
    let text = serde_json::to_value(steps).ok()?;
    serde_json::from_value(text).ok()
}

/// Adds the items of `from` that `into` lacks.
fn unite(into: &mut SelectionSet, from: &SelectionSet) {
    for item in &from.items {
        let known = into.items.iter_mut().find_map(|known| match (known, item) {
            (SelectionItem::Field(known), SelectionItem::Field(field)) => {
                let is_same = known.selection_identifier() == field.selection_identifier()
                    && known.name == field.name
                    && known.arguments() == field.arguments()
                    && known.skip_if == field.skip_if
                    && known.include_if == field.include_if;
                is_same.then_some((&mut known.selections, &field.selections))
            }
            (SelectionItem::InlineFragment(known), SelectionItem::InlineFragment(inline)) => {
                let is_same = known.type_condition == inline.type_condition
                    && known.skip_if == inline.skip_if
                    && known.include_if == inline.include_if;
                is_same.then_some((&mut known.selections, &inline.selections))
            }
            _ => None,
        });
        match known {
            Some((known, more)) => unite(known, more),
            None => into.items.push(item.clone()),
        }
    }
}
