//! The validation rules of a strict server that a gateway's own requests can violate.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_graphql::parser::types::{
    BaseType, Directive, Field, FragmentDefinition, OperationDefinition, Selection, SelectionSet,
    Type,
};
use async_graphql::{Name, Positioned};
use async_graphql_value::Value;

use crate::schema::{Kind, Schema, named};

/// The fragments of a document, by name.
pub(crate) type Fragments = HashMap<Name, Positioned<FragmentDefinition>>;

struct Check<'a> {
    schema: &'a Schema,
    fragments: &'a Fragments,
    used_variables: BTreeSet<String>,
    used_fragments: BTreeSet<String>,
    /// True if fragments may have `@defer`. This server responds in one piece.
    knows_defer: bool,
}

/// Checks an operation. The error describes the violated rule.
pub(crate) fn operation(
    schema: &Schema,
    fragments: &Fragments,
    operation: &OperationDefinition,
    root: &str,
    knows_defer: bool,
) -> Result<(), String> {
    let mut check = Check {
        schema,
        fragments,
        used_variables: BTreeSet::new(),
        used_fragments: BTreeSet::new(),
        knows_defer,
    };
    check.directives(&operation.directives, false)?;
    check.selections(root, &operation.selection_set.node)?;
    let definitions = &operation.variable_definitions;
    let defined: BTreeSet<String> = definitions
        .iter()
        .map(|definition| definition.node.name.node.to_string())
        .collect();
    if defined.len() != definitions.len() {
        return Err("a variable is defined twice".to_owned());
    }
    for definition in definitions {
        let name = named(&definition.node.var_type.node);
        if schema.kind(name).is_none_or(Kind::is_composite) {
            return Err(format!("a variable cannot be of type `{name}`"));
        }
    }
    // Both directions, because servers refuse unused variables as well as undefined variables.
    if defined != check.used_variables {
        let used = check.used_variables;
        return Err(format!("variables defined {defined:?}, used {used:?}"));
    }
    // An unused fragment in a request is a mistake of the gateway.
    if check.used_fragments.len() != fragments.len() {
        return Err("a fragment is not used".to_owned());
    }
    // Last, because it follows fragments without checking them.
    same_shape(
        schema,
        fragments,
        &[(root.to_owned(), &operation.selection_set.node)],
    )
}

impl Check<'_> {
    fn selections(&mut self, parent: &str, set: &SelectionSet) -> Result<(), String> {
        for selection in &set.items {
            match &selection.node {
                Selection::Field(field) => self.field(parent, &field.node)?,
                Selection::InlineFragment(fragment) => {
                    self.directives(&fragment.node.directives, true)?;
                    let condition = fragment.node.type_condition.as_ref();
                    let ty = condition.map_or(parent, |condition| condition.node.on.node.as_str());
                    self.fragment(parent, ty, &fragment.node.selection_set.node)?;
                }
                Selection::FragmentSpread(spread) => {
                    self.directives(&spread.node.directives, true)?;
                    let name = &spread.node.fragment_name.node;
                    let fragment = self.fragments.get(name);
                    let fragment =
                        fragment.ok_or_else(|| format!("there is no fragment `{name}`"))?;
                    let ty = &fragment.node.type_condition.node.on.node;
                    self.used_fragments.insert(name.to_string());
                    self.fragment(parent, ty, &fragment.node.selection_set.node)?;
                }
            }
        }
        if set.items.is_empty() {
            return Err(format!("nothing is selected of `{parent}`"));
        }
        Ok(())
    }

    fn fragment(&mut self, parent: &str, ty: &str, set: &SelectionSet) -> Result<(), String> {
        if !self.schema.kind(ty).is_some_and(Kind::is_composite) {
            return Err(format!("there is no type `{ty}` for a fragment"));
        }
        if !self.schema.overlap(parent, ty) {
            return Err(format!("no `{parent}` can be a `{ty}`"));
        }
        self.selections(ty, set)
    }

    fn field(&mut self, parent: &str, field: &Field) -> Result<(), String> {
        self.directives(&field.directives, false)?;
        let name = field.name.node.as_str();
        if name == "__typename" {
            return Ok(());
        }
        let definition = self.schema.field(parent, name);
        let definition = definition.ok_or_else(|| format!("`{parent}` has no field `{name}`"))?;
        for (argument, value) in &field.arguments {
            if !definition
                .arguments
                .iter()
                .any(|known| known.name == argument.node.as_str())
            {
                return Err(format!(
                    "`{parent}.{name}` has no argument `{}`",
                    argument.node
                ));
            }
            self.variables_in(&value.node);
        }
        let ty = named(&definition.ty);
        let is_composite = self.schema.kind(ty).is_some_and(Kind::is_composite);
        match (is_composite, field.selection_set.node.items.is_empty()) {
            (true, false) => self.selections(ty, &field.selection_set.node),
            (false, true) => Ok(()),
            (true, true) => Err(format!("nothing is selected of `{parent}.{name}`")),
            (false, false) => Err(format!("`{parent}.{name}` has no fields to select")),
        }
    }

    fn directives(
        &mut self,
        directives: &[Positioned<Directive>],
        at_fragment: bool,
    ) -> Result<(), String> {
        for directive in directives {
            let name = &directive.node.name.node;
            let is_defer = name == "defer" && at_fragment && self.knows_defer;
            if name != "skip" && name != "include" && !is_defer {
                return Err(format!("there is no directive `@{name}`"));
            }
            for (_, value) in &directive.node.arguments {
                self.variables_in(&value.node);
            }
        }
        Ok(())
    }

    fn variables_in(&mut self, value: &Value) {
        match value {
            Value::Variable(name) => {
                self.used_variables.insert(name.to_string());
            }
            Value::List(values) => values.iter().for_each(|value| self.variables_in(value)),
            Value::Object(members) => members.values().for_each(|value| self.variables_in(value)),
            _ => {}
        }
    }
}

