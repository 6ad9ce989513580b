//! Tests responses in parts, for queries with deferred fragments.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub, json as answer_json};

pub(crate) const BY_PATH: &str = "multipart/mixed;deferSpec=20220824, application/json;q=0.9";
pub(crate) const BY_ID: &str = "multipart/mixed;incrementalSpec=v0.2, application/json;q=0.9";

pub(crate) const RATINGS: &str =
    "query Ratings { locations { id name ... @defer(label: \"slow\") { overallRating } } }";

pub(crate) const LOCATIONS: &str = r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"A"},{"__typename":"Location","id":"2","name":"B"}]}}"#;
pub(crate) const REVIEWS: &str =
    r#"{"data":{"_entities":[{"overallRating":4},{"overallRating":5}]}}"#;
const WHOLE: &str = r#"{"data":{"locations":[{"id":"1","name":"A","overallRating":4},{"id":"2","name":"B","overallRating":5}]}}"#;

/// A response, read chunk by chunk.
pub(crate) struct Stream {
    socket: BufReader<TcpStream>,
    pub(crate) head: String,
}

impl Stream {
    pub(crate) fn begin(gateway: &Gateway, accept: &str, query: &str) -> Self {
        let body = json!({ "query": query }).to_string();
        Self::send(gateway, accept, &body)
    }

    pub(crate) fn send(gateway: &Gateway, accept: &str, body: &str) -> Self {
        Self::send_as(gateway, accept, "yes", body)
    }

    /// Sends a request with this value of the header `x-mine`.
    pub(crate) fn send_as(gateway: &Gateway, accept: &str, mine: &str, body: &str) -> Self {
        let mut socket = TcpStream::connect(&gateway.address).unwrap();
        let length = body.len();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\naccept: {accept}\r\naccept-encoding: gzip\r\nx-mine: {mine}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut socket = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(socket.read_line(&mut head).unwrap(), 0, "{head}");
        }
        Self { socket, head }
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.head.lines().any(|it| it.eq_ignore_ascii_case(line))
    }

    /// The length of a body in one piece.
    pub(crate) fn length(&self) -> Option<usize> {
        let mut lines = self.head.lines();
        let length = lines.find_map(|it| it.strip_prefix("content-length: "))?;
        Some(length.parse().unwrap())
    }

    /// A body in one piece.
    pub(crate) fn whole(mut self) -> String {
        let length = self.length();
        let length = length.unwrap_or_else(|| panic!("not in one piece: {}", self.head));
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// The next chunk. `None` at the end.
    pub(crate) fn chunk(&mut self) -> Option<String> {
        let mut line = String::new();
        self.socket.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16);
        let length = length.unwrap_or_else(|_| panic!("no chunk: {line:?}"));
        let mut bytes = vec![0; length + 2];
        self.socket.read_exact(&mut bytes).unwrap();
        bytes.truncate(length);
        (length > 0).then(|| String::from_utf8(bytes).unwrap())
    }

    /// The JSON of the next part, and true if it is marked as the last.
    pub(crate) fn part(&mut self) -> (Value, bool) {
        let text = self.chunk().expect("a part");
        let (_, inner) = text
            .split_once("content-type: application/json\r\n\r\n")
            .unwrap();
        let (inner, end) = inner.split_once("\r\n--graphql").unwrap();
        let part: Value = serde_json::from_str(inner).unwrap();
        let is_last = end == "--\r\n";
        assert_eq!(part["hasNext"], !is_last, "{text}");
        (part, is_last)
    }

    pub(crate) fn rest(mut self) -> Vec<Value> {
        let mut parts = Vec::new();
        loop {
            let (part, is_last) = self.part();
            parts.push(part);
            if is_last {
                assert_eq!(self.chunk(), None);
                return parts;
            }
        }
    }
}

/// Both subgraphs. `reviews` reports each request, and waits for a signal before each response.
pub(crate) struct Slow {
    pub(crate) stub: Stub,
    pub(crate) release: Sender<()>,
    pub(crate) asked: Receiver<()>,
}

pub(crate) fn slow_reviews(reviews: Answer) -> Slow {
    let (release, gate) = channel::<()>();
    let (ask, asked) = channel();
    let (gate, ask) = (Mutex::new(gate), Mutex::new(ask));
    let stub = Stub::start(move |seen| {
        if seen.target == "/l" {
            return answer_json(LOCATIONS);
        }
        ask.lock().unwrap().send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
        reviews.clone()
    });
    Slow {
        stub,
        release,
        asked,
    }
}

