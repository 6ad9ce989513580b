//! Compiles the selections of an operation into its projection.
//!
//! The compiler merges fields with equal response keys. It resolves fragments for every object type that they
//! can meet.
//!
//! Equal selections for equal types are compiled once and shared. Otherwise, nesting within an interface of
//! many objects would grow exponentially.

use std::collections::HashMap;

use graphql_tools::parser::query::{Directive, Field, Selection, TypeCondition, Value as Literal};
use graphql_tools::parser::schema::Type;

use crate::limits::Fragments;
use crate::limits::{Set, TooMuch};
use crate::projection::{
    Anchor, Clause, EnumValues, Leaf, Member, PerType, Projection, RequestedField, Shape, What,
};
use crate::schema::{Named, Schema, TypeText};
use crate::unserved::has_defer;
use crate::variables::Declared;

/// Marks an unauthorized field of the client's operation. No client can write this directive, because
/// validation refuses unknown directives.
pub(crate) const DENIED: &str = "__denied";

/// Maximum number of compiled members of one operation. A larger operation is refused.
const COMPILED_MAX: usize = 200_000;

type AskedField<'a> = &'a Field<'static, String>;

/// Compiles the selection set of an operation.
pub(crate) fn compile(
    schema: &Schema,
    fragments: &Fragments<'_>,
    declared: &[Declared],
    root_type: &str,
    set: &Set,
) -> Result<Projection, TooMuch> {
    let mut compiler = Compiler {
        schema,
        fragments,
        declared,
        compiled: 0,
        defers: has_defer(set) || fragments.values().any(|it| has_defer(&it.selection_set)),
        // The root fields of a mutation run one after the other, even if they are in deferred fragments.
        undeferred: (schema.mutation_root() == Some(root_type)).then(|| root_type.to_owned()),
        members: HashMap::new(),
        selections: HashMap::new(),
        enums: HashMap::new(),
        out: Projection::default(),
    };
    let part = Part {
        set,
        clause: Clause::default(),
    };
    compiler.out.root = compiler.members(root_type, &[part])?;
    Ok(compiler.out)
}

/// A selection set with its condition.
#[derive(Clone)]
struct Part<'a> {
    set: &'a Set,
    clause: Clause,
}

/// A type name, and the addresses of selection sets with their conditions.
type Key = (String, Vec<(usize, Clause)>);

fn key_of(type_name: &str, parts: &[Part<'_>]) -> Key {
    // Sets are compared by address. The document does not move during the compilation. A comparison of
    // contents would cost as much as sharing saves.
    let parts = parts
        .iter()
        .map(|part| (std::ptr::from_ref(part.set).addr(), part.clause.clone()));
    (type_name.to_owned(), parts.collect())
}

/// All fields of one response key.
struct Collected<'a> {
    field: AskedField<'a>,
    /// True if the field is unauthorized at one of its places.
    is_denied: bool,
    presence: Vec<Clause>,
    parts: Vec<Part<'a>>,
}

#[derive(Default)]
struct Collection<'a> {
    order: Vec<Collected<'a>>,
    by_key: HashMap<&'a str, usize>,
    anchors: Vec<Anchor>,
}

struct Compiler<'a> {
    schema: &'a Schema,
    fragments: &'a Fragments<'a>,
    declared: &'a [Declared],
    compiled: usize,
    /// True if the operation has deferred fragments. Then each member has a condition, which contains the
    /// groups that deliver it.
    defers: bool,
    /// The type with fields that are never deferred.
    undeferred: Option<String>,
    members: HashMap<Key, usize>,
    selections: HashMap<Key, usize>,
    enums: HashMap<String, usize>,
    out: Projection,
}

