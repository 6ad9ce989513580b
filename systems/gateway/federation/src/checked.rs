//! A validated operation, before it is decided which source answers which field.
//!
//! Federation plans it over subgraphs. A gateway of merged schemas routes its root fields. Both
//! need the variables that it declares and the members of its answer.

use std::sync::Arc;

use crate::error::GraphqlError;
use crate::fetch::OperationKind;
use crate::projection::{Clause, Member, Projection, Shape, What};
use crate::schema::Schema;
use crate::variables::{self, Declared, Variables};

/// An operation that fits a schema.
#[derive(Debug)]
pub struct Checked {
    pub(crate) schema: Arc<Schema>,
    pub(crate) kind: OperationKind,
    pub(crate) operation_name: Option<String>,
    pub(crate) declared: Vec<Declared>,
    pub(crate) projection: Projection,
    pub(crate) exceeded: Vec<GraphqlError>,
}

/// A member of the answer's root, or of an object in it.
#[derive(Debug, Clone, Copy)]
pub struct AnswerMember<'a> {
    member: &'a Member,
}

/// What a value of the answer looks like.
#[derive(Debug, Clone, Copy)]
pub struct AnswerShape<'a> {
    shape: &'a Shape,
}

impl<'a> AnswerShape<'a> {
    /// For a list: the shape of its items, and whether an item must not be null.
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

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        matches!(self.shape, Shape::Object(_))
    }
}

/// What a member is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberSource<'a> {
    /// `__typename`: this JSON.
    Typename(&'a [u8]),
    /// `__schema` or `__type`; see [`Checked::write_introspection`].
    Introspection,
    /// A field of the schema.
    Field,
}

impl<'a> AnswerMember<'a> {
    /// The response key.
    #[must_use]
    pub fn key(self) -> &'a str {
        std::str::from_utf8(&self.member.key)
            .expect("keys come from a parsed document, which is text")
    }

    /// The key as JSON, with its colon.
    #[must_use]
    pub fn opener(self) -> &'a [u8] {
        &self.member.opener
    }

    /// Which of [`Checked::presences`] decides whether it is there; `None` when it always is.
    #[must_use]
    pub fn presence(self) -> Option<usize> {
        self.member.presence
    }

    /// Whether the schema allows no null here.
    #[must_use]
    pub fn is_non_null(self) -> bool {
        self.member.non_null
    }

    /// The shape of its value; `None` for `__typename`.
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

    /// Where it comes from.
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
    /// Query, mutation or subscription.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The name of the chosen operation, when it has one.
    #[must_use]
    pub fn operation_name(&self) -> Option<&str> {
        self.operation_name.as_deref()
    }

    /// The limits that the operation breaks and is let through with
    /// ([`Limits::warn_only`](crate::Limits::warn_only)).
    #[must_use]
    pub fn exceeded(&self) -> &[GraphqlError] {
        &self.exceeded
    }

    /// Position of a variable among those that the operation declares.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<usize> {
        self.declared.iter().position(|it| it.name == name)
    }

    /// Checks the variables of a request.
    ///
    /// `raw` is the JSON text of the request's `variables`; absent and `null` mean no variables.
    ///
    /// # Errors
    /// `VALIDATION_INVALID_TYPE_VARIABLE` for each variable that does not fit its type,
    /// `INVALID_GRAPHQL_REQUEST` when `raw` is not an object.
    pub fn coerce(&self, raw: Option<&[u8]>) -> Result<Variables, Vec<GraphqlError>> {
        variables::coerce(&self.declared, raw, &self.schema)
    }

    /// The members of the answer's root, in the client's order.
    pub fn root_members(&self) -> impl Iterator<Item = AnswerMember<'_>> {
        self.members(self.projection.root)
    }

    /// The members of an object of this shape. Empty when the shape is not an object, or an
    /// object of several types.
    pub fn members_of<'a>(
        &'a self,
        shape: AnswerShape<'a>,
    ) -> impl Iterator<Item = AnswerMember<'a>> {
        let index = match shape.shape {
            Shape::Object(selection) => self.projection.selections.get(*selection),
            _ => None,
        };
        // An abstract type has one list of members for each object type; without a value there is
        // no way to choose.
        let index = index.filter(|per_type| per_type.by_type.is_empty());
        let members = index.map(|per_type| self.members(per_type.otherwise));
        members.into_iter().flatten()
    }

    fn members(&self, index: usize) -> impl Iterator<Item = AnswerMember<'_>> {
        let members = self.projection.members.get(index);
        members
            .into_iter()
            .flatten()
            // Answers in one piece do not look at what is deferred.
            .filter(|member| !matches!(member.what, What::Deferred(_)))
            .map(|member| AnswerMember { member })
    }

    /// Which conditions hold for these variables; empty when no member has a condition.
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

    /// Whether conditions decide about members.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        !self.projection.presences.is_empty()
    }

    /// The truth of a Boolean variable; one that is neither given nor has a default counts
    /// as false, which validation leaves possible for nullable variables alone.
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
