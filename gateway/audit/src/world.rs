//! The data of a corpus, and the rules for the values of fields.
//!
//! `objects` contains all objects that can be referred to, by `Type:label`. `roots` contains the fields of
//! the root types. A value is JSON. These objects stand for values that plain data cannot express:
//!
//! | value | meaning |
//! |---|---|
//! | `{"$ref": "User:1"}` | that object |
//! | `{"$find": "User"}` | the first object of that type with fields equal to the arguments |
//! | `{"$filter": "User"}` | all such objects |
//! | `{"$arguments": true}` | the arguments as JSON text, after coercion |
//! | `{"$count": true}` | 1, 2, 3…: the number of reads of such a field from this data |
//! | `{"$of": ["price", "size.width"]}` | text made of other fields, which `@requires` must provide |
//! | `{"$in": {"users": 1, "*": 2}}` | another value in each subgraph |
//! | `{"$error": "text", "extensions": {}}` | the field fails |

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The data of one corpus.
#[derive(Debug, Default)]
pub struct World {
    objects: Vec<(String, String, Map<String, Value>)>,
    roots: Map<String, Value>,
    /// The possible object types of each abstract type, from all subgraphs.
    possible: BTreeMap<String, BTreeSet<String>>,
    count: Cell<i64>,
}

/// An object during the execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// The object type, even if a subgraph uses another name.
    pub(crate) concrete: String,
    pub(crate) fields: Map<String, Value>,
    /// The fields that the caller sent.
    pub(crate) representation: Map<String, Value>,
}

/// Reason why a field has no value.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) extensions: Map<String, Value>,
}

