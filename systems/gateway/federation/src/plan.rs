//! The planner's plan, compiled for execution: request texts rendered up to the variables,
//! names turned into bytes and indices, type conditions resolved to sets of objects.

use std::collections::HashSet;

use crate::fetch::OperationKind;
use crate::schema::Schema;

/// What to do, in which order.
#[derive(Debug)]
pub(crate) enum Step {
    /// Index into [`Plan::fetches`].
    Fetch(usize),
    Sequence(Vec<Step>),
    Parallel(Vec<Step>),
    Condition {
        variable: usize,
        if_true: Option<Box<Step>>,
        if_false: Option<Box<Step>>,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) root: Option<Step>,
    pub(crate) fetches: Vec<FetchPlan>,
}

impl Plan {
    /// The fetch whose answers are the events of a subscription.
    pub(crate) fn subscription(&self) -> Option<&FetchPlan> {
        let first = self.fetches.first();
        first.filter(|fetch| fetch.kind == OperationKind::Subscription)
    }
}

/// One request to one subgraph.
#[derive(Debug)]
pub(crate) struct FetchPlan {
    pub(crate) subgraph: usize,
    pub(crate) kind: OperationKind,
    pub(crate) operation: String,
    pub(crate) operation_name: Option<String>,
    /// The request body up to and without `variables`: `{"query":…,"operationName":…`.
    pub(crate) prefix: Vec<u8>,
    /// The client's variables it uses: index and `"name":`.
    pub(crate) variables: Vec<(usize, Vec<u8>)>,
    /// The lists of entities it is about; none for a fetch of root fields.
    pub(crate) inputs: Vec<Input>,
    /// The members of its answer that hold entities.
    pub(crate) outputs: Vec<Output>,
    /// For a fetch of root fields.
    pub(crate) rewrites: Vec<Rewrite>,
    /// Keys of its objects under which an earlier fetch brought another field, which nothing needs
    /// any more; found by [`Claim::holds`](crate::proof::Claim::holds).
    pub(crate) replaced: Vec<Vec<u8>>,
}

/// One variable of representations.
#[derive(Debug)]
pub(crate) struct Input {
    /// `"representations":`
    pub(crate) opener: Vec<u8>,
    pub(crate) places: Vec<Place>,
    pub(crate) rewrites: Vec<Rewrite>,
    /// Whether other fetches write into what some of its places get: then an entity that is at two
    /// places is two objects, as what is asked below it differs.
    pub(crate) are_places_apart: bool,
}

/// Where entities are, and what says which ones they are.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: Vec<PathStep>,
    pub(crate) needs: Vec<Need>,
}

/// One `_entities` field.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) key: Vec<u8>,
    /// Index of the input whose representations it was asked about.
    pub(crate) input: usize,
    pub(crate) rewrites: Vec<Rewrite>,
}

/// A step from the root of the data to the entities of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Key(Vec<u8>),
    List,
    Types(TypeSet),
}

/// Names of types that satisfy a condition, subtypes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeSet(HashSet<Vec<u8>>);

impl TypeSet {
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a String>, schema: &Schema) -> TypeSet {
        let mut set = HashSet::new();
        for name in names {
            // The name itself is added as well, because interface objects are known by it alone.
            set.extend(
                schema
                    .possible(name)
                    .into_iter()
                    .map(|object| object.as_bytes().to_vec()),
            );
            set.insert(name.as_bytes().to_vec());
        }
        TypeSet(set)
    }

    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.0.contains(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }
}

/// A part of a representation.
#[derive(Debug)]
pub(crate) enum Need {
    Typename,
    Field {
        /// The key in the merged data.
        key: Vec<u8>,
        /// The key in the representation, as JSON with colon.
        opener: Vec<u8>,
        /// Whether the schema promises a value; without it there is no representation.
        non_null: bool,
        /// Whether it may be missing: only a field requires it that a variable may leave out.
        is_optional: bool,
        needs: Vec<Need>,
    },
    Fragment {
        /// The name of the condition, used where the data has no `__typename`.
        name: String,
        types: TypeSet,
        needs: Vec<Need>,
    },
}

/// A change to make in data that was received, or in a representation before it is sent.
#[derive(Debug)]
pub(crate) struct Rewrite {
    pub(crate) path: Vec<RewriteStep>,
    pub(crate) change: Change,
}

#[derive(Debug)]
pub(crate) enum RewriteStep {
    Key(Vec<u8>),
    Types(TypeSet),
}

#[derive(Debug)]
pub(crate) enum Change {
    Rename(Vec<u8>),
    Set(Vec<u8>),
}

/// Something in the planner's plan that cannot be carried out here.
#[derive(Debug, thiserror::Error)]
#[error("the query plan {0}")]
pub(crate) struct Unsupported(pub(crate) &'static str);

/// The response keys of a path.
pub(crate) fn response_keys(path: &[PathStep]) -> Vec<&[u8]> {
    path.iter()
        .filter_map(|step| match step {
            PathStep::Key(key) => Some(key.as_slice()),
            PathStep::List | PathStep::Types(_) => None,
        })
        .collect()
}

/// A key as JSON, with its colon.
pub(crate) fn opener(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    json_text::write_string(name, &mut out);
    out.push(b':');
    out
}
