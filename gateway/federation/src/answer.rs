//! Reads the response of a subgraph. Merges its data into the data of the request and assigns its errors to
//! their places.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::bounds::{ERRORS_MAX, Excess};
use crate::entities::{self, Target};
use crate::error::{GraphqlError, Location, PathSegment};
use crate::execution_state::State;
use crate::fetch::SubgraphAnswer;
use crate::plan::FetchPlan;
use crate::prepared::Prepared;
use crate::store::{Malformed, ObjectId, Slice, Store, Value};

/// Maximum bytes of a body that an error message quotes.
const QUOTED_MAX: usize = 512;

/// A GraphQL response as a subgraph sent it.
struct Response {
    data: Option<Value>,
    errors: Option<Value>,
}

/// Merges one subgraph response into the state.
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
            // A fetch of root fields has no input. Its error belongs to the whole response and has an empty
            // path.
            error.path = plan
                .inputs
                .first()
                .map(entities::fetch_path)
                .unwrap_or_default();
        }
        state.fail(fetch, error);
    }
    // The transport error is recorded already. An error about an empty body would be a second error for one
    // failure.
    if failed && answer.body.is_empty() {
        return;
    }
    let response = match read(state, &answer.body) {
        Ok(response) => response,
        Err(_) if state.store.is_full() => {
            let excess = Excess::Answers(prepared.bounds.answers_bytes);
            return state.exceed(plan, excess);
        }
        Err(Malformed(reason)) => {
            // After a transport error, the received text is more useful than the position of the JSON error.
            let reason = if failed { quoted(&answer.body) } else { reason };
            let name = &prepared.supergraph.subgraphs()[plan.subgraph].name;
            state.fail(fetch, malformed(name, &reason, plan));
            return;
        }
    };
    // Errors come before data, because merging can replace values on the path to an entity. The paths must
    // lead to the objects of the representations.
    if let Some(errors) = response.errors {
        absorb_errors(prepared, fetch, state, targets, errors);
    }
    match response.data {
        Some(Value::Object(data)) if plan.inputs.is_empty() => {
            // Rewrites come before merging, because merging pairs members by their keys.
            entities::rewrite(&mut state.store, Value::Object(data), &plan.rewrites);
            let concrete = |name: &[u8]| prepared.supergraph.schema.is_object(name);
            let replaced = &plan.replaced;
            let store = &mut state.store;
            store.merge_replacing(state.root, data, replaced, &concrete);
            state.root_has_data = true;
        }
        Some(Value::Object(data)) => merge_entities(prepared, plan, state, targets, data),
        // Only recorded here, because another fetch of root fields may still return data. `respond` decides.
        Some(Value::Null) if plan.inputs.is_empty() => state.root_is_null = true,
        _ => {}
    }
}

/// Merges the entities of a response into the objects that wait for them.
fn merge_entities(
    prepared: &Prepared,
    plan: &FetchPlan,
    state: &mut State,
    targets: &[Vec<Target>],
    data: ObjectId,
) {
    let concrete = |name: &[u8]| prepared.supergraph.schema.is_object(name);
    for output in &plan.outputs {
        let waiting = targets.get(output.input).map_or(&[][..], Vec::as_slice);
        if plan.inputs[output.input].is_root {
            entities::rewrite(&mut state.store, Value::Object(data), &output.rewrites);
            for target in waiting {
                let (store, replaced) = (&mut state.store, &plan.replaced);
                store.merge_replacing(target.object, data, replaced, &concrete);
            }
            continue;
        }
        let Some(Value::List(list)) = state.store.get(data, &output.key) else {
            continue;
        };
        // Rewrites change the list of the response. So each entity is changed once, even if many targets
        // share it.
        entities::rewrite(&mut state.store, Value::List(list), &output.rewrites);
        let input = &plan.inputs[output.input];
        // An object of its own for each target, or for each place.
        let numbered: Vec<Target>;
        let waiting = match input.are_objects_apart {
            true => {
                let targets = waiting.iter().enumerate();
                numbered = targets.map(|(place, it)| Target { place, ..*it }).collect();
                &numbered
            }
            false => waiting,
        };
        let is_apart = input.are_places_apart || input.are_objects_apart;
        let copies = match copies_of(&mut state.store, list, waiting, is_apart) {
            Some(copies) => copies,
            None => return state.exceed(plan, Excess::Answers(prepared.bounds.answers_bytes)),
        };
        for target in waiting {
            // If the list is too short, its last targets lack these members. They count as null, and the
            // writer reports nulls that the schema does not allow.
            let entity = state.store.items(list).get(target.representation).copied();
            if let Some(Value::Object(received)) = entity {
                let copy = copies.get(&(target.place, target.representation));
                let entity = copy.copied().unwrap_or(received);
                let (store, replaced) = (&mut state.store, &plan.replaced);
                store.merge_replacing(target.object, entity, replaced, &concrete);
            }
        }
    }
}

