//! Removes unauthorized fields and types from an operation.

use std::collections::{BTreeSet, HashMap};

use graphql_tools::parser::Pos;
use graphql_tools::parser::query::{
    Definition, Directive, Document, Field, InlineFragment, OperationDefinition, Selection,
    SelectionSet, TypeCondition,
};
use graphql_tools::parser::schema::Type;

use super::UNAUTHORIZED;
use crate::access_rules::{Demands, Grants, Rule, Rules, collect_atoms, holds};
use crate::error::{GraphqlError, PathSegment};
use crate::limits::{QueryDocument, Set, selection_set};
use crate::projection_compiler::DENIED;
use crate::schema::{Named, Schema, TypeText, inner_name};

/// Maximum number of reported errors. Further unauthorized fields are removed without an error.
const ERRORS_MAX: usize = 1_000;

/// An operation in two forms.
pub(crate) struct Filtered {
    /// The form for the response: all fields, with [`DENIED`] at the fields that are null.
    pub(crate) shown: Set,
    /// The form for the planner: only the authorized fields.
    pub(crate) asked: QueryDocument,
    /// One error for each removed field or type.
    pub(crate) errors: Vec<GraphqlError>,
}

/// The demands that a request must meet to see the whole operation.
pub(crate) fn demands(
    rules: &Rules,
    schema: &Schema,
    document: &QueryDocument,
    operation: &Operation,
    root: &str,
) -> Demands {
    let mut judge = Collect(BTreeSet::new());
    walk(rules, schema, document, operation, root, &mut judge);
    Demands::of(judge.0)
}

/// Removes the fields and types that a request with these grants may not see.
pub(crate) fn filter(
    rules: &Rules,
    schema: &Schema,
    document: &QueryDocument,
    operation: &Operation,
    root: &str,
    demands: &Demands,
    grants: &Grants,
) -> Filtered {
    let mut judge = Judge(rules.granted(demands, grants));
    let (forms, errors) = walk(rules, schema, document, operation, root, &mut judge);
    let operation = with_selections(operation, forms.asked);
    Filtered {
        shown: forms.shown,
        asked: Document {
            definitions: vec![Definition::Operation(operation)],
        },
        errors,
    }
}

type Operation = OperationDefinition<'static, String>;

fn walk(
    rules: &Rules,
    schema: &Schema,
    document: &QueryDocument,
    operation: &Operation,
    root: &str,
    judge: &mut dyn Verdict,
) -> (Forms, Vec<GraphqlError>) {
    let fragments = document.definitions.iter().filter_map(|it| match it {
        Definition::Fragment(it) => {
            Some((it.name.as_str(), (&it.type_condition, &it.selection_set)))
        }
        Definition::Operation(_) => None,
    });
    let mut walk = Walk {
        rules,
        schema,
        fragments: fragments.collect(),
        scopes: Vec::new(),
        narrowed: HashMap::new(),
        judge,
        path: Vec::new(),
        errors: Vec::new(),
    };
    let place = Place {
        parent: root,
        scope: walk.scope(schema.possible(root)),
    };
    let forms = walk.set(place, selection_set(operation));
    (forms, walk.errors)
}

/// Decides if a rule holds.
trait Verdict {
    fn holds(&mut self, rule: &Rule) -> bool;
}

/// Accepts every rule and collects its atoms.
struct Collect(BTreeSet<usize>);

impl Verdict for Collect {
    fn holds(&mut self, rule: &Rule) -> bool {
        collect_atoms(rule, &mut self.0);
        true
    }
}

struct Judge(Vec<bool>);

impl Verdict for Judge {
    fn holds(&mut self, rule: &Rule) -> bool {
        holds(rule, &self.0)
    }
}

struct Forms {
    shown: Set,
    asked: Set,
    /// True if the response has nulls for some types only. The planner then needs an additional `__typename`.
    wants_type: bool,
}

fn typename() -> Field<'static, String> {
    Field {
        position: Pos::default(),
        alias: None,
        name: "__typename".to_owned(),
        arguments: Vec::new(),
        directives: Vec::new(),
        selection_set: empty(),
    }
}

fn empty() -> Set {
    SelectionSet {
        span: Default::default(),
        items: Vec::new(),
    }
}

/// Place of a selection in the operation.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The type of the selected object.
    parent: &'p str,
    /// Index into [`Walk::scopes`].
    scope: usize,
}

/// Object types that a selection can meet.
struct Scope<'a> {
    objects: Vec<&'a str>,
    /// The object types with rules.
    ruled: Vec<&'a str>,
}

