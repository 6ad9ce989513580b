//! The deferred fragments of an operation, and the operation without some of them.
//!
//! A *group* is one `@defer` in the document below one chain of surrounding `@defer`s. Its fields are
//! delivered together. Group 0 contains all fields outside of deferred fragments. A fragment that a variable
//! defers is a group, too. The variables of a request decide if its data is delivered separately.

use std::collections::HashMap;

use graphql_tools::parser::Pos;
use graphql_tools::parser::query::{
    Definition, Directive, Document, Field, InlineFragment, OperationDefinition, Selection,
    Value as Literal,
};

use crate::limits::{QueryDocument, Set, selection_set};
use crate::schema::{Schema, inner_name};
use crate::variables::Declared;

/// Maximum number of groups in one operation. Further fragments are not deferred and belong to the
/// surrounding group.
const GROUPS_MAX: usize = 32;

/// Maximum bytes of a label. The client receives the label for each place of its fragment. A fragment with a
/// longer label is not deferred.
const LABEL_MAX: usize = 256;

/// Fields that are delivered together.
#[derive(Debug)]
pub(crate) struct Group {
    /// The surrounding group. Always a smaller number.
    pub(crate) parent: usize,
    pub(crate) label: Option<String>,
    /// The variable that decides if the fragment is deferred.
    pub(crate) condition: Option<usize>,
    /// Place of the directive in the document. It identifies the directive.
    place: Pos,
}

/// All groups except group 0.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<Group>);

impl Groups {
    /// Number of groups, without group 0.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers of the groups. Parents come before their children.
    pub(crate) fn numbers(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.0.len()
    }

    /// The group of this number. The number must not be 0.
    pub(crate) fn get(&self, number: usize) -> &Group {
        &self.0[number - 1]
    }

    fn find(&self, parent: usize, place: Pos) -> Option<usize> {
        let found = |it: &Group| it.parent == parent && it.place == place;
        self.0.iter().position(found).map(|index| index + 1)
    }

    /// Finds or adds the group of a fragment with these directives inside another group. `None` if the
    /// fragment is not deferred.
    pub(crate) fn find_or_add(
        &mut self,
        parent: usize,
        directives: &[Directive<'static, String>],
        declared: &[Declared],
    ) -> Option<usize> {
        let directive = defer_of(directives)?;
        if let Some(known) = self.find(parent, directive.position) {
            return Some(known);
        }
        let argument = |name: &str| {
            let mut arguments = directive.arguments.iter();
            arguments
                .find(|(known, _)| known == name)
                .map(|(_, value)| value)
        };
        let condition = match argument("if") {
            Some(Literal::Boolean(false)) => return None,
            Some(Literal::Variable(name)) => Some(declared.iter().position(|it| it.name == *name)?),
            _ => None,
        };
        let label = match argument("label") {
            Some(Literal::String(label)) => Some(label.clone()),
            _ => None,
        };
        let is_too_long = label.as_ref().is_some_and(|it| it.len() > LABEL_MAX);
        if is_too_long || self.0.len() >= GROUPS_MAX {
            return None;
        }
        self.0.push(Group {
            parent,
            label,
            condition,
            place: directive.position,
        });
        Some(self.0.len())
    }

    /// True if `group` is `outer` or inside it.
    pub(crate) fn is_within(&self, mut group: usize, outer: usize) -> bool {
        while group > outer {
            group = self.get(group).parent;
        }
        group == outer
    }
}

fn defer_of<'d>(
    directives: &'d [Directive<'static, String>],
) -> Option<&'d Directive<'static, String>> {
    directives.iter().find(|it| it.name == "defer")
}

/// The operation with only the fragments of these groups, and without `@defer`.
///
/// If a removed fragment applies to some object types only, the operation selects `__typename` instead. It
/// shows which objects the fragment will apply to.
pub(crate) fn restricted(
    schema: &Schema,
    root: &str,
    document: &QueryDocument,
    operation: &OperationDefinition<'static, String>,
    groups: &Groups,
    keeps: &dyn Fn(usize) -> bool,
) -> QueryDocument {
    let fragments = document.definitions.iter().filter_map(|it| match it {
        Definition::Fragment(it) => Some((it.name.as_str(), it)),
        Definition::Operation(_) => None,
    });
    let restriction = Restriction {
        fragments: fragments
            .map(|it| (it.0, (&it.1.type_condition, &it.1.selection_set)))
            .collect(),
        schema,
        groups,
        keeps,
    };
    let set = restriction.set(root, selection_set(operation), 0);
    let mut operation = operation.clone();
    match &mut operation {
        OperationDefinition::SelectionSet(it) => *it = set,
        OperationDefinition::Query(it) => it.selection_set = set,
        OperationDefinition::Mutation(it) => it.selection_set = set,
        OperationDefinition::Subscription(it) => it.selection_set = set,
    }
    Document {
        definitions: vec![Definition::Operation(operation)],
    }
}