#[test]
fn what_is_deferred_comes_in_a_part_of_its_own() {
    let slow = slow_reviews(answer_json(REVIEWS));
    let gateway = Gateway::start(&slow.stub.config(""));
    let mut stream = Stream::begin(&gateway, BY_PATH, RATINGS);
    assert!(stream.has("content-type: multipart/mixed;boundary=\"graphql\";deferSpec=20220824"));
    assert!(!stream.head.contains("content-encoding"), "{}", stream.head);
    // Sent before `reviews` has responded.
    let first = stream.chunk().unwrap();
    assert_eq!(
        first,
        "\r\n--graphql\r\ncontent-type: application/json\r\n\r\n{\"data\":{\"locations\":[{\"id\":\"1\",\"name\":\"A\"},{\"id\":\"2\",\"name\":\"B\"}]},\"hasNext\":true}\r\n--graphql"
    );
    slow.asked.recv().unwrap();
    slow.release.send(()).unwrap();
    let (part, is_last) = stream.part();
    assert!(is_last);
    let place = |index: usize, rating: usize| json!({"data": {"overallRating": rating}, "path": ["locations", index], "label": "slow"});
    assert_eq!(part["incremental"], json!([place(0, 4), place(1, 5)]));
    assert_eq!(stream.chunk(), None);
    // The connection stays open.
    let mut stream = Stream::begin(&gateway, BY_ID, RATINGS);
    assert!(stream.has("content-type: multipart/mixed;boundary=\"graphql\";incrementalSpec=v0.2"));
    let (first, _) = stream.part();
    let pending =
        |id: &str, index: usize| json!({"id": id, "path": ["locations", index], "label": "slow"});
    assert_eq!(first["pending"], json!([pending("0", 0), pending("1", 1)]));
    slow.release.send(()).unwrap();
    let (part, _) = stream.part();
    assert_eq!(
        part["incremental"],
        json!([{"id": "0", "data": {"overallRating": 4}}, {"id": "1", "data": {"overallRating": 5}}])
    );
    assert_eq!(part["completed"], json!([{"id": "0"}, {"id": "1"}]));
    assert_eq!(stream.chunk(), None);
    let metrics = gateway.ask_health("/metrics");
    assert!(metrics.text().contains("code=\"200\"") || metrics.text().contains("status=\"200\""));
}

