//! What the client asked for, compiled: which members to write, in which order, of which
//! object, and what must be true of each value.
//!
//! Answering is a walk over lists. It leaves no question open but `@skip` and `@include` with
//! variables and the type of each object of an abstract field.

use graphql_tools::parser::query::Value as Literal;

use crate::defer::Groups;

/// A conjunction of conditions, and where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Clause {
    /// Each variable must have the given truth.
    pub(crate) conditions: Vec<(usize, bool)>,
    /// The innermost deferred fragment around it; see [`Groups`].
    pub(crate) group: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// Members to write, for each kind of object.
    pub(crate) members: Vec<Box<[Member]>>,
    /// Which members, by type of the object.
    pub(crate) selections: Vec<PerType>,
    /// Conditions of members: present when any clause holds.
    pub(crate) presences: Vec<Vec<Clause>>,
    /// The values of enums, unquoted.
    pub(crate) enums: Vec<EnumValues>,
    /// Index of the root's members.
    pub(crate) root: usize,
    /// The fragments of the operation that are deferred.
    pub(crate) groups: Groups,
    /// Where they stand; [`What::Deferred`] points here.
    pub(crate) anchors: Vec<Anchor>,
}

/// Fragments around one object that are deferred.
#[derive(Debug)]
pub(crate) struct Anchor {
    pub(crate) group: usize,
    /// What holds around the fragment, in one of the ways that lead to it.
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug)]
pub(crate) struct EnumValues {
    pub(crate) name: String,
    pub(crate) values: Vec<Box<[u8]>>,
}

/// The members of an object that has one of several types.
#[derive(Debug)]
pub(crate) struct PerType {
    pub(crate) by_type: Vec<(Box<[u8]>, usize)>,
    /// For objects whose type is not named, or only by the name of an interface.
    pub(crate) otherwise: usize,
}

/// One member to write.
#[derive(Debug)]
pub(crate) struct Member {
    /// The response key, as in the merged data.
    pub(crate) key: Box<[u8]>,
    /// The key as JSON, with colon.
    pub(crate) opener: Box<[u8]>,
    /// Index of its condition, when it has one.
    pub(crate) presence: Option<usize>,
    pub(crate) non_null: bool,
    pub(crate) what: What,
    /// `Type.field`, for messages.
    pub(crate) coordinate: Box<str>,
    /// Name and arguments, for introspection alone.
    pub(crate) introspection: Option<Box<Asked>>,
}

#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) arguments: Vec<(String, Literal<'static, String>)>,
}

#[derive(Debug)]
pub(crate) enum What {
    /// `__typename` where the type is known.
    Text(Box<[u8]>),
    /// Null, whatever was answered: the request may not see it.
    Denied,
    /// Nothing to write: a deferred fragment stands here, of this index among
    /// [`Projection::anchors`]. The member is never present.
    Deferred(usize),
    /// Anything else.
    Value(Shape),
}

/// What a value looks like.
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
    /// A custom scalar: whatever JSON.
    Any,
    Int,
    Float,
    String,
    Boolean,
    Id,
    /// Index into [`Projection::enums`].
    Enum(usize),
}
