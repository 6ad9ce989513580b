//! Generates valid operations for a schema. A seed always gives the same operations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use async_graphql::parser::types::{BaseType, Type};
use serde_json::{Map, Value};

use crate::corpus::Case;
use crate::schema::{Field, Kind, Schema, named};
use crate::world::World;

/// Generator of valid operations for one schema.
#[derive(Debug)]
pub struct Inventor<'a> {
    schema: &'a Schema,
    world: &'a World,
    state: u64,
    /// Fields that have another type in another place, so that each needs its own response key.
    ambiguous: BTreeSet<String>,
    variables: Map<String, Value>,
    definitions: Vec<String>,
    fragments: Vec<String>,
    count: u32,
    /// True if the generator defers fragments.
    defers: bool,
}

impl<'a> Inventor<'a> {
    /// Creates a generator with a seed.
    #[must_use]
    pub fn new(schema: &'a Schema, world: &'a World, seed: u64) -> Self {
        let mut types: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for definition in schema.types.values() {
            for field in &definition.fields {
                types
                    .entry(&field.name)
                    .or_default()
                    .insert(field.ty.to_string());
            }
            // Two fields with one name and different types must not share a response key.
        }
        let ambiguous = types.into_iter().filter(|(_, types)| types.len() > 1);
        Self {
            ambiguous: ambiguous.map(|(name, _)| name.to_owned()).collect(),
            schema,
            world,
            state: seed,
            variables: Map::new(),
            definitions: Vec::new(),
            fragments: Vec::new(),
            count: 0,
            defers: false,
        }
    }

    /// Lets the generator defer parts of every third selection.
    #[must_use]
    pub fn deferring(mut self) -> Self {
        self.defers = true;
        self
    }

    /// Generates the next query.
    pub fn query(&mut self) -> Case {
        self.variables.clear();
        self.definitions.clear();
        self.fragments.clear();
        // All state is reset, so that a seed and a position always give the same query.
        self.count = 0;
        let schema = self.schema;
        let selection = self.selection(&schema.query, 4);
        let mut query = String::from("query Made");
        if !self.definitions.is_empty() {
            write!(query, "({})", self.definitions.join(", ")).expect("a string takes all");
        }
        write!(query, " {selection} {}", self.fragments.join(" ")).expect("a string takes all");
        Case {
            title: "made up".to_owned(),
            query,
            variables: std::mem::take(&mut self.variables),
            ..Case::default()
        }
    }

    /// A number from 0 to `bound - 1`, by splitmix64 of Sebastiano Vigna.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = bits ^ (bits >> 31);
        usize::try_from(bits % bound.max(1) as u64).expect("a rest is below the bound")
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn selection(&mut self, ty: &str, depth: usize) -> String {
        let schema = self.schema;
        let mut parts = Vec::new();
        let fields: Vec<&Field> = schema.types[ty]
            .fields
            .iter()
            .filter(|field| !field.name.starts_with('_'))
            .filter(|field| depth > 0 || !self.is_composite(field))
            .collect();
        for _ in 0..=self.below(4) {
            if !fields.is_empty() {
                // The depth ends composite fields first. At 0, only leaves remain.
                let field = fields[self.below(fields.len())];
                parts.push(self.field(ty, field, depth));
            }
        }
        let kind = schema.types[ty].kind;
        if matches!(kind, Kind::Interface | Kind::Union) && depth > 0 {
            let conditions: Vec<&String> = schema
                .types
                .iter()
                .filter(|(name, definition)| {
                    definition.kind.is_composite()
                        && !name.starts_with('_')
                        && schema.overlap(ty, name)
                })
                .map(|(name, _)| name)
                .collect();
            for _ in 0..=self.below(3) {
                let condition = conditions[self.below(conditions.len())];
                let is_object = schema.kind(condition) == Some(Kind::Object);
                // The planner finds no plan for `... on SomeUnion @include(if: $v)`.
                let directive = if is_object {
                    self.directive()
                } else {
                    String::new()
                };
                let inner = self.selection(condition, depth - 1);
                parts.push(format!("... on {condition}{directive} {inner}"));
            }
        }
        if parts.is_empty() || self.one_in(4) {
            parts.push("__typename".to_owned());
        }
        if self.defers && self.one_in(3) {
            self.defer(&mut parts);
        }
        let selection = format!("{{ {} }}", parts.join(" "));
        // One in eight becomes a named fragment, so that these are also tested.
        if self.one_in(8) {
            self.count += 1;
            let name = format!("Part{}", self.count);
            self.fragments
                .push(format!("fragment {name} on {ty} {selection}"));
            // Not random, so that all other choices stay the same.
            let later = if self.count.is_multiple_of(3) {
                " @defer"
            } else {
                ""
            };
            return format!("{{ ...{name}{later} }}");
        }
        selection
    }