#[test]
fn one_piece_where_parts_are_not_wanted_or_not_to_be_had() {
    let planets = Stub::planets();
    let on = Gateway::start(&planets.config("batching: {enabled: true, mode: batch_http_link}"));
    let off = Gateway::start(&planets.config("supergraph: {defer_support: false}"));
    let if_false = RATINGS.replace("@defer(", "@defer(if: false, ");
    let no_wait = "{ locations { id ... @defer { name } } }";
    for (gateway, accept, query) in [
        (&on, "application/json", RATINGS),
        (&on, "*/*", RATINGS),
        (&on, "multipart/mixed", RATINGS),
        (&on, "multipart/mixed;deferSpec=20220824;q=0, */*", RATINGS),
        (&on, BY_PATH, if_false.as_str()),
        (&on, BY_ID, no_wait),
        (&off, BY_PATH, RATINGS),
    ] {
        let body = Stream::begin(gateway, accept, query).whole();
        if query == no_wait {
            assert!(
                body.starts_with(r#"{"data":{"locations":[{"id":"1","name":"A"}"#),
                "{body}"
            );
        } else {
            assert_eq!(body, WHOLE, "{accept} {query}");
        }
    }
    // A batch of operations.
    let list = json!([{ "query": RATINGS }]).to_string();
    let stream = Stream::send(&on, BY_PATH, &list);
    assert!(
        stream.has("content-type: application/json"),
        "{}",
        stream.head
    );
    // Deferred by a variable.
    let by_variable = RATINGS
        .replace("query Ratings", "query Ratings($later: Boolean!)")
        .replace("@defer(", "@defer(if: $later, ");
    for (later, parts) in [(true, true), (false, false)] {
        let body = json!({"query": by_variable, "variables": {"later": later}}).to_string();
        let stream = Stream::send(&on, BY_PATH, &body);
        assert_eq!(
            stream.head.contains("multipart/mixed"),
            parts,
            "{}",
            stream.head
        );
    }
}

#[test]
fn an_error_of_a_deferred_request_is_told_in_its_part() {
    for (accept, at) in [(BY_PATH, "path"), (BY_ID, "id")] {
        let slow = slow_reviews(Answer::With(500, None, b"broken".to_vec()));
        slow.release.send(()).unwrap();
        let config = "include_subgraph_errors: {all: true}\n";
        let gateway = Gateway::start(&slow.stub.config(config));
        let parts = Stream::begin(&gateway, accept, RATINGS).rest();
        assert_eq!(parts.len(), 2);
        assert!(parts[0].get("errors").is_none(), "{}", parts[0]);
        let incremental = parts[1]["incremental"].as_array().unwrap();
        assert_eq!(incremental.len(), 2);
        assert_eq!(incremental[0]["data"], json!({"overallRating": null}));
        assert!(incremental[0].get(at).is_some());
        assert_eq!(
            incremental[0]["errors"][0]["path"],
            json!(["locations", "@"])
        );
    }
}

#[test]
fn a_fragment_that_cannot_be_delivered_says_so_at_each_place() {
    let stub = Stub::start(|seen| match seen.target.as_str() {
        "/l" => answer_json(LOCATIONS),
        _ => Answer::With(500, None, b"broken".to_vec()),
    });
    let gateway = Gateway::start(&stub.config("include_subgraph_errors: {all: true}\n"));
    let query = "{ locations { id ... @defer { reviewsForLocation { comment } } } }";
    for (accept, list) in [(BY_PATH, "incremental"), (BY_ID, "completed")] {
        let parts = Stream::begin(&gateway, accept, query).rest();
        let places = parts[1][list].as_array().unwrap();
        assert_eq!(places.len(), 2, "{}", parts[1]);
        for place in places {
            let errors = place["errors"].as_array().map_or(0, Vec::len);
            assert_eq!(errors, 1, "{place}");
            assert!(place["data"].is_null());
        }
    }
}

#[test]
fn an_answer_that_goes_on_counts_as_a_request() {
    let slow = slow_reviews(answer_json(REVIEWS));
    let config = "traffic_shaping: {router: {concurrency_limit: 1}}\n";
    let gateway = Gateway::start(&slow.stub.config(config));
    let mut stream = Stream::begin(&gateway, BY_PATH, RATINGS);
    stream.part();
    slow.asked.recv().unwrap();
    let other = post(r#"{"query":"{ locations { id } }"}"#);
    assert_eq!(gateway.send(&other).status, 503);
    slow.release.send(()).unwrap();
    assert!(stream.part().1);
    assert_eq!(stream.chunk(), None);
    assert_eq!(gateway.send(&other).status, 200);
}

#[test]
fn each_part_passes_the_response_stages() {
    let messages = Arc::new(Mutex::new(Vec::<Value>::new()));
    let seen = Arc::clone(&messages);
    let coprocessor = Stub::coprocessor(move |message| {
        seen.lock().unwrap().push(message.clone());
        if message["stage"] == "SupergraphResponse" {
            message["body"]["extensions"] = json!({"by": "coprocessor"});
        }
        message.as_object_mut().unwrap().remove("hasNext");
    });
    let stage = "{response: {body: true, headers: true, status_code: true}}";
    let config = format!(
        "coprocessor: {{url: '{}', router: {stage}, supergraph: {stage}, execution: {stage}}}\n",
        coprocessor.url
    );
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(&config));
    for accept in [BY_PATH, BY_ID] {
        messages.lock().unwrap().clear();
        let parts = Stream::begin(&gateway, accept, RATINGS).rest();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0]["extensions"]["by"], "coprocessor");
        assert_eq!(parts[1]["extensions"]["by"], "coprocessor");
        assert_eq!(parts[1]["incremental"][1]["data"]["overallRating"], 5);
        let messages = messages.lock().unwrap();
        let stages: Vec<_> = messages
            .iter()
            .map(|it| it["stage"].as_str().unwrap())
            .collect();
        let all = ["ExecutionResponse", "SupergraphResponse", "RouterResponse"];
        assert_eq!(stages, [all, all].concat());
        for (index, message) in messages.iter().enumerate() {
            let (is_first, is_router) = (index < 3, index % 3 == 2);
            assert_eq!(message.get("statusCode").is_some(), is_first, "{message}");
            assert_eq!(message.get("headers").is_some(), is_first, "{message}");
            let has_next = message.get("hasNext").cloned();
            assert_eq!(has_next, (!is_router).then(|| json!(is_first)), "{message}");
            if is_router {
                assert!(message["body"].as_str().unwrap().contains("--graphql"));
            }
        }
    }
}