struct Walk<'a> {
    rules: &'a Rules,
    schema: &'a Schema,
    fragments: HashMap<&'a str, (&'a TypeCondition<'static, String>, &'a Set)>,
    scopes: Vec<Scope<'a>>,
    /// The scopes that result from a scope and a type condition.
    narrowed: HashMap<(usize, String), usize>,
    judge: &'a mut (dyn Verdict + 'a),
    path: Vec<PathSegment>,
    errors: Vec<GraphqlError>,
}

impl<'a> Walk<'a> {
    fn scope(&mut self, objects: Vec<&'a str>) -> usize {
        let ruled = objects.iter().copied();
        let ruled = ruled.filter(|object| self.rules.is_ruled(object)).collect();
        self.scopes.push(Scope { objects, ruled });
        self.scopes.len() - 1
    }

    /// Narrows a scope to the objects that are also of this type.
    fn narrow(&mut self, scope: usize, condition: &str) -> usize {
        let key = (scope, condition.to_owned());
        if let Some(known) = self.narrowed.get(&key) {
            return *known;
        }
        let schema = self.schema;
        let objects = self.scopes[scope].objects.iter().copied();
        let objects = objects.filter(|object| schema.is_subtype(object, condition));
        let objects: Vec<&'a str> = objects.collect();
        let narrowed = self.scope(objects);
        self.narrowed.insert(key, narrowed);
        narrowed
    }

    fn set(&mut self, place: Place<'_>, set: &Set) -> Forms {
        let mut forms = Forms {
            shown: empty(),
            asked: empty(),
            wants_type: false,
        };
        for selection in &set.items {
            match selection {
                Selection::Field(field) => self.field(place, field, &mut forms),
                Selection::InlineFragment(inline) => {
                    self.fragment(
                        place,
                        inline.type_condition.as_ref(),
                        &inline.selection_set,
                        &inline.directives,
                        &mut forms,
                    );
                }
                Selection::FragmentSpread(spread) => {
                    // Validation has already refused unknown fragments.
                    let fragment = self.fragments.get(&*spread.fragment_name);
                    if let Some(&(condition, set)) = fragment {
                        let directives = &spread.directives;
                        self.fragment(place, Some(condition), set, directives, &mut forms);
                    }
                }
            }
        }
        if forms.wants_type && !forms.asked.items.is_empty() {
            forms.asked.items.push(Selection::Field(typename()));
        }
        forms
    }

    fn field(&mut self, place: Place<'_>, field: &Field<'static, String>, forms: &mut Forms) {
        let definition = self
            .schema
            .named(place.parent)
            .and_then(|it| it.field(&field.name));
        // `__typename` reveals no more than the field above it. Introspection is not subject to
        // authorization.
        let Some(definition) = definition.filter(|_| !field.name.starts_with("__")) else {
            push_field(&mut forms.shown, field, None);
            push_field(&mut forms.asked, field, None);
            return;
        };
        let key = field.alias.as_deref().unwrap_or(&field.name);
        self.path.push(PathSegment::Key(key.to_owned()));
        let below = inner_name(&definition.field_type);
        if self.may_see(place, field, below) {
            self.below(&definition.field_type, field, forms);
        } else {
            self.report();
            push_field(&mut forms.shown, &denied(field), None);
        }
        self.path.pop();
    }

    /// Filters the selections of an authorized field.
    fn below(&mut self, kind: &TypeText, field: &Field<'static, String>, forms: &mut Forms) {
        if field.selection_set.items.is_empty() {
            push_field(&mut forms.shown, field, None);
            push_field(&mut forms.asked, field, None);
            return;
        }
        let lists = depth(kind);
        for _ in 0..lists {
            self.path.push(PathSegment::Key("@".to_owned()));
        }
        let below = inner_name(kind);
        let place = Place {
            parent: below,
            scope: self.scope_of(below),
        };
        let inner = self.set(place, &field.selection_set);
        self.path.truncate(self.path.len() - lists);
        if inner.asked.items.is_empty() {
            // The whole selection is unauthorized, so the gateway does not request it. A mutation does not
            // run if the client may not see any of its results.
            push_field(&mut forms.shown, &denied(field), None);
            return;
        }
        push_field(&mut forms.shown, field, Some(inner.shown));
        push_field(&mut forms.asked, field, Some(inner.asked));
    }

    fn scope_of(&mut self, name: &str) -> usize {
        // No narrowed scope has this key, because there is no scope of this number.
        let key = (usize::MAX, name.to_owned());
        if let Some(known) = self.narrowed.get(&key) {
            return *known;
        }
        let schema = self.schema;
        let scope = self.scope(schema.possible(name));
        self.narrowed.insert(key, scope);
        scope
    }

