//! Responses in parts. Combined, they must equal the response in one piece.

#![cfg(test)]

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gateway_audit::{Case, Corpus, Inventor, Sample, World};
use gateway_federation::{
    Effort, ErrorPolicies, ErrorPolicy, Fetch, OperationOptions, OperationRequest, Operations,
    Overrides, PartsFormat, Stop, SubgraphAnswer, SubgraphRequest, Supergraph,
};
use serde_json::Value;

/// Number of generated queries for each corpus.
const INVENTED: usize = 40;

/// The subgraphs of a corpus, with delays.
struct Servers<'a> {
    corpus: &'a Corpus,
    world: World,
    asked: Cell<usize>,
}

impl Fetch for Servers<'_> {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let mut subgraphs = self.corpus.subgraphs.iter();
        let subgraph = subgraphs.find(|known| known.name() == request.name);
        let subgraph = subgraph.expect("the supergraph names its subgraphs");
        self.asked.set(self.asked.get() + 1);
        // Each request has another delay, so that responses arrive in all orders.
        let mut polls = self.asked.get() * 7 % 5;
        std::future::poll_fn(|task| {
            task.waker().wake_by_ref();
            polls = polls.saturating_sub(1);
            if polls == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let answer = subgraph.answer(&self.world, &request.body);
        SubgraphAnswer::from_body(answer.to_json())
    }
}

/// Polls until the future is ready. This is enough, because it does not wait for external events.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..100_000 {
        let mut task = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut task) {
            return output;
        }
    }
    panic!("the execution does not come to an end");
}

/// Results of a query, in one piece and in parts.
struct Outcome {
    whole: Value,
    parts: Vec<Value>,
    fetches: [usize; 2],
}

/// `None` if the query is refused, or if no part of it is deferred.
fn ask(gateway: &Operations, corpus: &Corpus, case: &Case, format: PartsFormat) -> Option<Outcome> {
    let overrides = Overrides::default();
    let requested = OperationRequest {
        query: &case.query,
        operation_name: case.operation.as_deref(),
        overrides: &overrides,
        grants: None,
    };
    let effort = Effort::full(Duration::from_secs(5), Stop::default());
    let prepared = gateway.make(&requested, &effort).ok()?;
    let variables = Value::Object(case.variables.clone()).to_string();
    let variables = prepared.coerce(Some(variables.as_bytes())).ok()?;
    if !prepared.defers(&variables) {
        return None;
    }
    let servers = || Servers {
        corpus,
        world: corpus.world().unwrap(),
        asked: Cell::new(0),
    };
    let (alone, apart) = (servers(), servers());
    let policies = ErrorPolicies::new(gateway.supergraph(), |_| ErrorPolicy::Include);
    let executed = now(prepared.execute(&variables, &alone, &policies));
    let pieces = RefCell::new(Vec::new());
    now(
        prepared.execute_in_parts(&variables, &apart, &policies, format, |piece| {
            let read = serde_json::from_slice(&piece.body);
            let text = String::from_utf8_lossy(&piece.body).into_owned();
            let read: Value = read.unwrap_or_else(|error| panic!("{error}: {text}"));
            pieces.borrow_mut().push(read);
        }),
    );
    Some(Outcome {
        whole: serde_json::from_slice(executed.body()).unwrap(),
        parts: pieces.into_inner(),
        fetches: [alone.asked.get(), apart.asked.get()],
    })
}

/// A client that combines parts, and reports parts without a place.
#[derive(Default)]
struct Client {
    data: Value,
    has_errors: bool,
    pending: Vec<(String, Vec<Value>)>,
    /// True if a leaf may arrive a second time.
    is_lenient: bool,
}

impl Client {
    fn put_together(parts: &[Value], format: PartsFormat) -> Result<Self, String> {
        let mut client = Client {
            is_lenient: format == PartsFormat::Path,
            ..Client::default()
        };
        let mut has_next = true;
        for (index, part) in parts.iter().enumerate() {
            if !has_next {
                return Err("a part behind the last one".to_owned());
            }
            if index == 0 {
                client.data = part["data"].clone();
                has_next = part.get("hasNext").is_some_and(|it| *it == true);
            } else {
                has_next = part["hasNext"].as_bool().ok_or("a part without hasNext")?;
            }
            client.has_errors |= part.get("errors").is_some();
            client.take(part, index == 0)?;
        }
        if has_next || !client.pending.is_empty() {
            return Err(format!("not ended; pending {:?}", client.pending));
        }
        Ok(client)
    }