/// `SameResponseShape` of section 5.3.2 of the specification. Servers enforce it even for types that can
/// never meet.
fn same_shape(
    schema: &Schema,
    fragments: &Fragments,
    sets: &[(String, &SelectionSet)],
) -> Result<(), String> {
    let mut fields = Vec::new();
    for (parent, set) in sets {
        gather(fragments, parent, set, &mut fields);
    }
    let mut by_key: BTreeMap<&str, Vec<(Option<&Type>, &Field)>> = BTreeMap::new();
    for (parent, field) in &fields {
        let key = field.alias.as_ref().unwrap_or(&field.name).node.as_str();
        let ty = schema
            .field(parent, &field.name.node)
            .map(|definition| &definition.ty);
        by_key.entry(key).or_default().push((ty, field));
    }
    for (key, same) in by_key {
        let mut shapes: BTreeSet<String> = BTreeSet::new();
        let mut below = Vec::new();
        for (ty, field) in same {
            // `__typename` has no definition and is a `String!` everywhere.
            shapes.insert(ty.map_or("String!".to_owned(), |ty| shape(schema, ty)));
            if let Some(ty) = ty {
                below.push((named(ty).to_owned(), &field.selection_set.node));
            }
        }
        if shapes.len() > 1 {
            return Err(format!("`{key}` has different types: {shapes:?}"));
        }
        // Leaves end the recursion.
        if below.iter().any(|(_, set)| !set.items.is_empty()) {
            same_shape(schema, fragments, &below)?;
        }
    }
    Ok(())
}

fn gather<'a>(
    fragments: &'a Fragments,
    parent: &str,
    set: &'a SelectionSet,
    into: &mut Vec<(String, &'a Field)>,
) {
    for selection in &set.items {
        match &selection.node {
            Selection::Field(field) => into.push((parent.to_owned(), &field.node)),
            Selection::InlineFragment(fragment) => {
                let condition = fragment.node.type_condition.as_ref();
                let ty = condition.map_or(parent, |condition| condition.node.on.node.as_str());
                gather(fragments, ty, &fragment.node.selection_set.node, into);
            }
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = fragments.get(&spread.node.fragment_name.node) {
                    let ty = &fragment.node.type_condition.node.on.node;
                    gather(fragments, ty, &fragment.node.selection_set.node, into);
                }
            }
        }
    }
}

fn shape(schema: &Schema, ty: &Type) -> String {
    let inner = match &ty.base {
        BaseType::List(inner) => format!("[{}]", shape(schema, inner)),
        BaseType::Named(name) if schema.kind(name).is_some_and(Kind::is_composite) => {
            "{}".to_owned()
        }
        BaseType::Named(name) => name.to_string(),
    };
    format!("{inner}{}", if ty.nullable { "" } else { "!" })
}