impl<'a> Compiler<'a> {
    fn members(&mut self, parent: &str, parts: &[Part<'a>]) -> Result<usize, TooMuch> {
        let key = key_of(parent, parts);
        if let Some(index) = self.members.get(&key) {
            return Ok(*index);
        }
        let mut collection = Collection::default();
        for part in parts {
            self.collect(parent, part.set, &part.clause, &mut collection);
        }
        // Checked before the members are compiled, so that memory is allocated only within the limit. Each
        // abstract type multiplies the members by its object types.
        self.compiled += collection.order.len() + collection.anchors.len();
        if self.compiled > COMPILED_MAX {
            return Err(TooMuch::Compiled);
        }
        let mut members = Vec::with_capacity(collection.order.len());
        for collected in collection.order {
            if let Some(member) = self.member(parent, collected)? {
                members.push(member);
            }
        }
        for anchor in collection.anchors {
            members.push(self.anchored(parent, anchor));
        }
        let index = self.out.members.len();
        self.out.members.push(members.into_boxed_slice());
        self.members.insert(key, index);
        Ok(index)
    }

    fn collect(
        &mut self,
        parent: &str,
        set: &'a Set,
        outer: &Clause,
        collection: &mut Collection<'a>,
    ) {
        for selection in &set.items {
            let directives = match selection {
                Selection::Field(field) => &field.directives,
                Selection::InlineFragment(inline) => &inline.directives,
                Selection::FragmentSpread(spread) => &spread.directives,
            };
            let Some(clause) = self.conditions(outer, directives) else {
                continue;
            };
            let (condition, inner) = match selection {
                Selection::Field(field) => {
                    collect_field(field, clause, collection);
                    continue;
                }
                Selection::InlineFragment(inline) => {
                    (inline.type_condition.as_ref(), &inline.selection_set)
                }
                Selection::FragmentSpread(spread) => {
                    match self.fragments.get(spread.fragment_name.as_str()) {
                        Some(fragment) => (Some(&fragment.type_condition), &fragment.selection_set),
                        None => continue,
                    }
                }
            };
            let applies = condition
                .is_none_or(|TypeCondition::On(name)| self.schema.is_subtype(parent, name));
            if applies {
                let clause = self.deferred(parent, directives, clause, collection);
                self.collect(parent, inner, &clause, collection);
            }
        }
    }

    /// The clause inside a fragment that may be deferred.
    fn deferred(
        &mut self,
        parent: &str,
        directives: &[Directive<'static, String>],
        outer: Clause,
        collection: &mut Collection<'a>,
    ) -> Clause {
        if self.undeferred.as_deref() == Some(parent) {
            return outer;
        }
        let groups = &mut self.out.groups;
        let Some(group) = groups.find_or_add(outer.group, directives, self.declared) else {
            return outer;
        };
        let inner = Clause {
            group,
            conditions: outer.conditions.clone(),
        };
        match collection.anchors.iter_mut().find(|it| it.group == group) {
            Some(anchor) if anchor.clauses.contains(&outer) => {}
            Some(anchor) => anchor.clauses.push(outer),
            None => collection.anchors.push(Anchor {
                group,
                clauses: vec![outer],
            }),
        }
        inner
    }

    /// The member that represents a deferred fragment in an object.
    fn anchored(&mut self, parent: &str, anchor: Anchor) -> Member {
        self.out.anchors.push(anchor);
        // Without a clause, the member is never present.
        let never = self.presence(Vec::new());
        Member {
            key: Box::default(),
            opener: Box::default(),
            presence: never,
            non_null: false,
            what: What::Deferred(self.out.anchors.len() - 1),
            coordinate: parent.into(),
            introspection: None,
        }
    }

    /// The clause with the conditions of the directives added. `None` if it can never hold.
    fn conditions(
        &self,
        outer: &Clause,
        directives: &[Directive<'static, String>],
    ) -> Option<Clause> {
        let mut clause = outer.clone();
        for directive in directives {
            let wanted = match directive.name.as_str() {
                "skip" => false,
                "include" => true,
                _ => continue,
            };
            let argument = directive.arguments.iter().find(|(name, _)| name == "if");
            match argument.map(|(_, value)| value) {
                Some(Literal::Boolean(given)) if *given == wanted => {}
                Some(Literal::Variable(name)) => {
                    let index = self.declared.iter().position(|it| it.name == *name)?;
                    let atom = (index, wanted);
                    if !clause.conditions.contains(&atom) {
                        clause.conditions.push(atom);
                    }
                }
                _ => return None,
            }
        }
        clause.conditions.sort_unstable();
        Some(clause)
    }

    fn member(
        &mut self,
        parent: &str,
        collected: Collected<'a>,
    ) -> Result<Option<Member>, TooMuch> {
        let Collected {
            field,
            is_denied,
            presence,
            parts,
        } = collected;
        let response_key = field.alias.as_deref().unwrap_or(&field.name);
        let presence = self.presence(presence);
        let coordinate = format!("{parent}.{}", field.name).into_boxed_str();
        let mut opener = Vec::new();
        json_text::write_string(response_key, &mut opener);
        opener.push(b':');
        let mut member = Member {
            key: response_key.as_bytes().into(),
            opener: opener.into_boxed_slice(),
            presence,
            non_null: true,
            what: What::Text(Box::default()),
            coordinate,
            introspection: None,
        };
        if field.name == "__typename" {
            member.what = match self.schema.named(parent) {
                // The name of an interface is never the type of an object. Only the data contains the type.
                Some(Named::Interface(_) | Named::Union(_)) => {
                    member.key = b"__typename".as_slice().into();
                    What::Value(Shape::Leaf(Leaf::String))
                }
                _ => What::Text(format!("\"{parent}\"").into_bytes().into_boxed_slice()),
            };
            return Ok(Some(member));
        }
        let named = self.schema.named(parent);
        let Some(definition) = named.and_then(|named| named.field(&field.name)) else {
            return Ok(None);
        };
        if parent.starts_with("__") || field.name.starts_with("__") {
            member.introspection = Some(Box::new(RequestedField {
                name: field.name.clone(),
                arguments: field.arguments.clone(),
            }));
        }
        if is_denied {
            member.non_null = matches!(definition.field_type, Type::NonNullType(_));
            member.what = What::Denied;
            return Ok(Some(member));
        }
        let (non_null, shape) = self.shape(&definition.field_type, &parts)?;
        member.non_null = non_null;
        member.what = What::Value(shape);
        Ok(Some(member))
    }

    fn presence(&mut self, clauses: Vec<Clause>) -> Option<usize> {
        // A clause without conditions always holds. So the whole presence always holds.
        if !self.defers && clauses.iter().any(|it| it.conditions.is_empty()) {
            return None;
        }
        let known = self.out.presences.iter().position(|it| *it == clauses);
        Some(known.unwrap_or_else(|| {
            self.out.presences.push(clauses);
            self.out.presences.len() - 1
        }))
    }

    fn shape(&mut self, kind: &TypeText, parts: &[Part<'a>]) -> Result<(bool, Shape), TooMuch> {
        Ok(match kind {
            Type::NonNullType(inner) => (true, self.shape(inner, parts)?.1),
            Type::ListType(inner) => {
                let (item_non_null, item) = self.shape(inner, parts)?;
                let item = Box::new(item);
                (
                    false,
                    Shape::List {
                        item,
                        item_non_null,
                    },
                )
            }
            Type::NamedType(name) => (false, self.named_shape(name, parts)?),
        })
    }

    fn named_shape(&mut self, name: &str, parts: &[Part<'a>]) -> Result<Shape, TooMuch> {
        Ok(match self.schema.named(name) {
            Some(Named::Object(_) | Named::Interface(_) | Named::Union(_)) => {
                Shape::Object(self.selection(name, parts)?)
            }
            Some(Named::Enum(kind)) => {
                let known = self.enums.get(name).copied();
                let index = known.unwrap_or_else(|| {
                    let values = kind.values.iter().map(|value| value.name.as_bytes().into());
                    self.out.enums.push(EnumValues {
                        name: name.to_owned(),
                        values: values.collect(),
                    });
                    self.out.enums.len() - 1
                });
                self.enums.insert(name.to_owned(), index);
                Shape::Leaf(Leaf::Enum(index))
            }
            _ => Shape::Leaf(match name {
                "Int" => Leaf::Int,
                "Float" => Leaf::Float,
                "String" => Leaf::String,
                "Boolean" => Leaf::Boolean,
                "ID" => Leaf::Id,
                _ => Leaf::Any,
            }),
        })
    }

    fn selection(&mut self, name: &str, parts: &[Part<'a>]) -> Result<usize, TooMuch> {
        let key = key_of(name, parts);
        if let Some(index) = self.selections.get(&key) {
            return Ok(*index);
        }
        let mut by_type = Vec::new();
        if !matches!(self.schema.named(name), Some(Named::Object(_))) {
            let schema = self.schema;
            for object in schema.possible(name) {
                // The response cannot contain objects of hidden types.
                if schema.named(object).is_some() {
                    by_type.push((object.as_bytes().into(), self.members(object, parts)?));
                }
            }
        }
        let otherwise = self.members(name, parts)?;
        let index = self.out.selections.len();
        self.out.selections.push(PerType { by_type, otherwise });
        self.selections.insert(key, index);
        Ok(index)
    }
}

fn collect_field<'a>(field: AskedField<'a>, clause: Clause, collection: &mut Collection<'a>) {
    let response_key = field.alias.as_deref().unwrap_or(&field.name);
    let index = *collection.by_key.entry(response_key).or_insert_with(|| {
        collection.order.push(Collected {
            field,
            is_denied: false,
            presence: Vec::new(),
            parts: Vec::new(),
        });
        collection.order.len() - 1
    });
    let collected = &mut collection.order[index];
    collected.is_denied |= field.directives.iter().any(|it| it.name == DENIED);
    if !field.selection_set.items.is_empty() {
        collected.parts.push(Part {
            set: &field.selection_set,
            clause: clause.clone(),
        });
    }
    if !collected.presence.contains(&clause) {
        collected.presence.push(clause);
    }
}