#[test]
fn a_stage_that_fails_at_a_part_ends_the_answer() {
    let coprocessor = Stub::start(|seen| {
        let message = seen.json();
        match message["hasNext"] == true {
            true => answer_json(message),
            false => Answer::With(500, None, Vec::new()),
        }
    });
    let config = format!(
        "coprocessor: {{url: '{}', supergraph: {{response: {{body: true}}}}}}\n",
        coprocessor.url
    );
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(&config));
    let parts = Stream::begin(&gateway, BY_ID, RATINGS).rest();
    let code = &parts[1]["completed"][0]["errors"][0]["extensions"]["code"];
    assert_eq!(code, "INTERNAL_SERVER_ERROR");
}

#[test]
fn scripts_know_the_first_part() {
    let script = "fn supergraph_service(service) { service.map_response(|response| { response.body.extensions = #{first: response.is_primary()}; }); }";
    let planets = Stub::planets();
    let gateway = Setup::new(&planets.config("rhai: {scripts: rhai}"))
        .file("rhai/main.rhai", script)
        .start();
    let parts = Stream::begin(&gateway, BY_PATH, RATINGS).rest();
    let first: Vec<_> = parts.iter().map(|it| &it["extensions"]["first"]).collect();
    assert_eq!(first, [&json!(true), &json!(false)]);
}

#[test]
fn rules_for_headers_hold_for_deferred_requests() {
    let stub = Stub::start(|seen| match seen.target.as_str() {
        "/l" => Answer::Full(
            200,
            "content-type: application/json\r\nx-by: locations\r\n".to_owned(),
            LOCATIONS.into(),
        ),
        _ => Answer::Full(
            200,
            "content-type: application/json\r\nx-by: reviews\r\n".to_owned(),
            REVIEWS.into(),
        ),
    });
    let config = "headers: {all: {request: [{propagate: {named: x-mine}}], response: [{propagate: {named: x-by}}]}}\n";
    let gateway = Gateway::start(&stub.config(config));
    let stream = Stream::begin(&gateway, BY_PATH, RATINGS);
    // The head is sent with the first part.
    assert!(stream.has("x-by: locations"), "{}", stream.head);
    stream.rest();
    for seen in stub.seen() {
        assert_eq!(seen.header("x-mine"), Some("yes"), "{}", seen.target);
    }
    assert_eq!(stub.seen().len(), 2);
}

#[test]
fn the_bound_on_a_response_is_that_of_all_its_parts() {
    let long = "x".repeat(3_000);
    let reviews = format!(
        r#"{{"data":{{"_entities":[{{"reviewsForLocation":[{{"comment":"{long}"}}]}},{{"reviewsForLocation":[{{"comment":"{long}"}}]}}]}}}}"#
    );
    let stub = Stub::start(move |seen| match seen.target.as_str() {
        "/l" => answer_json(LOCATIONS),
        _ => answer_json(&reviews),
    });
    let gateway = Gateway::start(&stub.config("limits: {response_max_bytes: 4KiB}\n"));
    let query = "{ locations { id ... @defer { reviewsForLocation { comment } } } }";
    let parts = Stream::begin(&gateway, BY_PATH, query).rest();
    assert_eq!(parts[0]["data"]["locations"][1]["id"], "2");
    let code =
        |index: usize| parts[1]["incremental"][index]["errors"][0]["extensions"]["code"].clone();
    assert_eq!(
        (code(0), code(1)),
        (Value::Null, json!("RESPONSE_TOO_LARGE"))
    );
    assert_eq!(parts[1]["incremental"][1]["data"], Value::Null);
}

