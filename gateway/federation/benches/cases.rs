//! The cases that the benches of this crate measure: no network, one thread, over the lab's supergraph.

use std::fmt::Write as _;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_federation::{
    ErrorPolicies, ErrorPolicy, Fetch, OperationOptions, Operations, Prepared, SubgraphAnswer,
    SubgraphRequest, Supergraph,
};

const SUPERGRAPH: &str = include_str!("../../../services/planets/supergraph.graphql");
const ONE: &str = "query getLocationById($locationId: ID!) { location(id: $locationId) \
    { description id name overallRating photo } }";
const ALL: &str = "query getAllLocations { locations \
    { description id overallRating reviewsForLocation { comment } } }";

/// The subgraphs, with one response for each fetch of the plan.
struct Answers(Vec<String>);

impl Fetch for Answers {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        black_box(&request.body);
        SubgraphAnswer::from_body(self.0[request.fetch_index].as_bytes().to_vec())
    }
}

fn execute(prepared: &Prepared, variables: &[u8], answers: &Answers, policies: &ErrorPolicies) {
    let variables = prepared.coerce(Some(variables)).unwrap();
    let mut future = pin!(prepared.execute(&variables, answers, policies));
    // Large responses pause for other requests. There are no others here.
    loop {
        let poll = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(executed) = poll {
            assert_eq!(executed.error_count(), 0);
            black_box(executed.into_body());
            return;
        }
    }
}

/// The responses for a list of locations with reviews.
fn list(locations: usize, reviews: usize) -> Answers {
    let mut places = String::new();
    let mut ratings = String::new();
    let description = "a place of plains and waters, which few leave in a hurry ".repeat(4);
    let review = "{\"comment\":\"as far from everything as one could hope for\"}";
    for index in 0..locations {
        let comma = if index > 0 { "," } else { "" };
        let all = vec![review; reviews].join(",");
        write!(places, "{comma}{{\"__typename\":\"Location\",\"id\":\"loc-{index}\",\"description\":\"{description}\"}}").unwrap();
        write!(
            ratings,
            "{comma}{{\"overallRating\":4.5,\"reviewsForLocation\":[{all}]}}"
        )
        .unwrap();
    }
    Answers(vec![
        format!("{{\"data\":{{\"locations\":[{places}]}}}}"),
        format!("{{\"data\":{{\"_entities\":[{ratings}]}}}}"),
    ])
}

/// Passes each case to `measure`: its name, the number of calls in a turn, and the call.
pub(crate) fn each(mut measure: impl FnMut(&str, u32, &mut dyn FnMut())) {
    let supergraph = Arc::new(Supergraph::parse(SUPERGRAPH).unwrap());
    let operations = Operations::new(Arc::clone(&supergraph), OperationOptions::default());
    let policies = ErrorPolicies::new(&supergraph, |_| ErrorPolicy::Redact);
    let one = operations.prepare(ONE, None).unwrap();
    let all = operations.prepare(ALL, None).unwrap();
    assert_eq!((one.fetch_count(), all.fetch_count()), (2, 2));
    let location = Answers(vec![
        "{\"data\":{\"location\":{\"__typename\":\"Location\",\"id\":\"loc-1\",\"description\":\"plains\",\"name\":\"Here\",\"photo\":\"https://photos.test/1\"}}}".to_owned(),
        "{\"data\":{\"_entities\":[{\"overallRating\":4.5}]}}".to_owned(),
    ]);
    let variables = b"{ \"locationId\": \"loc-1\" }";

    measure("find an operation ready", 20_000, &mut || {
        black_box(operations.cached(ONE, None));
    });
    measure("coerce one variable", 20_000, &mut || {
        black_box(one.coerce(Some(variables)).unwrap());
    });
    measure("execute: one entity, two fetches", 20_000, &mut || {
        execute(&one, variables, &location, &policies);
    });
    for (locations, reviews, calls) in [(5, 5, 10_000), (100, 5, 500), (1_000, 10, 30)] {
        let answers = list(locations, reviews);
        let bytes: usize = answers.0.iter().map(String::len).sum();
        let name = format!("execute: {locations} entities, {bytes} bytes");
        measure(&name, calls, &mut || {
            execute(&all, b"{}", &answers, &policies);
        });
    }
    measure("parse, validate, plan and compile", 50, &mut || {
        let fresh = Operations::new(Arc::clone(&supergraph), OperationOptions::default());
        black_box(fresh.prepare(ALL, None).unwrap());
    });
    measure("read the supergraph", 10, &mut || {
        black_box(Supergraph::parse(SUPERGRAPH).unwrap());
    });
}