    fn take(&mut self, part: &Value, is_first: bool) -> Result<(), String> {
        let list = |name: &str| part[name].as_array().cloned().unwrap_or_default();
        for pending in list("pending") {
            let id = pending["id"].as_str().ok_or("pending without an id")?;
            let path = pending["path"].as_array().ok_or("pending without a path")?;
            if is_first && !at(&mut self.data, path).is_some_and(|it| it.is_object()) {
                return Err(format!("nothing at {path:?}"));
            }
            self.pending.push((id.to_owned(), path.clone()));
        }
        for one in list("incremental") {
            self.has_errors |= one.get("errors").is_some();
            let mut path = match one["path"].as_array() {
                Some(path) => path.clone(),
                None => {
                    let mut pending = self.pending.iter();
                    let found = pending.find(|(id, _)| Some(id.as_str()) == one["id"].as_str());
                    found.ok_or("an id that is not pending")?.1.clone()
                }
            };
            path.extend(one["subPath"].as_array().into_iter().flatten().cloned());
            let place = at(&mut self.data, &path).ok_or(format!("no place {path:?}"))?;
            if one["data"].is_null() {
                continue;
            }
            if !place.is_object() {
                return Err(format!("{path:?} is {place}"));
            }
            let is_lenient = self.is_lenient;
            // In that format, each fragment has its own errors. A value can be null in one fragment because
            // of an error, and arrive in another fragment.
            let has_errors = is_lenient && self.has_errors;
            merge(place, &one["data"], is_lenient, has_errors)?;
        }
        for completed in list("completed") {
            self.has_errors |= completed.get("errors").is_some();
            let before = self.pending.len();
            self.pending
                .retain(|(id, _)| Some(id.as_str()) != completed["id"].as_str());
            if self.pending.len() + 1 != before {
                return Err("completed what was not pending".to_owned());
            }
        }
        Ok(())
    }
}

fn at<'v>(mut value: &'v mut Value, path: &[Value]) -> Option<&'v mut Value> {
    for step in path {
        value = match step {
            Value::String(key) => value.get_mut(key)?,
            index => value.get_mut(usize::try_from(index.as_u64()?).ok()?)?,
        };
    }
    Some(value)
}

/// Merges a later part. Leaves may arrive twice, and null may arrive instead of an object.
fn merge(into: &mut Value, from: &Value, is_lenient: bool, has_errors: bool) -> Result<(), String> {
    match (into, from) {
        (Value::Object(_), Value::Null) if has_errors => Ok(()),
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(key) {
                    None => drop(into.insert(key.clone(), value.clone())),
                    Some(_) if !is_lenient => return Err(format!("`{key}` comes twice")),
                    Some(known) => merge(known, value, is_lenient, has_errors)?,
                }
            }
            Ok(())
        }
        (Value::Array(into), Value::Array(from)) if into.len() == from.len() => {
            let mut both = into.iter_mut().zip(from);
            both.try_for_each(|(into, from)| merge(into, from, is_lenient, has_errors))
        }
        (into, from) if into == from => Ok(()),
        (into, from) => Err(format!("{from} in place of {into}")),
    }
}

/// The differences in an outcome. Empty if it is correct.
fn complaints(outcome: &Outcome, format: PartsFormat) -> String {
    let client = match Client::put_together(&outcome.parts, format) {
        Ok(client) => client,
        Err(complaint) => return complaint,
    };
    let has_errors = outcome.whole.get("errors").is_some();
    // In parts, a null because of an error can affect fewer of its parents.
    if !has_errors && client.has_errors {
        return "errors in parts alone".to_owned();
    }
    if !has_errors && client.data != outcome.whole["data"] {
        return format!("wanted {}\n  found  {}", outcome.whole["data"], client.data);
    }
    if outcome.fetches[1] > outcome.fetches[0] {
        return format!("fetches {:?}", outcome.fetches);
    }
    String::new()
}

#[test]
fn parts_put_together_are_the_answer_in_one_piece() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut corpora = Corpus::read_all(&folder).unwrap_or_else(|error| panic!("{error}"));
    let sample = Sample::of(&mut corpora, 3, INVENTED);
    let mut wrong = String::new();
    let (mut divided, mut failed, mut parts) = (0, 0, 0);
    for corpus in &corpora {
        let supergraph = Supergraph::parse(&corpus.sdl);
        let supergraph = supergraph.unwrap_or_else(|error| panic!("{}: {error}", corpus.name));
        let gateway = Operations::new(Arc::new(supergraph), OperationOptions::default());
        let world = corpus.world().unwrap();
        let mut inventor = Inventor::new(corpus.api(), &world, sample.seed).deferring();
        let invented: Vec<Case> = (0..sample.queries).map(|_| inventor.query()).collect();
        let mut shortest: Option<(usize, String)> = None;
        for case in corpus.cases.iter().chain(&invented) {
            for format in [PartsFormat::Path, PartsFormat::Pending] {
                let Some(outcome) = ask(&gateway, corpus, case, format) else {
                    continue;
                };
                divided += 1;
                parts += outcome.parts.len();
                let complaint = complaints(&outcome, format);
                if complaint.is_empty() {
                    continue;
                }
                failed += 1;
                let length = case.query.len();
                if shortest.as_ref().is_none_or(|(known, _)| length < *known) {
                    let mut text = format!("{} {format:?}: {complaint}\n", corpus.name);
                    let variables = Value::Object(case.variables.clone());
                    writeln!(text, "  {} {variables}", case.query).unwrap();
                    for part in &outcome.parts {
                        writeln!(text, "  part {part}").unwrap();
                    }
                    shortest = Some((length, text));
                }
            }
        }
        if let Some((_, text)) = shortest {
            wrong.push_str(&text);
        }
    }
    println!("{divided} answers in {parts} parts, {failed} failed");
    assert!(wrong.is_empty(), "{failed} of {divided} failed\n{wrong}");
    // The test must cover enough responses to be meaningful.
    assert!(
        sample.is_of_one || divided > 200 && parts > 2 * divided,
        "{divided} answers in {parts} parts"
    );
}