    /// Moves the last parts of a selection into a deferred fragment, or copies them into it.
    fn defer(&mut self, parts: &mut Vec<String>) {
        let kept = self.below(parts.len());
        let tail = parts[kept..].join(" ");
        if !self.one_in(4) {
            parts.truncate(kept);
        }
        self.count += 1;
        let condition = if self.one_in(3) {
            let is_true = self.one_in(2).into();
            format!(", if: {}", self.variable("Boolean!", is_true))
        } else {
            String::new()
        };
        let number = self.count;
        parts.push(format!(
            "... @defer(label: \"d{number}\"{condition}) {{ {tail} }}"
        ));
    }

    fn is_composite(&self, field: &Field) -> bool {
        self.schema
            .kind(named(&field.ty))
            .is_some_and(Kind::is_composite)
    }

    fn field(&mut self, parent: &str, field: &Field, depth: usize) -> String {
        let arguments = self.arguments(field);
        let directive = self.directive();
        let kind = self.schema.kind(named(&field.ty));
        // The planner compares the types of key fields only within one selection. It does not compare a
        // selection under a condition with one without.
        let is_apart = !directive.is_empty() && matches!(kind, Some(Kind::Interface | Kind::Union));
        let mut text = String::new();
        if !arguments.is_empty() || is_apart || self.one_in(8) {
            self.count += 1;
            write!(text, "key{}: ", self.count).expect("a string takes all");
        } else if self.ambiguous.contains(&field.name) {
            write!(text, "{}_{parent}: ", field.name).expect("a string takes all");
        }
        text.push_str(&field.name);
        text.push_str(&arguments);
        text.push_str(&directive);
        if self.is_composite(field) {
            text.push(' ');
            text.push_str(&self.selection(named(&field.ty), depth - 1));
        }
        text
    }

    fn directive(&mut self) -> String {
        let name = match self.below(24) {
            0 => "include",
            1 => "skip",
            _ => return String::new(),
        };
        let is_true = self.one_in(2);
        if self.one_in(2) {
            return format!(" @{name}(if: {is_true})");
        }
        let variable = self.variable("Boolean!", is_true.into());
        format!(" @{name}(if: {variable})")
    }

    fn variable(&mut self, ty: &str, value: Value) -> String {
        let name = format!("v{}", self.definitions.len());
        self.definitions.push(format!("${name}: {ty}"));
        self.variables.insert(name.clone(), value);
        format!("${name}")
    }

    fn arguments(&mut self, field: &Field) -> String {
        let mut parts = Vec::new();
        for input in &field.arguments {
            let is_needed = !input.ty.nullable && input.default.is_none();
            if !is_needed && self.one_in(2) {
                continue;
            }
            let value = self.value(&input.name, &input.ty, 3);
            let text = if self.one_in(2) {
                self.variable(&input.ty.to_string(), value)
            } else {
                self.literal(&input.ty, &value)
            };
            parts.push(format!("{}: {text}", input.name));
        }
        if parts.is_empty() {
            String::new()
        } else {
            format!("({})", parts.join(", "))
        }
    }

    fn value(&mut self, name: &str, ty: &Type, depth: usize) -> Value {
        if ty.nullable && (depth == 0 || self.one_in(8)) {
            return Value::Null;
        }
        let inner = match &ty.base {
            BaseType::List(inner) => {
                let length = self.below(3);
                return (0..length)
                    .map(|_| self.value(name, inner, depth))
                    .collect();
            }
            BaseType::Named(inner) => inner.as_str(),
        };
        let definition = &self.schema.types[inner];
        match (definition.kind, inner) {
            (Kind::Enum, _) => {
                let values = &definition.values;
                values[self.below(values.len())].as_str().into()
            }
            (Kind::Input, _) => {
                let mut object = Map::new();
                for input in &definition.inputs {
                    let value = self.value(&input.name, &input.ty, depth - 1);
                    object.insert(input.name.clone(), value);
                }
                object.into()
            }
            (_, "Int" | "Float") => self.below(10).into(),
            (_, "Boolean") => self.one_in(2).into(),
            _ => {
                let samples = self.world.samples(name);
                // A value that no object has, with characters that must be escaped.
                let fallback = || Value::from("none \"of\" them\n\u{e9}");
                if samples.is_empty() || self.one_in(8) {
                    fallback()
                } else {
                    samples[self.below(samples.len())].clone()
                }
            }
        }
    }

    fn literal(&self, ty: &Type, value: &Value) -> String {
        match (&ty.base, value) {
            (BaseType::List(inner), Value::Array(values)) => {
                let parts: Vec<String> = values
                    .iter()
                    .map(|value| self.literal(inner, value))
                    .collect();
                format!("[{}]", parts.join(", "))
            }
            (BaseType::Named(name), Value::String(text))
                if self.schema.kind(name) == Some(Kind::Enum) =>
            {
                text.clone()
            }
            (BaseType::Named(name), Value::Object(members)) => {
                let inputs = &self.schema.types[name.as_str()].inputs;
                let parts = inputs.iter().filter_map(|input| {
                    let value = members.get(&input.name)?;
                    Some(format!(
                        "{}: {}",
                        input.name,
                        self.literal(&input.ty, value)
                    ))
                });
                format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
            }
            (_, value) => value.to_string(),
        }
    }
}
