//! Takes a subgraph's answer in: its data into the merged data, its errors to the places
//! they speak of.

use serde_json::Value as Json;

use crate::entities::{self, Target};
use crate::error::{GraphqlError, Location, PathSegment};
use crate::execute::State;
use crate::fetch::SubgraphAnswer;
use crate::plan::FetchPlan;
use crate::prepared::Prepared;
use crate::store::{Malformed, ObjectId, Value};

/// Bytes of a body that an error quotes.
const QUOTED_MAX: usize = 512;

/// A GraphQL response as a subgraph sent it.
struct Response {
    data: Option<Value>,
    errors: Option<Value>,
}

/// Merges one answer.
pub(crate) fn absorb(
    prepared: &Prepared,
    fetch: usize,
    state: &mut State,
    targets: &[Vec<Target>],
    answer: SubgraphAnswer,
) {
    let plan = &prepared.plan.fetches[fetch];
    let failed = !answer.errors.is_empty();
    for mut error in answer.errors {
        if error.path.is_empty() {
            // A fetch of root fields has no input; its error belongs to the whole response, which
            // an empty path says.
            error.path = plan
                .inputs
                .first()
                .map(entities::fetch_path)
                .unwrap_or_default();
        }
        state.fail(fetch, error);
    }
    // The transport error is noted already. An empty body that is "not JSON" would be a second
    // error for one failure.
    if failed && answer.body.is_empty() {
        return;
    }
    let response = match read(state, &answer.body) {
        Ok(response) => response,
        Err(Malformed(reason)) => {
            // Behind an error of the transport, what came instead says more than where it
            // stopped being JSON.
            let reason = if failed { quoted(&answer.body) } else { reason };
            let name = &prepared.supergraph.subgraphs()[plan.subgraph].name;
            state.fail(fetch, malformed(name, &reason, plan));
            return;
        }
    };
    // Errors before data: merging may replace values on the way to an entity, and the paths must
    // lead to the objects that the representations were written for.
    if let Some(errors) = response.errors {
        absorb_errors(prepared, fetch, state, targets, errors);
    }
    match response.data {
        Some(Value::Object(data)) if plan.inputs.is_empty() => {
            // Rewrite before merging, because merging pairs members by their keys.
            entities::rewrite(&mut state.store, Value::Object(data), &plan.rewrites);
            let concrete = |name: &[u8]| prepared.supergraph.schema.is_object(name);
            state.store.merge(state.root, data, &concrete);
            state.root_has_data = true;
        }
        Some(Value::Object(data)) => merge_entities(prepared, plan, state, targets, data),
        // Only noted: another fetch of root fields may still bring data; `respond` decides.
        Some(Value::Null) if plan.inputs.is_empty() => state.root_is_null = true,
        _ => {}
    }
}

/// Merges the entities of an answer into the objects that they were asked for.
fn merge_entities(
    prepared: &Prepared,
    plan: &FetchPlan,
    state: &mut State,
    targets: &[Vec<Target>],
    data: ObjectId,
) {
    let concrete = |name: &[u8]| prepared.supergraph.schema.is_object(name);
    for output in &plan.outputs {
        let Some(Value::List(list)) = state.store.get(data, &output.key) else {
            continue;
        };
        // Rewrites change the answer's own list, so each entity is changed once, however many
        // targets share it.
        entities::rewrite(&mut state.store, Value::List(list), &output.rewrites);
        for target in targets.get(output.input).into_iter().flatten() {
            // A list that is too short leaves its targets without these members. They count as
            // null, and the writer reports those that must not be null.
            let entity = state.store.items(list).get(target.representation).copied();
            if let Some(Value::Object(entity)) = entity {
                state.store.merge(target.object, entity, &concrete);
            }
        }
    }
}

fn read(state: &mut State, body: &[u8]) -> Result<Response, Malformed> {
    let store = &mut state.store;
    let wrong = |found: &str| {
        Err(Malformed(format!(
            "expected an object with `data` or `errors`, found {found}"
        )))
    };
    let response = match store.parse(body)? {
        Value::Object(response) => response,
        _ => return wrong("another JSON value"),
    };
    let data = store.get(response, b"data");
    let errors = store
        .get(response, b"errors")
        .filter(|errors| *errors != Value::Null);
    match (data, errors) {
        (None, None) => wrong("an object without either"),
        (Some(Value::Object(_) | Value::Null) | None, Some(Value::List(_)) | None) => {
            Ok(Response { data, errors })
        }
        (_, Some(Value::List(_)) | None) => wrong("`data` that is not an object"),
        _ => wrong("`errors` that is not a list"),
    }
}

fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..QUOTED_MAX).unwrap_or(body));
    if body.len() > QUOTED_MAX {
        format!("{text}…")
    } else {
        text.into_owned()
    }
}

fn malformed(name: &str, reason: &str, plan: &FetchPlan) -> GraphqlError {
    let message = format!("service '{name}' response was malformed: {reason}");
    let mut error = GraphqlError::new(message, "SUBREQUEST_MALFORMED_RESPONSE")
        .with("service", name)
        .with("reason", reason);
    error.path = plan
        .inputs
        .first()
        .map(entities::fetch_path)
        .unwrap_or_default();
    error
}

fn absorb_errors(
    prepared: &Prepared,
    fetch: usize,
    state: &mut State,
    targets: &[Vec<Target>],
    errors: Value,
) {
    let plan = &prepared.plan.fetches[fetch];
    let errors = match state.store.to_json(errors) {
        Ok(Json::Array(errors)) => errors,
        // `read` lets only a list through.
        Ok(_) => return,
        // The errors are lost, but not the fact that there were some.
        Err(Malformed(reason)) => {
            let name = &prepared.supergraph.subgraphs()[plan.subgraph].name;
            state.fail(fetch, malformed(name, &reason, plan));
            return;
        }
    };
    // Worked out here and not while representations are written: the walk visits all the data, and
    // most answers have no error.
    let places: Vec<Places> = plan
        .inputs
        .iter()
        .map(|input| entities::paths(&state.store, state.root, input))
        .collect();
    for error in errors {
        let error = from_json(error);
        match entity_of(plan, &error.path) {
            Some((output, index, rest)) => {
                let input = plan.outputs[output].input;
                let places = places.get(input).map_or(&[][..], Vec::as_slice);
                let targets = targets.get(input).map_or(&[][..], Vec::as_slice);
                for copy in copies(&error, index, rest, targets, places) {
                    state.fail(fetch, copy);
                }
            }
            None if plan.inputs.is_empty() => state.fail(fetch, error),
            None => {
                // This path does not name an entity, and the client does not know the subgraph's
                // document, so the error gets the path of the fetch.
                let path = entities::fetch_path(&plan.inputs[0]);
                state.fail(fetch, GraphqlError { path, ..error });
            }
        }
    }
}

type Places = Vec<Vec<PathSegment>>;

/// The `_entities` field, the index in it and the rest of the path.
fn entity_of<'a>(
    plan: &FetchPlan,
    path: &'a [PathSegment],
) -> Option<(usize, usize, &'a [PathSegment])> {
    let [PathSegment::Key(key), PathSegment::Index(index), rest @ ..] = path else {
        return None;
    };
    let outputs = &plan.outputs;
    let output = outputs
        .iter()
        .position(|output| output.key == key.as_bytes())?;
    Some((output, *index, rest))
}

/// One copy of an entity's error for each object that waited for the entity.
fn copies<'a>(
    error: &'a GraphqlError,
    index: usize,
    rest: &'a [PathSegment],
    targets: &'a [Target],
    places: &'a [Vec<PathSegment>],
) -> impl Iterator<Item = GraphqlError> + 'a {
    let waiting = targets.iter().filter(move |it| it.representation == index);
    waiting.map(move |target| {
        let mut path = places.get(target.ordinal).cloned().unwrap_or_default();
        path.extend_from_slice(rest);
        GraphqlError {
            path,
            ..error.clone()
        }
    })
}

fn from_json(error: Json) -> GraphqlError {
    let Json::Object(mut members) = error else {
        return GraphqlError {
            message: error.to_string(),
            ..GraphqlError::default()
        };
    };
    let message = match members.remove("message") {
        Some(Json::String(message)) => message,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let extensions = match members.remove("extensions") {
        Some(Json::Object(extensions)) => extensions,
        _ => serde_json::Map::new(),
    };
    GraphqlError {
        message,
        locations: members.get("locations").map(locations).unwrap_or_default(),
        path: members.get("path").map(path).unwrap_or_default(),
        extensions,
    }
}

fn position(value: Option<&Json>) -> Option<usize> {
    value
        .and_then(Json::as_u64)
        .and_then(|it| usize::try_from(it).ok())
}

fn locations(value: &Json) -> Vec<Location> {
    let places = value.as_array().into_iter().flatten();
    places
        .filter_map(|place| {
            Some(Location {
                line: position(place.get("line"))?,
                column: position(place.get("column"))?,
            })
        })
        .collect()
}

fn path(value: &Json) -> Vec<PathSegment> {
    let segments = value.as_array().into_iter().flatten();
    segments
        .filter_map(|segment| match segment {
            Json::String(key) => Some(PathSegment::Key(key.clone())),
            other => position(Some(other)).map(PathSegment::Index),
        })
        .collect()
}
