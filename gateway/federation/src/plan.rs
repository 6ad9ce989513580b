//! The planner's plan, compiled for execution. Request texts are rendered up to the variables. Names are
//! bytes and indexes. Type conditions are sets of objects.

use std::collections::HashSet;

use crate::asked::Asked;
use crate::fetch::OperationKind;
use crate::schema::Schema;

/// The fetches in their order.
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
    /// The fetch that returns the events of a subscription.
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
    /// The request body before `variables`: `{"query":…,"operationName":…`.
    pub(crate) prefix: Vec<u8>,
    /// The client's variables in this request: index and `"name":`.
    pub(crate) variables: Vec<(usize, Vec<u8>)>,
    /// The condition under which the request selects any field.
    pub(crate) asked: Asked,
    /// The lists of entities in this request. Empty for a fetch of root fields.
    pub(crate) inputs: Vec<Input>,
    /// The members of its response that contain entities.
    pub(crate) outputs: Vec<Output>,
    /// Changes to the response of a fetch of root fields.
    pub(crate) rewrites: Vec<Rewrite>,
    /// Keys of its objects that contain another field from an earlier fetch. No later step needs the old
    /// values. [`PlanGoal::prove`](crate::proof::Claim::holds) finds these keys.
    pub(crate) replaced: Vec<Vec<u8>>,
}

/// One variable for a list of representations.
#[derive(Debug)]
pub(crate) struct Input {
    /// True if its objects are query roots inside of the data, such as `query` in the payload of a mutation.
    /// The request has no representations, and each of the objects takes the whole response.
    pub(crate) is_root: bool,
    /// True if the type of its entities has a single entity (`@key(fields: "__typename")`). The name of the type
    /// is a complete representation then.
    pub(crate) is_singleton: bool,
    /// The key as JSON with colon, such as `"representations":`.
    pub(crate) opener: Vec<u8>,
    pub(crate) places: Vec<Place>,
    pub(crate) rewrites: Vec<Rewrite>,
    /// True if other fetches write into the objects at some of its places. Then an entity at two places
    /// becomes two objects, because the selections below it differ.
    pub(crate) are_places_apart: bool,
    /// True if each of its objects becomes an object of its own. Requests for fields of one name with different
    /// arguments write into some of the objects at one place.
    pub(crate) are_objects_apart: bool,
}

/// A place of entities in the data, and the fields that identify them.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: Vec<PathStep>,
    pub(crate) needs: Vec<Need>,
}

/// One `_entities` field of a request.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) key: Vec<u8>,
    /// Index of the input with its representations.
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

/// Names of the types that satisfy a condition, including subtypes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeSet(HashSet<Vec<u8>>);

impl TypeSet {
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a String>, schema: &Schema) -> TypeSet {
        let mut set = HashSet::new();
        for name in names {
            // The set also contains the name itself, because interface objects have no other name.
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
        /// The key in the representation, as JSON with its colon.
        opener: Vec<u8>,
        /// True if the schema does not allow null. Without a value there is no representation.
        non_null: bool,
        /// True if the value may be missing, because only fields that a variable may leave out require it.
        is_optional: bool,
        needs: Vec<Need>,
    },
    Fragment {
        /// The type name of the condition. Used if the data has no `__typename`.
        name: String,
        types: TypeSet,
        needs: Vec<Need>,
    },
}

/// A change in received data, or in a representation before it is sent.
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

/// A part of the planner's plan that the gateway cannot execute.
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
