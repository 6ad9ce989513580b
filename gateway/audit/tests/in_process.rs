//! Tests the gateway's federation without sockets, against subgraphs that behave like servers.

#![cfg(test)]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gateway_audit::{Answer, Case, Corpus, FieldError, Inventor, Sample, World};
use gateway_federation::{
    Demand, Effort, ErrorPolicies, ErrorPolicy, Fetch, OperationOptions, OperationRequest,
    Operations, Overrides, Prepared, Refusal, Stop, SubgraphAnswer, SubgraphRequest, Supergraph,
};
use serde_json::Value;

/// Number of generated queries for each corpus.
const INVENTED: usize = 25;

/// Corpora without generated queries, with the reason. Generated queries find known differences there, all in
/// the planner. The cases of these corpora still run.
const SPARED: [(&str, &str); 1] = [(
    "null-keys-chain",
    "nothing wrong: one server finds what a key of null does not lead to",
)];

/// The planner may find no plan for one of this many generated queries.
const REFUSED_ONE_IN: usize = 25;

/// The subgraphs of a corpus, called in the process instead of over sockets.
struct Servers<'a> {
    corpus: &'a Corpus,
    world: World,
    asked: RefCell<Vec<(String, String)>>,
}

/// The gateway's result for a request.
struct Outcome {
    /// The exact text of the data.
    data: Option<String>,
    errors: Vec<Value>,
    asked: Vec<(String, String)>,
}

impl Fetch for Servers<'_> {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let subgraph = self
            .corpus
            .subgraphs
            .iter()
            .find(|known| known.name() == request.name);
        let subgraph = subgraph.expect("the supergraph names its subgraphs");
        let body = String::from_utf8_lossy(&request.body).into_owned();
        self.asked
            .borrow_mut()
            .push((request.name.to_owned(), body));
        let answer = subgraph.answer(&self.world, &request.body);
        SubgraphAnswer::from_body(answer.to_json())
    }
}

/// Polls until the future is ready. This is enough, because it does not wait for external events.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..100_000 {
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
    }
    panic!("the execution does not come to an end");
}

/// Introspection is off by default. Cases about introspection turn it on.
fn gateway(corpus: &Corpus, introspection: bool) -> Operations {
    let supergraph = match Supergraph::parse(&corpus.sdl) {
        Ok(supergraph) => supergraph,
        Err(error) => panic!("{}: {error}", corpus.name),
    };
    let options = OperationOptions {
        introspection,
        ..OperationOptions::default()
    };
    Operations::new(Arc::new(supergraph), options)
}

/// One percent in the unit of a request's random number.
const PERCENT: f64 = 100_000_000.0;

/// The labels from the line `# draws` of a case.
fn overrides(gateway: &Operations, case: &Case) -> Overrides {
    let (Some(labels), Some(draws)) = (gateway.override_labels(), &case.draws) else {
        return Overrides::default();
    };
    let (number, active) = draws.split_first().expect("a number, then labels");
    let number: f64 = number.parse().expect("a number, then labels");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a percentage"
    )]
    let random = (number * PERCENT) as u64;
    labels.draw(random, |label| active.iter().any(|it| it == label))
}

/// The operation for a request with the grants of a case.
fn prepare(gateway: &Operations, case: &Case) -> Result<Arc<Prepared>, Arc<Refusal>> {
    let overrides = overrides(gateway, case);
    let mut requested = OperationRequest {
        query: &case.query,
        operation_name: case.operation.as_deref(),
        overrides: &overrides,
        grants: None,
    };
    let effort = || Effort::full(Duration::from_secs(5), Stop::default());
    let prepared = gateway.make(&requested, &effort())?;
    let Some(granted) = &case.granted else {
        return Ok(prepared);
    };
    let has = |name: &str| granted.iter().any(|it| it == name);
    let grants = prepared.grants(|demand| match demand {
        Demand::Authenticated => has("user"),
        Demand::Scope(name) => has(name),
        Demand::Policy(name) => has(&format!("!{name}")),
    });
    requested.grants = grants.as_ref();
    gateway.make(&requested, &effort())
}