#[test]
fn fragments_within_fragments_come_one_after_the_other() {
    let stub = Stub::start(|seen| match seen.target.as_str() {
        "/l" if seen.body.contains("_entities") => {
            answer_json(r#"{"data":{"_entities":[{"name":"A"}]}}"#)
        }
        "/l" => answer_json(LOCATIONS),
        _ => answer_json(
            r#"{"data":{"_entities":[{"reviewsForLocation":[{"comment":"c","location":{"__typename":"Location","id":"1"}}]},{"reviewsForLocation":[]}]}}"#,
        ),
    });
    let gateway = Gateway::start(&stub.config(""));
    let query = r#"{ locations { id ... @defer(label: "a") { reviewsForLocation { comment ... @defer(label: "b") { location { name } } } } } }"#;
    let inner = json!(["locations", 0, "reviewsForLocation", 0]);
    let parts = Stream::begin(&gateway, BY_PATH, query).rest();
    assert_eq!(parts.len(), 3, "{parts:?}");
    assert_eq!(
        parts[0]["data"],
        json!({"locations": [{"id": "1"}, {"id": "2"}]})
    );
    let labels = |index: usize| {
        let list = parts[index]["incremental"].as_array().unwrap();
        list.iter()
            .map(|it| it["label"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (labels(1), labels(2)),
        (vec![json!("a"), json!("a")], vec![json!("b")])
    );
    let reviews = json!({"reviewsForLocation": [{"comment": "c"}]});
    assert_eq!(parts[1]["incremental"][0]["data"], reviews);
    let last = &parts[2]["incremental"][0];
    assert_eq!(
        (&last["path"], &last["data"]),
        (&inner, &json!({"location": {"name": "A"}}))
    );

    let parts = Stream::begin(&gateway, BY_ID, query).rest();
    assert_eq!(parts.len(), 3, "{parts:?}");
    assert_eq!(parts[0]["pending"].as_array().unwrap().len(), 2);
    assert_eq!(parts[1]["completed"].as_array().unwrap().len(), 2);
    assert_eq!(
        parts[1]["pending"],
        json!([{"id": "2", "path": inner, "label": "b"}])
    );
    let last = json!([{"id": "2", "data": {"location": {"name": "A"}}}]);
    assert_eq!(parts[2]["incremental"], last);
    assert_eq!(parts[2]["completed"], json!([{"id": "2"}]));
}

#[test]
fn authorization_holds_for_deferred_fields() {
    let sdl = include_str!("../../../services/planets/supergraph.graphql");
    let rating = "overallRating: Float @join__field(graph: REVIEWS)";
    assert!(sdl.contains(rating));
    let sdl = sdl.replace(rating, &format!("{rating} @authenticated")).replacen(
        "for: EXECUTION)",
        "for: EXECUTION) @link(url: \"https://specs.apollo.dev/authenticated/v0.1\", for: SECURITY)",
        1,
    );
    let sdl = format!(
        "{sdl}\ndirective @authenticated on FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM\n"
    );
    let stub = Stub::start(|seen| match seen.target.as_str() {
        "/l" => answer_json(LOCATIONS),
        // The subgraph returns more fields than requested.
        _ => answer_json(
            r#"{"data":{"_entities":[{"overallRating":4,"reviewsForLocation":[]},{"overallRating":5,"reviewsForLocation":[]}]}}"#,
        ),
    });
    let gateway = Setup::new(&stub.config(""))
        .file("supergraph.graphql", &sdl)
        .start();
    let query = "{ locations { id ... @defer { overallRating reviewsForLocation { comment } } } }";
    for accept in [BY_PATH, BY_ID] {
        let parts = Stream::begin(&gateway, accept, query).rest();
        let error = &parts[0]["errors"][0]["extensions"]["code"];
        assert_eq!(error, "UNAUTHORIZED_FIELD_OR_TYPE");
        let places = parts[1]["incremental"].as_array().unwrap();
        let data: Vec<_> = places.iter().map(|it| &it["data"]).collect();
        let hidden = json!({"overallRating": null, "reviewsForLocation": []});
        assert_eq!(data, [&hidden, &hidden]);
    }
    for seen in stub.seen() {
        assert!(!seen.body.contains("overallRating"), "{}", seen.body);
    }
}

#[test]
fn a_stage_can_end_an_answer_at_its_first_part() {
    let planets = Stub::planets();
    for stage in ["supergraph", "router"] {
        let coprocessor = Stub::coprocessor(move |message| {
            message["control"] = json!({"break": 403});
            message.as_object_mut().unwrap().remove("headers");
            let refused = json!({"errors": [{"message": "no"}]});
            message["body"] = match stage {
                "router" => refused.to_string().into(),
                _ => refused,
            };
        });
        let config = format!(
            "coprocessor: {{url: '{}', {stage}: {{response: {{body: true}}}}}}\n",
            coprocessor.url
        );
        let gateway = Gateway::start(&planets.config(&config));
        let stream = Stream::begin(&gateway, BY_PATH, RATINGS);
        assert!(stream.head.starts_with("HTTP/1.1 403"), "{}", stream.head);
        assert!(
            stream.has("content-type: application/json"),
            "{}",
            stream.head
        );
        let body: Value = serde_json::from_str(&stream.whole()).unwrap();
        assert_eq!(body, json!({"errors": [{"message": "no"}]}), "{stage}");
    }
}

#[test]
fn long_labels_and_names_do_not_multiply() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    // The response would repeat each label for every place, in the lists of both formats.
    let label = "l".repeat(300);
    let query = RATINGS.replace("slow", &label);
    let body = Stream::begin(&gateway, BY_ID, &query).whole();
    assert_eq!(body, WHOLE);
    // The longest alias within the limit on selections, in the paths of many places.
    let alias = "a".repeat(200_000);
    let query = RATINGS.replace("locations", &format!("{alias}: locations"));
    let of_each = |text: fn(usize) -> String| (0..8).map(text).collect::<Vec<_>>().join(",");
    let locations = of_each(|id| format!(r#"{{"__typename":"Location","id":"{id}","name":"A"}}"#));
    let locations = format!(r#"{{"data":{{"{alias}":[{locations}]}}}}"#);
    let ratings = of_each(|id| format!(r#"{{"overallRating":{id}}}"#));
    let ratings = format!(r#"{{"data":{{"_entities":[{ratings}]}}}}"#);
    let whole = of_each(|id| format!(r#"{{"id":"{id}","name":"A","overallRating":{id}}}"#));
    let whole = format!(r#"{{"data":{{"{alias}":[{whole}]}}}}"#);
    let stub = Stub::start(move |seen| match seen.target.as_str() {
        "/l" => answer_json(&locations),
        _ => answer_json(&ratings),
    });
    let gateway = Gateway::start(&stub.config(""));
    let body = json!({ "query": query }).to_string();
    let request = Request {
        headers: &[("content-type", "application/json"), ("accept", BY_ID)],
        ..post(&body)
    };
    let answer = gateway.send(&request);
    assert!(answer.text() == whole);
}

#[test]
fn the_cost_of_an_answer_is_that_of_all_its_parts() {
    let planets = Stub::planets();
    let config = "demand_control: {enabled: true, mode: measure, strategy: {static_estimated: {list_size: 10, max: 1000}}}\n";
    let gateway = Gateway::start(&planets.config(config));
    let cost = || {
        let metrics = gateway.ask_health("/metrics");
        let mut lines = metrics.text().lines();
        let sum = lines.find_map(|line| line.strip_prefix("cost_actual_sum "));
        sum.unwrap().parse::<f64>().unwrap()
    };
    Stream::begin(&gateway, "application/json", RATINGS).whole();
    let in_one_piece = cost();
    assert!(in_one_piece > 0.0);
    Stream::begin(&gateway, BY_PATH, RATINGS).rest();
    assert!((cost() - 2.0 * in_one_piece).abs() < 1e-6);
}

#[test]
fn a_thousand_deferred_fragments_are_bounded() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let many: String = (0..1_000)
        .map(|index| format!("... @defer(label: \"d{index}\") {{ overallRating }} "))
        .collect();
    let query = format!("{{ locations {{ id {many} }} }}");
    for accept in [BY_PATH, BY_ID] {
        let body = json!({ "query": query }).to_string();
        let mut stream = Stream::send(&gateway, accept, &body);
        assert!(stream.head.starts_with("HTTP/1.1 200"), "{}", stream.head);
        let mut bytes = 0;
        if stream.head.contains("multipart") {
            while let Some(chunk) = stream.chunk() {
                bytes += chunk.len();
            }
        }
        assert!(bytes < 100_000, "{bytes}");
    }
    // Other requests are served.
    assert_eq!(
        gateway
            .send(&post(r#"{"query":"{ locations { id } }"}"#))
            .status,
        200
    );
}

#[test]
fn apollo_client_puts_the_parts_together() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    for format in ["20220824", "v0.2"] {
        let stub = Stub::start(|seen| match seen.target.as_str() {
            "/l" => answer_json(LOCATIONS),
            _ => {
                // If all parts arrive together, Apollo Client shows them as one.
                let (_keep, wait) = channel::<()>();
                let _ = wait.recv_timeout(Duration::from_millis(300));
                answer_json(REVIEWS)
            }
        });
        let gateway = Gateway::start(&stub.config(""));
        let url = format!("http://{}/", gateway.address);
        let words = ["defer.mjs", &url, format];
        let Some(said) = test_client::node::run(&folder, "@apollo/client", &words) else {
            return;
        };
        assert_eq!(
            said, "streaming: A -, B -\ncomplete: A 4, B 5\n",
            "{format}"
        );
        let asked = stub.seen();
        assert_eq!(asked.len(), 2);
    }
}