    fn may_see(&mut self, place: Place<'_>, field: &Field<'static, String>, below: &str) -> bool {
        let (parent, scope, name) = (place.parent, place.scope, field.name.as_str());
        let rules = self.rules;
        let mut may = true;
        let mut check = |rule: Option<&Rule>, judge: &mut dyn Verdict| {
            // Without an early return, because the judge also collects each rule.
            may &= rule.is_none_or(|rule| judge.holds(rule));
        };
        check(rules.of_type(parent), &mut *self.judge);
        check(rules.of_field(parent, name), &mut *self.judge);
        check(rules.of_type(below), &mut *self.judge);
        for object in &self.scopes[scope].ruled {
            check(rules.of_type(object), &mut *self.judge);
            check(rules.of_field(object, name), &mut *self.judge);
        }
        // A field that is selected on an interface applies to all its objects. If one of them is
        // unauthorized, the whole field is removed. Apollo Router documents the same behavior.
        let is_interface = matches!(self.schema.named(below), Some(Named::Interface(_)));
        if is_interface && asks_directly(&field.selection_set) {
            let scope = self.scope_of(below);
            for object in &self.scopes[scope].ruled {
                check(rules.of_type(object), &mut *self.judge);
            }
        }
        may
    }

    fn fragment<'p>(
        &mut self,
        mut place: Place<'p>,
        condition: Option<&'p TypeCondition<'static, String>>,
        set: &Set,
        directives: &[Directive<'static, String>],
        forms: &mut Forms,
    ) {
        let name = condition.map(|TypeCondition::On(name)| name.as_str());
        if let Some(name) = name {
            place = Place {
                parent: name,
                scope: self.narrow(place.scope, name),
            };
        }
        let rule = name.and_then(|name| self.rules.of_type(name));
        if !rule.is_none_or(|rule| self.judge.holds(rule)) {
            // Removed without a null in the data, because an object of this type still has the other selected
            // fields.
            self.path
                .push(PathSegment::Key(format!("... on {}", place.parent)));
            self.report();
            self.path.pop();
            return;
        }
        let inner = self.set(place, set);
        forms.wants_type |= name.is_some() && inner.asked.items.is_empty();
        for (form, inner) in [
            (&mut forms.shown, inner.shown),
            (&mut forms.asked, inner.asked),
        ] {
            if !inner.items.is_empty() {
                form.items.push(Selection::InlineFragment(InlineFragment {
                    position: Pos::default(),
                    type_condition: condition.cloned(),
                    directives: directives.to_vec(),
                    selection_set: inner,
                }));
            }
        }
    }

    fn report(&mut self) {
        // An operation can select the same field several times.
        let is_known = self
            .errors
            .iter()
            .rev()
            .take(16)
            .any(|it| it.path == self.path);
        if self.errors.len() < ERRORS_MAX && !is_known {
            let mut error = GraphqlError::new("Unauthorized field or type", UNAUTHORIZED);
            error.path.clone_from(&self.path);
            self.errors.push(error);
        }
    }
}

/// True if a selection contains fields without a condition on the object's type.
fn asks_directly(set: &Set) -> bool {
    set.items.iter().any(|selection| match selection {
        Selection::Field(field) => field.name != "__typename",
        Selection::InlineFragment(inline) => {
            inline.type_condition.is_none() && asks_directly(&inline.selection_set)
        }
        Selection::FragmentSpread(_) => false,
    })
}

fn depth(kind: &TypeText) -> usize {
    match kind {
        Type::NamedType(_) => 0,
        Type::ListType(inner) => 1 + depth(inner),
        Type::NonNullType(inner) => depth(inner),
    }
}

fn denied(field: &Field<'static, String>) -> Field<'static, String> {
    let mut field = field.clone();
    field.selection_set.items.clear();
    field.directives.push(Directive {
        position: Pos::default(),
        name: DENIED.to_owned(),
        arguments: Vec::new(),
    });
    field
}

fn push_field(set: &mut Set, field: &Field<'static, String>, below: Option<Set>) {
    let field = match below {
        None => field.clone(),
        Some(below) => Field {
            selection_set: below,
            // Copies single members, because the selections of the whole field can be large.
            alias: field.alias.clone(),
            arguments: field.arguments.clone(),
            directives: field.directives.clone(),
            name: field.name.clone(),
            position: field.position,
        },
    };
    set.items.push(Selection::Field(field));
}

fn with_selections(operation: &Operation, set: Set) -> Operation {
    match operation {
        OperationDefinition::SelectionSet(_) => OperationDefinition::SelectionSet(set),
        OperationDefinition::Query(it) => {
            let mut it = it.clone();
            it.selection_set = set;
            OperationDefinition::Query(it)
        }
        OperationDefinition::Mutation(it) => {
            let mut it = it.clone();
            it.selection_set = set;
            OperationDefinition::Mutation(it)
        }
        OperationDefinition::Subscription(it) => {
            let mut it = it.clone();
            it.selection_set = set;
            OperationDefinition::Subscription(it)
        }
    }
}
