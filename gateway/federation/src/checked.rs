//! A validated operation. The sources of its fields are not decided yet.
//!
//! The federation plans it over subgraphs. A gateway of merged schemas routes its root fields. Both need its
//! variables and the members of its response.

use std::sync::Arc;

use crate::error::GraphqlError;
use crate::fetch::OperationKind;
use crate::limits::Extent;
use crate::projection::{Clause, Member, Projection, Shape, What};
use crate::schema::Schema;
use crate::variables::{self, Declared, Variables};

/// An operation that is valid for a schema.
#[derive(Debug)]
pub struct Checked {
    pub(crate) schema: Arc<Schema>,
    pub(crate) kind: OperationKind,
    pub(crate) operation_name: Option<String>,
    /// Equal for operations that differ only in literals, aliases and order.
    pub(crate) operation_id: String,
    pub(crate) declared: Vec<Declared>,
    pub(crate) projection: Projection,
    pub(crate) extent: Extent,
    pub(crate) exceeded: Vec<GraphqlError>,
}

/// A member of the response's root, or of an object in the response.
#[derive(Debug, Clone, Copy)]
pub struct AnswerMember<'a> {
    member: &'a Member,
}

/// Shape of a value in the response.
#[derive(Debug, Clone, Copy)]
pub struct AnswerShape<'a> {
    shape: &'a Shape,
}

impl<'a> AnswerShape<'a> {
    /// The shape of a list's items, and true if an item must not be null. `None` if the value is not a list.
    #[must_use]
    pub fn item(self) -> Option<(AnswerShape<'a>, bool)> {
        match self.shape {
            Shape::List {
                item,
                item_non_null,
            } => Some((AnswerShape { shape: item }, *item_non_null)),
            _ => None,
        }
    }

    /// True if the value is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        matches!(self.shape, Shape::Object(_))
    }
}

/// Source of a member's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberSource<'a> {
    /// The field `__typename` with this JSON value.
    Typename(&'a [u8]),
    /// The field `__schema` or `__type`. See [`Checked::write_introspection`].
    Introspection,
    /// A field of the schema.
    Field,
}

impl<'a> AnswerMember<'a> {
    /// The response key, without quotes.
    #[must_use]
    pub fn key(self) -> &'a str {
        std::str::from_utf8(&self.member.key)
            .expect("keys come from a parsed document, which is text")
    }

    /// The response key as JSON, with its colon.
    #[must_use]
    pub fn opener(self) -> &'a [u8] {
        &self.member.opener
    }

    /// Index into [`Checked::presences`] of the member's condition. `None` if the member is always present.
    #[must_use]
    pub fn presence(self) -> Option<usize> {
        self.member.presence
    }

    /// True if the schema does not allow null here.
    #[must_use]
    pub fn is_non_null(self) -> bool {
        self.member.non_null
    }

    /// The shape of the value. `None` for `__typename`.
    #[must_use]
    pub fn shape(self) -> Option<AnswerShape<'a>> {
        match &self.member.what {
            What::Value(shape) => Some(AnswerShape { shape }),
            What::Text(_) | What::Denied | What::Deferred(_) => None,
        }
    }

    /// The name of the field, without its alias.
    #[must_use]
    pub fn field(self) -> &'a str {
        let (_, field) = self
            .member
            .coordinate
            .split_once('.')
            .expect("a coordinate is `Type.field`, and GraphQL names have no dot");
        field
    }

    /// The source of the member's value.
    #[must_use]
    pub fn source(self) -> MemberSource<'a> {
        match &self.member.what {
            What::Text(text) => MemberSource::Typename(text),
            What::Value(_) if self.member.introspection.is_some() => MemberSource::Introspection,
            What::Value(_) | What::Denied | What::Deferred(_) => MemberSource::Field,
        }
    }
}

impl Checked {
    /// The kind of the operation: query, mutation or subscription.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The name of the chosen operation, if it has one.
    #[must_use]
    pub fn operation_name(&self) -> Option<&str> {
        self.operation_name.as_deref()
    }

    /// The SHA-1 digest of the operation's signature, as in Apollo's usage reports. 40 hexadecimal digits.
    #[must_use]
    pub fn operation_id(&self) -> &str {
        &self.operation_id
    }

    /// The measured size of the operation.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The limits that the operation exceeds, although it is accepted
    /// ([`OperationLimits::warn_only`](crate::OperationLimits::warn_only)).
    #[must_use]
    pub fn exceeded(&self) -> &[GraphqlError] {
        &self.exceeded
    }

    /// Position of a variable among the declared variables of the operation.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<usize> {
        self.declared.iter().position(|it| it.name == name)
    }

    /// Checks the variables of a request.
    ///
    /// `raw` is the JSON text of the request's `variables`. `None` and `null` stand for no variables.
    ///
    /// # Errors
    /// `VALIDATION_INVALID_TYPE_VARIABLE` for each variable that does not fit its type,
    /// `INVALID_GRAPHQL_REQUEST` if `raw` is not an object.
    pub fn coerce(&self, raw: Option<&[u8]>) -> Result<Variables, Vec<GraphqlError>> {
        variables::coerce(&self.declared, raw, &self.schema)
    }

    /// The members of the response's root, in the client's order.
    pub fn root_members(&self) -> impl Iterator<Item = AnswerMember<'_>> {
        self.members(self.projection.root)
    }

    /// The members of an object of this shape. Empty if the shape is not an object, or if it allows several
    /// object types.
    pub fn members_of<'a>(
        &'a self,
        shape: AnswerShape<'a>,
    ) -> impl Iterator<Item = AnswerMember<'a>> {
        let index = match shape.shape {
            Shape::Object(selection) => self.projection.selections.get(*selection),
            _ => None,
        };
        // An abstract type has one list of members for each object type. Without a value, the list cannot be
        // chosen.
        let index = index.filter(|per_type| per_type.by_type.is_empty());
        let members = index.map(|per_type| self.members(per_type.otherwise));
        members.into_iter().flatten()
    }

    fn members(&self, index: usize) -> impl Iterator<Item = AnswerMember<'_>> {
        let members = self.projection.members.get(index);
        members
            .into_iter()
            .flatten()
            // A response in one piece ignores the markers of deferred fragments.
            .filter(|member| !matches!(member.what, What::Deferred(_)))
            .map(|member| AnswerMember { member })
    }

    /// Evaluates all conditions for these variables. Empty if no member has a condition.
    #[must_use]
    pub fn presences(&self, variables: &Variables) -> Vec<bool> {
        let presences = self.projection.presences.iter();
        presences
            .map(|clauses| clauses.iter().any(|clause| self.holds(clause, variables)))
            .collect()
    }

    /// True if all conditions of a clause hold for these variables.
    pub(crate) fn holds(&self, clause: &Clause, variables: &Variables) -> bool {
        let mut conditions = clause.conditions.iter();
        conditions.all(|(variable, wanted)| self.truth(*variable, variables) == *wanted)
    }

    /// True if some members have conditions.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        !self.projection.presences.is_empty()
    }

    /// The value of a Boolean variable. A variable without a value and a default counts as false. Validation
    /// allows this only for nullable variables.
    pub(crate) fn truth(&self, index: usize, variables: &Variables) -> bool {
        match variables.json(index) {
            Some(json) => json == b"true",
            None => self
                .declared
                .get(index)
                .and_then(|it| it.boolean_default)
                .unwrap_or(false),
        }
    }
}
