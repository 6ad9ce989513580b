//! The client's selection, compiled. It contains the members to write for each object, their order, and the
//! conditions that each value must meet.
//!
//! Writing a response is a walk over lists. Only two decisions remain for it: `@skip` and `@include` with
//! variables, and the type of each object of an abstract field.

use graphql_tools::parser::query::Value as Literal;

use crate::defer::Groups;

/// Conditions that must all hold, and the deferred fragment around them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Clause {
    /// Pairs of a variable's position and its required value.
    pub(crate) conditions: Vec<(usize, bool)>,
    /// The innermost deferred fragment around it. See [`Groups`].
    pub(crate) group: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// Members to write, one list for each kind of object.
    pub(crate) members: Vec<Box<[Member]>>,
    /// Indexes of the members, by type of the object.
    pub(crate) selections: Vec<PerType>,
    /// Conditions of members. A member is present if any of its clauses holds.
    pub(crate) presences: Vec<Vec<Clause>>,
    /// The values of enums, without quotes.
    pub(crate) enums: Vec<EnumValues>,
    /// Index of the root's members in `members`.
    pub(crate) root: usize,
    /// The deferred fragments of the operation.
    pub(crate) groups: Groups,
    /// The places of the deferred fragments. [`What::Deferred`] contains an index into this list.
    pub(crate) anchors: Vec<Anchor>,
}

/// A place at which a deferred fragment is selected.
#[derive(Debug)]
pub(crate) struct Anchor {
    pub(crate) group: usize,
    /// The conditions around the fragment, one clause for each path to it.
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug)]
pub(crate) struct EnumValues {
    pub(crate) name: String,
    pub(crate) values: Vec<Box<[u8]>>,
}

/// The members of an object with one of several types.
#[derive(Debug)]
pub(crate) struct PerType {
    pub(crate) by_type: Vec<(Box<[u8]>, usize)>,
    /// The members for objects without a type name, or with the name of an interface.
    pub(crate) otherwise: usize,
}

/// One member to write.
#[derive(Debug)]
pub(crate) struct Member {
    /// The response key, as in the merged data.
    pub(crate) key: Box<[u8]>,
    /// The key as JSON, with colon.
    pub(crate) opener: Box<[u8]>,
    /// Index into [`Projection::presences`]. `None` without a condition.
    pub(crate) presence: Option<usize>,
    pub(crate) non_null: bool,
    pub(crate) what: What,
    /// The coordinate `Type.field`, for error messages.
    pub(crate) coordinate: Box<str>,
    /// Name and arguments of an introspection field.
    pub(crate) introspection: Option<Box<RequestedField>>,
}

#[derive(Debug)]
pub(crate) struct RequestedField {
    pub(crate) name: String,
    pub(crate) arguments: Vec<(String, Literal<'static, String>)>,
}

#[derive(Debug)]
pub(crate) enum What {
    /// `__typename` with a known type, as JSON.
    Text(Box<[u8]>),
    /// Always null, because the request may not see the field.
    Denied,
    /// The place of a deferred fragment, an index into [`Projection::anchors`]. This member is never present,
    /// so the writer writes no text for it.
    Deferred(usize),
    /// Any other value, from the merged data.
    Value(Shape),
}

/// Shape of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    Leaf(Leaf),
    /// Index into [`Projection::selections`].
    Object(usize),
    List {
        item: Box<Shape>,
        item_non_null: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A custom scalar: any JSON value.
    Any,
    Int,
    Float,
    String,
    Boolean,
    Id,
    /// Index into [`Projection::enums`].
    Enum(usize),
}
