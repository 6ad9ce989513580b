//! The gateway's federation, without sockets, against subgraphs that answer as servers would.

#![cfg(test)]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_audit::{Answer, Case, Corpus, FieldError, Inventor, World};
use gateway_federation::{
    ErrorPolicies, ErrorPolicy, Fetch, OperationOptions, Operations, SubgraphAnswer,
    SubgraphRequest, Supergraph,
};
use serde_json::Value;

/// Queries that are made up for each corpus.
const INVENTED: usize = 25;

/// Where made up queries find what is known to be wrong, and why. All of it lies in the planner;
/// the cases of these corpora are asked all the same.
const SPARED: [(&str, &str); 5] = [
    (
        "interface-objects",
        "of two objects of one interface below conditions, fields of one are asked of the other",
    ),
    (
        "requires-arguments",
        "arguments of required fields below another entity are forgotten",
    ),
    (
        "mismatch",
        "key fields are compared within one selection, not between one under a condition and one not",
    ),
    (
        "interface-objects-far",
        "what an interface object requires is left out below a condition on one object",
    ),
    (
        "null-keys-chain",
        "nothing wrong: one server finds what a key of null does not lead to",
    ),
];

/// Made up queries that may be refused because the planner finds no way, in one of so many.
const REFUSED_ONE_IN: usize = 25;

/// How many are made up for a person who looks into one corpus.
const INVENTED_FOR_ONE: usize = 3000;

/// The subgraphs of a corpus behind the seam where sockets would be.
struct Servers<'a> {
    corpus: &'a Corpus,
    world: World,
    asked: RefCell<Vec<(String, String)>>,
}

/// What the gateway made of a request.
struct Outcome {
    /// The data as text, exactly.
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

/// Nothing here waits for anything outside, so polling again is enough.
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

fn gateway(corpus: &Corpus) -> Operations {
    let supergraph = Supergraph::parse(&corpus.sdl).expect("a composed supergraph");
    Operations::new(Arc::new(supergraph), OperationOptions::default())
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
    let prepared = match gateway.prepare(&case.query, case.operation.as_deref()) {
        Ok(prepared) => prepared,
        Err(refusal) => return refused(errors_of(&refusal.errors)),
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

/// What one server says; it is not asked what it would have to refuse.
fn expected(corpus: &Corpus, case: &Case) -> Answer {
    if case.refused.is_some() {
        return Answer {
            data: None,
            errors: Vec::new(),
        };
    }
    corpus.expected(&corpus.world().unwrap(), case)
}

/// What is wrong with an outcome; empty when all is well.
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
    let mut corpora = Corpus::read_all(&folder).unwrap_or_else(|error| panic!("{error}"));
    #[expect(
        clippy::disallowed_methods,
        reason = "a person who looks into one corpus names it"
    )]
    if let Ok(only) = std::env::var("CORPUS") {
        corpora.retain(|corpus| corpus.name == only);
    }
    corpora
}

#[test]
fn every_case_is_answered_as_one_server_would_answer() {
    let mut wrong = String::new();
    let (mut count, mut failed) = (0, 0);
    for corpus in corpora() {
        let gateway = gateway(&corpus);
        for case in &corpus.cases {
            let expected = expected(&corpus, case);
            let outcome = ask(&gateway, &corpus, case);
            let complaints = complaints(&outcome, &expected, case);
            count += 1;
            if !complaints.is_empty() {
                failed += 1;
                writeln!(wrong, "{}: {}\n{complaints}", corpus.name, case.title).unwrap();
            }
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
    if corpora.len() > 1 {
        corpora.retain(|corpus| SPARED.iter().all(|(name, _)| corpus.name != *name));
    }
    let wanted = if corpora.len() == 1 {
        INVENTED_FOR_ONE
    } else {
        INVENTED
    };
    for corpus in corpora {
        let gateway = gateway(&corpus);
        let world = corpus.world().unwrap();
        let mut inventor = Inventor::new(corpus.api(), &world, 1);
        let mut failures = Vec::new();
        for _ in 0..wanted {
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
        // The shortest say most.
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

/// Whether the planner found no way: a refusal that says so is no wrong answer.
fn is_unplanned(outcome: &Outcome) -> bool {
    let code = outcome
        .errors
        .first()
        .map(|error| &error["extensions"]["code"]);
    outcome.data.is_none() && code.and_then(Value::as_str) == Some("QUERY_PLANNING_FAILED")
}

/// Where one server has errors the gateway has some, too; their number may differ, because a
/// null that is passed on is an error in each server that passes it on. The order of members is
/// left to the cases: where the first of two equal fields is skipped, both orders are in use.
fn is_alike(outcome: &Outcome, expected: &Answer) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let expected_data = expected.data.as_ref().map(|data| read(&data.to_string()));
    outcome.data.as_deref().map(read) == expected_data
        && outcome.errors.is_empty() == expected.errors.is_empty()
}
