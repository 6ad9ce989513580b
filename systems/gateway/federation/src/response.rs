//! Writes the client's `data` from the merged answers.
//!
//! Straight into the output: what turns out to be null where null is not allowed is taken
//! back to the nearest member that may be null, by cutting the output there (GraphQL
//! specification, section 6.4.4). Values that the schema does not allow (an `Int` that is a
//! text, an enum value that clients may not see) count as null, with an error.

use crate::checked::Checked;
use crate::error::{GraphqlError, PathSegment};
use crate::execute::ERRORS_MAX;
use crate::introspection;
use crate::projection::{Leaf, Member, Shape, What};
use crate::store::{ObjectId, Store, Value};
use crate::variables::{IntText, Variables, int_of};

/// The value had to be null, and its place does not allow that.
struct Nulled;

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a [u8]),
    Index(usize),
}

/// Writes one response's data.
pub(crate) struct Writer<'a> {
    pub(crate) checked: &'a Checked,
    pub(crate) variables: &'a Variables,
    pub(crate) store: &'a Store,
    pub(crate) presences: &'a [bool],
    pub(crate) out: Vec<u8>,
    /// What the schema did not allow.
    pub(crate) errors: Vec<GraphqlError>,
    /// How many errors there were beyond [`ERRORS_MAX`].
    pub(crate) left_out: usize,
    path: Vec<Step<'a>>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        checked: &'a Checked,
        variables: &'a Variables,
        store: &'a Store,
        presences: &'a [bool],
        out: Vec<u8>,
    ) -> Self {
        Writer {
            checked,
            variables,
            store,
            presences,
            out,
            errors: Vec::new(),
            left_out: 0,
            path: Vec::new(),
        }
    }

    /// Writes the object at the root, or null.
    pub(crate) fn root(&mut self, root: ObjectId) {
        // A value's text lies behind its start, so cutting there takes back the value and
        // everything inside of it.
        let start = self.out.len();
        if self.members(self.checked.projection.root, root).is_err() {
            self.out.truncate(start);
            self.out.extend_from_slice(b"null");
        }
    }

    fn members(&mut self, index: usize, object: ObjectId) -> Result<(), Nulled> {
        let projection = &self.checked.projection;
        let Some(members) = projection.members.get(index) else {
            return Err(Nulled);
        };
        self.out.push(b'{');
        let mut separate = false;
        // Subgraphs answer in the order they were asked, so each search starts behind the last hit
        // and reads the object once.
        let mut hint = 0;
        for member in members {
            if let Some(presence) = member.presence
                && !self.presences.get(presence).is_some_and(|it| *it)
            {
                continue;
            }
            if separate {
                self.out.push(b',');
            }
            separate = true;
            self.out.extend_from_slice(&member.opener);
            match &member.what {
                What::Text(text) => self.out.extend_from_slice(text),
                // Told with the operation, not again for each object.
                What::Denied if member.non_null => return Err(Nulled),
                What::Denied => self.out.extend_from_slice(b"null"),
                What::Value(shape) => match &member.introspection {
                    Some(asked) => introspection::write_root(self, asked, shape),
                    None => {
                        let value = self.store.get_hinted(object, &member.key, &mut hint);
                        self.member(member, shape, value.unwrap_or(Value::Null))?;
                    }
                },
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn member(&mut self, member: &'a Member, shape: &'a Shape, value: Value) -> Result<(), Nulled> {
        self.path.push(Step::Key(&member.key));
        let outcome = self.value(shape, member.non_null, value, &member.coordinate);
        self.path.pop();
        outcome
    }

    fn value(
        &mut self,
        shape: &'a Shape,
        non_null: bool,
        value: Value,
        coordinate: &str,
    ) -> Result<(), Nulled> {
        if value == Value::Null {
            if non_null {
                self.report(format!(
                    "Cannot return null for non-nullable field {coordinate}."
                ));
                return Err(Nulled);
            }
            self.out.extend_from_slice(b"null");
            return Ok(());
        }
        // Where a null is allowed, the output is cut back to here; what `members` and `list` wrote
        // up to an error goes with it.
        let start = self.out.len();
        let written = match (shape, value) {
            (Shape::Leaf(leaf), _) => self.leaf(*leaf, value, coordinate),
            (Shape::Object(selection), Value::Object(object)) => self.object(*selection, object),
            (
                Shape::List {
                    item,
                    item_non_null,
                },
                Value::List(list),
            ) => self.list(item, *item_non_null, list, coordinate),
            (Shape::Object(_), _) => self.unfit("an object", coordinate),
            (Shape::List { .. }, _) => self.unfit("a list", coordinate),
        };
        match written {
            Err(Nulled) if !non_null => {
                self.out.truncate(start);
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            written => written,
        }
    }

    fn list(
        &mut self,
        item: &'a Shape,
        item_non_null: bool,
        list: crate::store::Slice,
        coordinate: &str,
    ) -> Result<(), Nulled> {
        // A copy of the reference, because the loop needs `self` mutably.
        let store = self.store;
        self.out.push(b'[');
        for (index, value) in store.items(list).iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.path.push(Step::Index(index));
            let written = self.value(item, item_non_null, *value, coordinate);
            self.path.pop();
            written?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, selection: usize, object: ObjectId) -> Result<(), Nulled> {
        let checked = self.checked;
        let Some(per_type) = checked.projection.selections.get(selection) else {
            return Err(Nulled);
        };
        if per_type.by_type.is_empty() {
            return self.members(per_type.otherwise, object);
        }
        let Some(Value::String(name)) = self.store.get(object, b"__typename") else {
            return self.members(per_type.otherwise, object);
        };
        // Searched in a row: an abstract type has few objects in most schemas.
        let name = self.store.text(name);
        for (known, members) in &per_type.by_type {
            if **known == *name {
                return self.members(*members, object);
            }
        }
        if checked.schema.is_object(name) {
            // An object that clients may not see, or one of another interface.
            self.report(
                "a subgraph answered with an object of a type that is not allowed here".to_owned(),
            );
            return Err(Nulled);
        }
        // The name of an interface, from the subgraph of an interface object, which knows no other.
        self.members(per_type.otherwise, object)
    }

    fn leaf(&mut self, leaf: Leaf, value: Value, coordinate: &str) -> Result<(), Nulled> {
        let fits = match (leaf, value) {
            (Leaf::Any, _)
            | (Leaf::String | Leaf::Id, Value::String(_))
            | (Leaf::Boolean, Value::Bool(_))
            | (Leaf::Float, Value::Number(_)) => true,
            (Leaf::Int, Value::Number(text)) => int_of(self.store.text(text)) == IntText::Fits,
            // Identifiers are texts; many subgraphs answer with their numbers.
            (Leaf::Id, Value::Number(text)) => int_of(self.store.text(text)) != IntText::Fraction,
            (Leaf::Enum(index), Value::String(text)) => {
                let text = self.store.text(text);
                let kind = self.checked.projection.enums.get(index);
                kind.is_some_and(|kind| kind.values.iter().any(|known| **known == *text))
            }
            _ => false,
        };
        if fits {
            self.store.write(value, &mut self.out);
            return Ok(());
        }
        let wanted = match leaf {
            Leaf::Int => "Int".to_owned(),
            Leaf::Float => "Float".to_owned(),
            Leaf::String => "String".to_owned(),
            Leaf::Boolean => "Boolean".to_owned(),
            Leaf::Id => "ID".to_owned(),
            Leaf::Any => "a scalar".to_owned(),
            Leaf::Enum(index) => match self.checked.projection.enums.get(index) {
                Some(kind) => format!("a value of the enum {}", kind.name),
                None => "an enum".to_owned(),
            },
        };
        self.unfit(&wanted, coordinate)
    }

    fn unfit(&mut self, wanted: &str, coordinate: &str) -> Result<(), Nulled> {
        self.report(format!(
            "a subgraph answered {coordinate} with a value that is not {wanted}"
        ));
        Err(Nulled)
    }

    fn report(&mut self, message: String) {
        // Counted per response: one list of a million wrong values must not become a million
        // errors.
        if self.errors.len() >= ERRORS_MAX {
            self.left_out += 1;
            return;
        }
        let path = self.path.iter().map(|step| match step {
            Step::Key(key) => PathSegment::Key(String::from_utf8_lossy(key).into_owned()),
            Step::Index(index) => PathSegment::Index(*index),
        });
        let mut error = GraphqlError::new(message, "RESPONSE_VALIDATION_FAILED");
        error.path = path.collect();
        self.errors.push(error);
    }
}

/// Which conditions hold for these variables.
pub(crate) fn presences(checked: &Checked, variables: &Variables) -> Vec<bool> {
    checked
        .projection
        .presences
        .iter()
        .map(|clauses| {
            clauses.iter().any(|clause| {
                clause
                    .iter()
                    .all(|(variable, wanted)| checked.truth(*variable, variables) == *wanted)
            })
        })
        .collect()
}