fn ask(gateway: &Operations, corpus: &Corpus, case: &Case) -> Outcome {
    let refused = |errors: Vec<Value>| Outcome {
        data: None,
        errors,
        asked: Vec::new(),
    };
    let errors_of = |errors: &[gateway_federation::GraphqlError]| {
        let body = gateway_federation::errors_body(errors);
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["errors"].as_array().unwrap().clone()
    };
    let prepared = match prepare(gateway, case) {
        Ok(prepared) => prepared,
        Err(refusal) => {
            let mut errors = errors_of(&refusal.errors);
            if let (Some(reason), Some(first)) = (&refusal.reason, errors.first_mut()) {
                first["reason"] = reason.as_str().into();
            }
            return refused(errors);
        }
    };
    let variables = Value::Object(case.variables.clone()).to_string();
    let variables = match prepared.coerce(Some(variables.as_bytes())) {
        Ok(variables) => variables,
        Err(errors) => return refused(errors_of(&errors)),
    };
    let servers = Servers {
        corpus,
        world: corpus.world().unwrap(),
        asked: RefCell::default(),
    };
    let policies = ErrorPolicies::new(gateway.supergraph(), |_| ErrorPolicy::Include);
    let executed = now(prepared.execute(&variables, &servers, &policies));
    let errors = executed
        .errors()
        .map(|errors| serde_json::from_slice(errors).unwrap());
    Outcome {
        data: Some(String::from_utf8(executed.data().to_vec()).unwrap()),
        errors: errors.unwrap_or_default(),
        asked: servers.asked.into_inner(),
    }
}

/// True if a case contains the result of introspection, which the single server does not support.
fn is_introspection(case: &Case) -> bool {
    case.data.is_some() && case.query.contains("__schema")
}

/// The response of the single server. The server does not execute cases with a refusal.
fn expected(corpus: &Corpus, case: &Case) -> Answer {
    if case.refused.is_some() || is_introspection(case) {
        return Answer {
            data: None,
            errors: Vec::new(),
        };
    }
    corpus.expected(&corpus.world().unwrap(), case)
}

/// The differences in an outcome. Empty if it is correct.
fn complaints(outcome: &Outcome, expected: &Answer, case: &Case) -> String {
    let mut text = String::new();
    if let Some(code) = &case.refused {
        let found = outcome
            .errors
            .first()
            .map(|error| &error["extensions"]["code"]);
        if outcome.data.is_some() || found.and_then(Value::as_str) != Some(code) {
            writeln!(
                text,
                "  wanted a refusal with {code}, found {:?}",
                outcome.data
            )
            .unwrap();
        }
    } else {
        let data = expected.data.as_ref().map(ToString::to_string);
        let data = case.data.clone().or(data);
        if outcome.data != data {
            writeln!(text, "  wanted {}", data.unwrap_or_default()).unwrap();
            writeln!(
                text,
                "  found  {}",
                outcome.data.as_deref().unwrap_or("a refusal")
            )
            .unwrap();
        }
        let mut paths: Vec<String> = outcome.errors.iter().map(path).collect();
        paths.sort();
        let mut wanted = case
            .errors
            .clone()
            .unwrap_or_else(|| expected.errors.iter().map(FieldError::place).collect());
        wanted.sort();
        if paths != wanted {
            writeln!(text, "  wanted errors at {wanted:?}, found {paths:?}").unwrap();
        }
    }
    if let Some(fetches) = &case.fetches {
        let mut found: Vec<&str> = outcome
            .asked
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        found.sort_unstable();
        if found != *fetches {
            writeln!(text, "  wanted fetches {fetches:?}, found {found:?}").unwrap();
        }
    }
    if !text.is_empty() {
        writeln!(
            text,
            "  query {} {}",
            case.query,
            Value::Object(case.variables.clone())
        )
        .unwrap();
        for error in &outcome.errors {
            writeln!(text, "  error {error}").unwrap();
        }
        for (name, body) in &outcome.asked {
            writeln!(text, "  asked {name} {body}").unwrap();
        }
    }
    text
}

