//! A federation subgraph: the interpreter with `_entities`, by the subgraph specification of Federation.

use serde_json::{Map, Value};

use crate::execute::{self, Answer, REPRESENTATION, Run};
use crate::schema::{Definition, Kind, Schema, SchemaError};
use crate::world::{Failure, World};

/// One server with a part of the data.
#[derive(Debug)]
pub struct Subgraph {
    name: String,
    schema: Schema,
}

/// The federation part of every subgraph's schema.
const FEDERATION: &str =
    "scalar _Any type Query { _entities(representations: [_Any!]!): [_Entity]! }";

impl Subgraph {
    /// Reads a subgraph's SDL.
    ///
    /// # Errors
    /// If the SDL is invalid.
    pub fn parse(name: &str, sdl: &str) -> Result<Self, SchemaError> {
        let mut schema = Schema::of_subgraph(sdl)?;
        let federation = Schema::of_subgraph(FEDERATION)?;
        let keyed = |definition: &Definition| !definition.keys.is_empty();
        let mut entities: Vec<String> = Vec::new();
        for (name, definition) in &schema.types {
            match definition.kind {
                Kind::Object if keyed(definition) => entities.push(name.clone()),
                // An entity interface. Its implementing types can be fetched through it.
                Kind::Interface if keyed(definition) => {
                    entities.extend(schema.possible.get(name).into_iter().flatten().cloned());
                }
                _ => {}
            }
        }
        let root = schema.query.clone();
        if !entities.is_empty() {
            schema
                .types
                .insert("_Any".to_owned(), Definition::default());
            let union = Definition {
                kind: Kind::Union,
                members: entities,
                ..Definition::default()
            };
            schema.types.insert("_Entity".to_owned(), union);
            let fields = federation.types["Query"].fields.iter().cloned();
            schema.types.entry(root).or_default().fields.extend(fields);
            // Computed again, because `_Entity` is a new union.
            schema.find_possible();
        }
        Ok(Self {
            name: name.to_owned(),
            schema,
        })
    }

    /// The name in the supergraph.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema, including `_entities`.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Executes the request with this JSON body.
    #[must_use]
    pub fn answer(&self, world: &World, body: &[u8]) -> Answer {
        // A body that is not JSON has no query. The parser then refuses the empty document.
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let query = request["query"].as_str().unwrap_or_default();
        let none = Map::new();
        let variables = request["variables"].as_object().unwrap_or(&none);
        let operation_name = request["operationName"].as_str();
        execute::answer(
            &self.schema,
            world,
            &self.name,
            query,
            operation_name,
            variables,
        )
    }
}

impl Run<'_> {
    /// The values of `_entities`: references with the caller's representations.
    pub(crate) fn entities(&self, arguments: &Map<String, Value>) -> Result<Value, Failure> {
        let representations = arguments["representations"].as_array();
        let entities = representations
            .into_iter()
            .flatten()
            .map(|said| self.entity(said));
        Ok(entities
            .map(|entity| {
                // An invalid representation is an error at its own place.
                entity.unwrap_or_else(|message| serde_json::json!({ "$error": message }))
            })
            .collect())
    }

    fn entity(&self, said: &Value) -> Result<Value, String> {
        let said = said.as_object().ok_or("a representation is an object")?;
        let ty = said.get("__typename").and_then(Value::as_str);
        let ty = ty.ok_or("a representation has `__typename`")?;
        let definition = self
            .schema
            .types
            .get(ty)
            .ok_or_else(|| format!("`{ty}` is not known"))?;
        let mut keys = definition
            // The first complete key of the representation. A gateway may send several keys.
            .keys
            .iter()
            .filter(|key| key.is_resolvable && key.fields.is_in(said));
        let key = keys
            .next()
            .ok_or_else(|| format!("{} names no `{ty}`", Value::Object(said.clone())))?;
        let found = self
            .world
            .all(ty)
            .find(|node| self.world.is_named(node, &key.fields, said, self.server));
        // An entity that does not exist is null, as the subgraph specification allows.
        let Some(node) = found else {
            return Ok(Value::Null);
        };
        let mut fields = node.fields;
        // The entity keeps its concrete type and its representation, for fields that are external here.
        fields.insert("__typename".to_owned(), node.concrete.into());
        fields.insert(REPRESENTATION.to_owned(), Value::Object(said.clone()));
        Ok(Value::Object(fields))
    }
}