type Condition = graphql_tools::parser::query::TypeCondition<'static, String>;

struct Restriction<'a> {
    fragments: HashMap<&'a str, (&'a Condition, &'a Set)>,
    schema: &'a Schema,
    groups: &'a Groups,
    keeps: &'a dyn Fn(usize) -> bool,
}

impl Restriction<'_> {
    fn set(&self, parent: &str, set: &Set, group: usize) -> Set {
        let items = set.items.iter().filter_map(|item| match item {
            Selection::Field(field) => Some(Selection::Field(self.field(parent, field, group))),
            Selection::InlineFragment(inline) => {
                let condition = inline.type_condition.as_ref();
                self.fragment(
                    parent,
                    condition,
                    &inline.selection_set,
                    &inline.directives,
                    group,
                )
            }
            Selection::FragmentSpread(spread) => {
                let (condition, set) = self.fragments.get(spread.fragment_name.as_str())?;
                self.fragment(parent, Some(condition), set, &spread.directives, group)
            }
        });
        Set {
            span: set.span,
            items: items.collect(),
        }
    }

    fn field(
        &self,
        parent: &str,
        field: &Field<'static, String>,
        group: usize,
    ) -> Field<'static, String> {
        let named = self.schema.named(parent);
        let definition = named.and_then(|it| it.field(&field.name));
        let below = definition.map_or("", |it| inner_name(&it.field_type));
        let mut set = self.set(below, &field.selection_set, group);
        if set.items.is_empty() && !field.selection_set.items.is_empty() {
            // The response still contains the object without these fields.
            set.items.push(typename());
        }
        Field {
            position: field.position,
            alias: field.alias.clone(),
            name: field.name.clone(),
            arguments: field.arguments.clone(),
            directives: field.directives.clone(),
            selection_set: set,
        }
    }

    fn fragment(
        &self,
        parent: &str,
        condition: Option<&Condition>,
        set: &Set,
        directives: &[Directive<'static, String>],
        outer: usize,
    ) -> Option<Selection<'static, String>> {
        let deferred = defer_of(directives).and_then(|it| self.groups.find(outer, it.position));
        let group = deferred.unwrap_or(outer);
        if !(self.keeps)(group) {
            return self.narrows(parent, condition, set).then(typename);
        }
        let inside = condition.map_or(parent, |Condition::On(name)| name);
        let inner = self.set(inside, set, group);
        let directives = directives.iter().filter(|it| it.name != "defer");
        (!inner.items.is_empty()).then(|| {
            Selection::InlineFragment(InlineFragment {
                position: Pos::default(),
                type_condition: condition.cloned(),
                directives: directives.cloned().collect(),
                selection_set: inner,
            })
        })
    }

    /// True if a fragment, or a part of it, applies to some object types only.
    fn narrows(&self, parent: &str, condition: Option<&Condition>, set: &Set) -> bool {
        let inside = condition.map_or(parent, |Condition::On(name)| name);
        !self.schema.is_subtype(parent, inside)
            || set.items.iter().any(|item| match item {
                Selection::Field(_) => false,
                Selection::InlineFragment(inline) => {
                    let condition = inline.type_condition.as_ref();
                    self.narrows(inside, condition, &inline.selection_set)
                }
                Selection::FragmentSpread(spread) => self
                    .fragments
                    .get(spread.fragment_name.as_str())
                    .is_some_and(|(condition, set)| self.narrows(inside, Some(condition), set)),
            })
    }
}

fn typename() -> Selection<'static, String> {
    Selection::Field(Field {
        position: Pos::default(),
        alias: None,
        name: "__typename".to_owned(),
        arguments: Vec::new(),
        directives: Vec::new(),
        selection_set: Set {
            span: Default::default(),
            items: Vec::new(),
        },
    })
}