fn path(error: &Value) -> String {
    let steps = error["path"].as_array().into_iter().flatten();
    let steps: Vec<String> = steps
        .map(|step| step.to_string().trim_matches('"').to_owned())
        .collect();
    steps.join(".")
}

fn corpora() -> Vec<Corpus> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    Corpus::read_all(&folder).unwrap_or_else(|error| panic!("{error}"))
}

/// The titles of the cases with a wrong outcome, each with its complaints.
fn wrong_cases(corpus: &Corpus) -> Vec<String> {
    let [closed, open] = [false, true].map(|it| gateway(corpus, it));
    let complaints = corpus.cases.iter().filter_map(|case| {
        let gateway = if is_introspection(case) {
            &open
        } else {
            &closed
        };
        let outcome = ask(gateway, corpus, case);
        let complaints = complaints(&outcome, &expected(corpus, case), case);
        (!complaints.is_empty()).then(|| format!("{}\n{complaints}", case.title))
    });
    complaints.collect()
}

/// Composition writes the members of a union for each subgraph since version 0.3 of the join specification. The
/// supergraphs of Federation 2.0 to 2.2 have only the union itself.
#[test]
fn unions_of_an_older_composition_are_answered_alike() {
    let mut corpus = corpora()
        .into_iter()
        .find(|corpus| corpus.name == "unions")
        .expect("the corpus");
    let mut pieces = corpus.sdl.split("@join__unionMember(");
    let mut older = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // The definition of the directive stays. It has types instead of values.
        let (arguments, rest) = piece.split_once(')').expect("closed arguments");
        if arguments.contains("join__Graph!") {
            older += "@join__unionMember(";
            older += piece;
        } else {
            older += rest;
        }
    }
    assert!(older.len() < corpus.sdl.len());
    corpus.sdl = older;
    let wrong = wrong_cases(&corpus);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_is_answered_as_one_server_would_answer() {
    let mut wrong = String::new();
    let (mut count, mut failed) = (0, 0);
    let mut corpora = corpora();
    let _ = Sample::of(&mut corpora, 1, INVENTED);
    for corpus in corpora {
        count += corpus.cases.len();
        for complaint in wrong_cases(&corpus) {
            failed += 1;
            writeln!(wrong, "{}: {complaint}", corpus.name).unwrap();
        }
    }
    println!("{count} cases, {failed} failed");
    assert!(
        wrong.is_empty(),
        "{failed} of {count} cases failed\n{wrong}"
    );
}

#[test]
fn every_invented_query_is_answered_as_one_server_would_answer() {
    let mut wrong = String::new();
    let (mut count, mut failed, mut refused) = (0, 0, 0);
    let mut corpora = corpora();
    let sample = Sample::of(&mut corpora, 1, INVENTED);
    if !sample.is_of_one {
        corpora.retain(|corpus| SPARED.iter().all(|(name, _)| corpus.name != *name));
    }
    for corpus in corpora {
        let gateway = gateway(&corpus, false);
        let world = corpus.world().unwrap();
        let mut inventor = Inventor::new(corpus.api(), &world, sample.seed);
        let mut failures = Vec::new();
        for _ in 0..sample.queries {
            let case = inventor.query();
            let expected = corpus.expected(&corpus.world().unwrap(), &case);
            let outcome = ask(&gateway, &corpus, &case);
            count += 1;
            if is_unplanned(&outcome) {
                refused += 1;
            } else if !is_alike(&outcome, &expected) {
                failures.push((case.query.len(), complaints(&outcome, &expected, &case)));
            }
        }
        failed += failures.len();
        // The shortest queries are the easiest to understand.
        failures.sort();
        for (_, complaints) in failures.into_iter().take(2) {
            writeln!(wrong, "{}:\n{complaints}", corpus.name).unwrap();
        }
    }
    println!("{count} queries, {failed} failed, {refused} refused");
    assert!(
        wrong.is_empty(),
        "{failed} of {count} queries failed\n{wrong}"
    );
    assert!(
        refused * REFUSED_ONE_IN <= count,
        "{refused} of {count} queries could not be planned"
    );
}