/// Copies each entity for every waiting place after the first, by place and representation. `None` if the
/// copies do not fit.
///
/// All copies are made before the first merge, because a merge can write into the received objects.
fn copies_of(
    store: &mut Store,
    list: Slice,
    waiting: &[Target],
    is_apart: bool,
) -> Option<HashMap<(usize, usize), ObjectId>> {
    let mut copies = HashMap::new();
    if !is_apart {
        return Some(copies);
    }
    let mut first = HashMap::new();
    for target in waiting {
        let (place, representation) = (target.place, target.representation);
        let is_first = *first.entry(representation).or_insert(place) == place;
        if is_first || copies.contains_key(&(place, representation)) {
            continue;
        }
        let received = store.items(list).get(representation).copied();
        if let Some(Value::Object(received)) = received {
            copies.insert((place, representation), store.copy(received)?);
        }
    }
    Some(copies)
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
    // Lossy, because the cut can be inside a character and the body can contain anything.
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
        // `read` returns only lists here.
        Ok(_) => return,
        // The error texts are lost, but the response still reports that there were errors.
        Err(Malformed(reason)) => {
            let name = &prepared.supergraph.subgraphs()[plan.subgraph].name;
            state.fail(fetch, malformed(name, &reason, plan));
            return;
        }
    };
    let errors: Vec<GraphqlError> = errors.into_iter().map(from_json).collect();
    let places = Found::search(plan, state, targets, &errors);
    for error in errors {
        match entity_of(plan, &error.path) {
            Some((input, index, rest)) => {
                tell(plan, fetch, state, places.of(input, index), &error, rest);
            }
            None if plan.inputs.is_empty() => state.fail(fetch, error),
            None => {
                // This path does not lead to an entity, and the client does not have the subgraph's document.
                // So the error gets the path of the fetch.
                let path = entities::fetch_path(&plan.inputs[0]);
                state.fail(fetch, GraphqlError { path, ..error });
            }
        }
    }
}

/// Records one copy of an entity's error for each object that waits for the entity.
fn tell(
    plan: &FetchPlan,
    fetch: usize,
    state: &mut State,
    places: Option<&Places>,
    error: &GraphqlError,
    rest: &[PathSegment],
) {
    let weight = error.weight();
    for place in places.iter().flat_map(|places| &places.paths) {
        // Checked before the copy, because there can be a million copies.
        if !state.has_room(weight) {
            state.left_out += 1;
            continue;
        }
        let path = [place, rest].concat();
        let error = GraphqlError {
            path,
            ..error.clone()
        };
        state.fail(fetch, error);
    }
    state.left_out += places.map_or(0, |places| places.further);
    if places.is_none_or(|places| places.paths.is_empty()) {
        // No place waits for this entity, or the search for its place ended early. The error is still
        // reported. Without room for it, it is counted.
        let path = entities::fetch_path(&plan.inputs[0]);
        let error = GraphqlError {
            path,
            ..error.clone()
        };
        state.fail(fetch, error);
    }
}

/// Splits an error path into the input, the index in its representations and the rest of the path.
fn entity_of<'a>(
    plan: &FetchPlan,
    path: &'a [PathSegment],
) -> Option<(usize, usize, &'a [PathSegment])> {
    // The response of a query root has the path of a response to a client.
    if let Some(output) = plan.outputs.first()
        && plan.inputs[output.input].is_root
    {
        return Some((output.input, 0, path));
    }
    let [PathSegment::Key(key), PathSegment::Index(index), rest @ ..] = path else {
        return None;
    };
    let mut outputs = plan.outputs.iter();
    let output = outputs.find(|output| output.key == key.as_bytes())?;
    Some((output.input, *index, rest))
}

/// Maximum number of steps in the search for error places. They take about ten milliseconds.
const SEARCH_STEPS: usize = 1 << 20;

/// The places of one entity in the data.
#[derive(Default)]
struct Places {
    paths: Vec<Vec<PathSegment>>,
    /// Number of further places without a stored path.
    further: usize,
}

/// The places of the entities with errors, by input and index.
struct Found(HashMap<(usize, usize), Places>);

impl Found {
    /// Computed here and not while representations are written. The search visits all the data, and most
    /// responses have no error.
    fn search(
        plan: &FetchPlan,
        state: &mut State,
        targets: &[Vec<Target>],
        errors: &[GraphqlError],
    ) -> Found {
        let named = errors.iter().filter_map(|it| entity_of(plan, &it.path));
        let mut all: HashMap<_, Places> = named
            .map(|(input, index, _)| ((input, index), Places::default()))
            .collect();
        let (mut kept, mut is_whole, mut steps_left) = (0, true, SEARCH_STEPS);
        for (input, (targets, places)) in targets.iter().zip(&plan.inputs).enumerate() {
            let waiting = targets.iter().filter_map(|target| {
                let place = (input, target.representation);
                all.contains_key(&place).then_some((target.object, place))
            });
            let waiting: HashMap<ObjectId, (usize, usize)> = waiting.collect();
            if waiting.is_empty() {
                continue;
            }
            let mut found = |object: ObjectId, at: &[PathSegment]| {
                let place = waiting.get(&object).and_then(|place| all.get_mut(place));
                if let Some(places) = place {
                    // The first place of each entity is always stored, so that every error has one.
                    if kept < ERRORS_MAX || places.paths.is_empty() {
                        places.paths.push(at.to_vec());
                        kept += 1;
                    } else {
                        places.further += 1;
                    }
                }
            };
            for place in &places.places {
                let mut search = entities::Places {
                    store: &state.store,
                    found: &mut found,
                    steps_left,
                };
                let root = Value::Object(state.root);
                is_whole &= search.trace(root, &place.path, &mut Vec::new());
                steps_left = search.steps_left;
            }
        }
        state.is_left_out_partial |= !is_whole;
        Found(all)
    }

    fn of(&self, input: usize, index: usize) -> Option<&Places> {
        self.0.get(&(input, index))
    }
}

fn from_json(error: Json) -> GraphqlError {
    let Json::Object(mut members) = error else {
        return GraphqlError {
            message: error.to_string(),
            ..GraphqlError::default()
        };
    };
    // A malformed error of a subgraph is still reported, with all its readable parts.
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