impl World {
    /// Reads `{"objects": {…}, "roots": {"Query": {…}}}`.
    ///
    /// # Errors
    /// If the text is not JSON of that form.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut file: BTreeMap<String, BTreeMap<String, Map<String, Value>>> =
            serde_json::from_str(text)?;
        let objects = file.remove("objects").unwrap_or_default();
        let objects = objects.into_iter().map(|(label, fields)| {
            let concrete = label.split(':').next().unwrap_or_default().to_owned();
            (label, concrete, fields)
        });
        let roots = file.remove("roots").unwrap_or_default();
        Ok(Self {
            objects: objects.collect(),
            roots: roots
                .into_iter()
                .map(|(name, fields)| (name, fields.into()))
                .collect(),
            ..Self::default()
        })
    }

    /// Adds the abstract types of a schema with their objects.
    pub fn learn(&mut self, schema: &crate::Schema) {
        for (name, objects) in &schema.possible {
            self.possible
                .entry(name.clone())
                .or_default()
                .extend(objects.iter().cloned());
        }
    }

    /// Plain values of all fields with this name.
    pub(crate) fn samples(&self, name: &str) -> Vec<Value> {
        let fields = self
            .objects
            .iter()
            .filter_map(|(.., fields)| fields.get(name));
        fields
            .filter(|value| value.is_string() || value.is_number())
            .cloned()
            .collect()
    }

    pub(crate) fn root(&self, name: &str) -> Node {
        Node {
            concrete: name.to_owned(),
            fields: self
                .roots
                .get(name)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            ..Node::default()
        }
    }

    /// The object for a value. An object without a name has the declared type.
    pub(crate) fn node(&self, value: &Value, declared: &str) -> Option<Node> {
        let object = value.as_object()?;
        if let Some(label) = object.get("$ref").and_then(Value::as_str) {
            let (_, concrete, fields) = self.objects.iter().find(|(known, ..)| known == label)?;
            let (concrete, fields) = (concrete.clone(), fields.clone());
            return Some(Node {
                concrete,
                fields,
                ..Node::default()
            });
        }
        let concrete = object
            .get("__typename")
            .and_then(Value::as_str)
            .unwrap_or(declared);
        Some(Node {
            concrete: concrete.to_owned(),
            fields: object.clone(),
            ..Node::default()
        })
    }

    /// True if the object type is `ty`, or if it implements `ty`.
    fn is_of(&self, concrete: &str, ty: &str) -> bool {
        concrete == ty
            || self
                .possible
                .get(ty)
                .is_some_and(|names| names.contains(concrete))
    }

    /// All objects of a type or of an implementing type.
    pub(crate) fn all(&self, ty: &str) -> impl Iterator<Item = Node> {
        self.objects
            .iter()
            .filter(move |(_, concrete, _)| self.is_of(concrete, ty))
            .map(|(_, concrete, fields)| Node {
                concrete: concrete.clone(),
                fields: fields.clone(),
                ..Node::default()
            })
    }

    /// The value of a field: plain data, references and lists of them.
    pub(crate) fn value(
        &self,
        node: &Node,
        name: &str,
        arguments: &Map<String, Value>,
        server: &str,
    ) -> Result<Value, Failure> {
        let value = node.fields.get(name).cloned().unwrap_or_default();
        self.special(value, node, arguments, server)
    }

    fn special(
        &self,
        value: Value,
        node: &Node,
        arguments: &Map<String, Value>,
        server: &str,
    ) -> Result<Value, Failure> {
        // At most one such key is expected. The first decides.
        let Some((name, operand)) = value
            .as_object()
            .and_then(|object| object.iter().find(|(name, _)| name.starts_with('$')))
        else {
            return Ok(value);
        };
        let text = operand.as_str().unwrap_or_default();
        match name.as_str() {
            "$find" => Ok(self.matching(text, arguments).next().unwrap_or_default()),
            "$filter" => Ok(self.matching(text, arguments).collect()),
            "$arguments" => Ok(Value::Object(arguments.clone()).to_string().into()),
            "$count" => {
                self.count.set(self.count.get() + 1);
                Ok(self.count.get().into())
            }
            "$of" => self.made_of(operand, node, server).map(Value::from),
            "$in" => {
                let inner = operand.get(server).or_else(|| operand.get("*")).cloned();
                self.special(inner.unwrap_or_default(), node, arguments, server)
            }
            "$error" => Err(Failure {
                message: text.to_owned(),
                extensions: value["extensions"].as_object().cloned().unwrap_or_default(),
            }),
            _ => Ok(value),
        }
    }

    fn matching(&self, ty: &str, arguments: &Map<String, Value>) -> impl Iterator<Item = Value> {
        self.objects
            .iter()
            .filter(move |(_, concrete, fields)| {
                self.is_of(concrete, ty)
                    && arguments.iter().all(|(name, value)| {
                        // An omitted argument matches everything.
                        value.is_null()
                            || fields.get(name).is_some_and(|known| is_same(known, value))
                    })
            })
            .map(|(label, ..)| serde_json::json!({ "$ref": label }))
    }

    /// A text such as `price=5 size.width=[1,2]`.
    fn made_of(&self, paths: &Value, node: &Node, server: &str) -> Result<String, Failure> {
        let mut parts = Vec::new();
        for path in paths
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let steps: Vec<&str> = path.split('.').collect();
            let found = self.along(node, &steps, server).ok_or_else(|| Failure {
                message: format!("`{path}` is required and did not come"),
                extensions: Map::new(),
            })?;
            parts.push(format!("{path}={found}"));
        }
        Ok(parts.join(" "))
    }

    /// Reads the value at a path. A subgraph reads only the fields that the caller sent.
    fn along(&self, node: &Node, steps: &[&str], server: &str) -> Option<Value> {
        let (first, rest) = steps.split_first()?;
        let value = match node.representation.get(*first) {
            Some(value) => value.clone(),
            // The oracle may compute the value, but a subgraph must receive it from the caller. `$of` exists
            // to test this.
            None if server == ORACLE => self.value(node, first, &Map::new(), server).ok()?,
            None => return None,
        };
        self.below(&value, rest, server)
    }

    fn below(&self, value: &Value, steps: &[&str], server: &str) -> Option<Value> {
        if steps.is_empty() || value.is_null() {
            return Some(value.clone());
        }
        if let Some(values) = value.as_array() {
            let found: Option<Vec<Value>> = values
                .iter()
                .map(|value| self.below(value, steps, server))
                .collect();
            return found.map(Value::from);
        }
        let mut node = self.node(value, "")?;
        // Below a representation, a subgraph has only the fields that the caller sent.
        if server != ORACLE {
            node.representation.clone_from(&node.fields);
        } else if !node.fields.contains_key(steps[0]) {
            // A fragment on another type selected it.
            return Some(Value::Null);
        }
        self.along(&node, steps, server)
    }

    /// True if a representation identifies this object by these key fields.
    pub(crate) fn is_named(
        &self,
        node: &Node,
        key: &crate::fieldset::FieldSet,
        named: &Map<String, Value>,
        server: &str,
    ) -> bool {
        key.0.iter().all(|(name, below)| {
            // A type with this key has a single entity. The caller compares only objects of the type.
            if name == "__typename" {
                return true;
            }
            let Ok(value) = self.value(node, name, &Map::new(), server) else {
                return false;
            };
            self.is_equal(
                &value,
                below,
                named.get(name).unwrap_or(&Value::Null),
                server,
            )
        })
    }

    fn is_equal(
        &self,
        value: &Value,
        below: &crate::fieldset::FieldSet,
        named: &Value,
        server: &str,
    ) -> bool {
        match (value, named) {
            (Value::Array(values), Value::Array(named)) => {
                values.len() == named.len()
                    && values
                        .iter()
                        .zip(named)
                        .all(|(value, named)| self.is_equal(value, below, named, server))
            }
            (Value::Object(_), Value::Object(named)) => self
                .node(value, "")
                .is_some_and(|node| self.is_named(&node, below, named, server)),
            _ => is_same(value, named),
        }
    }
}

/// The name of the single server with all the data.
pub(crate) const ORACLE: &str = "oracle";

/// True if two values are equal. A number equals a string with this number, because an ID can be either.
fn is_same(one: &Value, other: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    text(one) == text(other)
}