/// True if the planner found no plan. Such a refusal is not a wrong response.
fn is_unplanned(outcome: &Outcome) -> bool {
    let code = outcome
        .errors
        .first()
        .map(|error| &error["extensions"]["code"]);
    outcome.data.is_none() && code.and_then(Value::as_str) == Some("QUERY_PLANNING_FAILED")
}

/// True if the gateway's data equals the data of the single server, and both or neither have errors. The
/// number of errors may differ, because each server that passes a null on reports an error. Only the cases
/// test the order of members. If the first of two equal fields is skipped, servers use both orders.
fn is_alike(outcome: &Outcome, expected: &Answer) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let expected_data = expected.data.as_ref().map(|data| read(&data.to_string()));
    outcome.data.as_deref().map(read) == expected_data
        && outcome.errors.is_empty() == expected.errors.is_empty()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Entries of a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn what_is_not_served_is_refused_when_the_supergraph_is_loaded() {
    let mut wrong = String::new();
    let all = entries(&folder("refused"));
    assert!(!all.is_empty());
    for refused in all {
        let read = |name: &str| fs::read_to_string(refused.join(name)).unwrap();
        let (sdl, reason) = (read("supergraph.graphql"), read("refusal.txt"));
        let name = refused.file_name().unwrap().to_string_lossy();
        match Supergraph::parse(&sdl) {
            Ok(_) => writeln!(wrong, "{name} is served").unwrap(),
            Err(error) if !error.to_string().contains(reason.trim()) => {
                writeln!(wrong, "{name}: {error}").unwrap();
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The directives of Federation 2.0 to 2.12 and of connectors, with the minor version that introduced each.
const DIRECTIVES: [(&str, u32); 22] = [
    ("key", 0),
    ("requires", 0),
    ("provides", 0),
    ("external", 0),
    ("shareable", 0),
    ("extends", 0),
    ("override", 0),
    ("inaccessible", 0),
    ("tag", 0),
    ("link", 0),
    ("composeDirective", 1),
    ("interfaceObject", 3),
    ("authenticated", 5),
    ("requiresScopes", 5),
    ("policy", 6),
    ("context", 8),
    ("fromContext", 8),
    ("cost", 9),
    ("listSize", 9),
    ("connect", 10),
    ("source", 10),
    ("cacheTag", 12),
];

/// True if a subgraph uses a directive, under any name.
fn is_used(sdl: &str, directive: &str) -> bool {
    let used = |name: &str| {
        sdl.match_indices(&format!("@{name}")).any(|(at, found)| {
            let rest = &sdl[at + found.len()..];
            // Not in an import, and not as the beginning of a longer name.
            rest.starts_with([' ', '(', '\n', ')'])
        })
    };
    let own = sdl
        .split_once(&format!("name: \"@{directive}\", as: \"@"))
        .and_then(|(_, rest)| rest.split('"').next());
    used(directive) || own.is_some_and(used)
}

#[test]
fn every_directive_and_every_version_of_federation_has_a_case() {
    let mut subgraphs = Vec::new();
    for root in ["corpus", "refused"] {
        for folder in entries(&folder(root)) {
            for file in entries(&folder.join("subgraphs")) {
                subgraphs.push(fs::read_to_string(file).unwrap());
            }
        }
    }
    for (directive, since) in DIRECTIVES {
        let mut users = subgraphs.iter().filter(|sdl| is_used(sdl, directive));
        assert!(users.next().is_some(), "nothing has @{directive}");
        let version = format!("specs.apollo.dev/federation/v2.{since}\"");
        let is_early = |sdl: &&String| sdl.contains(&version) && is_used(sdl, directive);
        let is_first = subgraphs.iter().any(|sdl| is_early(&sdl));
        // Subgraphs of version 1 also use the directives of version 2.0.
        assert!(
            is_first || directive == "extends",
            "nothing has @{directive} of 2.{since}"
        );
    }
    for minor in 0..=12 {
        let version = format!("specs.apollo.dev/federation/v2.{minor}\"");
        assert!(
            subgraphs.iter().any(|sdl| sdl.contains(&version)),
            "nothing has version 2.{minor}"
        );
    }
}
