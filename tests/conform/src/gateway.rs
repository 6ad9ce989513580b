//! The effect of a coprocessor, checked at the gateway's client and at its origin.
//!
//! The cases send a coprocessor the same requests as the gateway would. This test uses the gateway itself,
//! with the configuration of the lab. It reveals a coprocessor that passes every case but is never called by
//! the gateway, or that sends responses the gateway cannot use.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::http::{Address, Answer, Connection};
use crate::programs::Program;

type Proof = fn(&Address) -> anyhow::Result<()>;

/// All proofs with their names.
pub const PROOFS: [(&str, Proof); 4] = [
    ("through the gateway: the header reaches the origin", header),
    ("through the gateway: ten ids reach the client", ids),
    (
        "through the gateway: name and version reach the origin",
        client,
    ),
    ("through the gateway: a false token gets 401", false_tokens),
];

const SUPERGRAPH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../services/planets/supergraph.graphql"
);
/// A query that needs both subgraphs.
const QUERY: &str = r#"{"query":"{ locations { id overallRating } }"}"#;
const REQUESTS: u64 = 3;

fn header(coprocessor: &Address) -> anyhow::Result<()> {
    let keys = "subgraph: {all: {request: {headers: true}}}";
    let path = Path::open(coprocessor, "/static-subgraph", keys)?;
    for _ in 0..REQUESTS {
        path.query(&[])?.is_data()?;
    }
    path.origin_saw("source", "coprocessor")
}

fn ids(coprocessor: &Address) -> anyhow::Result<()> {
    let path = Path::open(
        coprocessor,
        "/guid-response",
        "router: {response: {headers: true}}",
    )?;
    let mut ids = Vec::new();
    for _ in 0..REQUESTS {
        let answer = path.query(&[])?;
        answer.is_data()?;
        let found: Vec<String> = answer.0.all("guid").map(str::to_owned).collect();
        ensure!(found.len() == 10, "the client got {found:?}");
        ids.extend(found);
    }
    ensure!(
        ids.iter().all(|id| crate::cases::is_uuid(id)),
        "the client got {ids:?}"
    );
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ensure!(ids.len() == all, "the client got ids twice: {ids:?}");
    Ok(())
}

const CLIENT: &str = "router: {request: {headers: true}}";

fn client(coprocessor: &Address) -> anyhow::Result<()> {
    let path = Path::open(coprocessor, "/client-awareness", CLIENT)?;
    let token = token(coprocessor, "shop", "4.2")?;
    for _ in 0..REQUESTS {
        path.query(&[("authentication", &format!("Bearer {token}"))])?
            .is_data()?;
    }
    path.origin_saw("apollographql-client-name", "shop")?;
    path.origin_saw("apollographql-client-version", "4.2")
}

fn false_tokens(coprocessor: &Address) -> anyhow::Result<()> {
    let path = Path::open(coprocessor, "/client-awareness", CLIENT)?;
    let token = token(coprocessor, "shop", "4.2")?;
    let other = self::token(coprocessor, "bank", "1")?;
    let parts: Vec<&str> = token.split('.').collect();
    let claims = other.split('.').nth(1).context("claims of the token")?;
    let [head, _, signature] = parts[..] else {
        anyhow::bail!("a token has three parts, `{token}` has not");
    };
    let tampered = format!("Bearer {head}.{claims}.{signature}");
    let cut = format!("Bearer {head}.{claims}.");
    let refused: [(&str, &[(&str, &str)]); 3] = [
        ("claims of another", &[("authentication", &tampered)]),
        ("no signature", &[("authentication", &cut)]),
        ("no token", &[]),
    ];
    for (what, headers) in refused {
        let status = path.query(headers)?.0.status;
        ensure!(
            status == 401,
            "{what}: expected 401, the client got {status}"
        );
    }
    let seen = path.seen()?;
    for subgraph in ["locations", "reviews"] {
        let requests = &seen[subgraph]["requests"];
        ensure!(
            *requests == 0,
            "{subgraph} was asked {requests} times in the name of a false token"
        );
    }
    Ok(())
}

/// A token from the coprocessor.
fn token(coprocessor: &Address, name: &str, version: &str) -> anyhow::Result<String> {
    let wish = json!({"clientName": name, "clientVersion": version}).to_string();
    let answer = Connection::open(coprocessor)?.ask("POST", "/create-jwt", wish.as_bytes())?;
    let answer: Value = serde_json::from_slice(&answer.body)?;
    let token = answer["token"].as_str();
    Ok(token.context("a token")?.to_owned())
}

/// The path of a request: this client, the gateway, the coprocessor, and the origin.
struct Path {
    gateway: Program,
    origin: Program,
}

impl Path {
    /// Starts an origin, and a gateway that calls the coprocessor's endpoint with the configuration `keys`.
    fn open(coprocessor: &Address, endpoint: &str, keys: &str) -> anyhow::Result<Path> {
        let names = "source,apollographql-client-name,apollographql-client-version";
        let arguments = [
            "--listen",
            "127.0.0.1:0",
            "--workers",
            "1",
            "--count-headers",
            names,
        ];
        let origin = Program::start("planets", &arguments, ("unused", ""))?;
        let url = coprocessor.url(endpoint);
        let (locations, reviews) = (
            origin.address.url("/locations"),
            origin.address.url("/reviews"),
        );
        let config = format!(
            "include_subgraph_errors: {{all: true}}\n\
             override_subgraph_url: {{locations: '{locations}', reviews: '{reviews}'}}\n\
             headers: {{all: {{request: [\
             {{propagate: {{named: apollographql-client-name}}}}, \
             {{propagate: {{named: apollographql-client-version}}}}]}}}}\n\
             coprocessor: {{url: '{url}', timeout: 30s, {keys}}}\n"
        );
        let arguments = [
            "--config",
            "router.yaml",
            "--supergraph",
            SUPERGRAPH,
            "--listen",
            "127.0.0.1:0",
            "--health-listen",
            "127.0.0.1:0",
            "--workers",
            "1",
        ];
        let gateway = Program::start("gateway", &arguments, ("router.yaml", &config))?;
        Ok(Path { gateway, origin })
    }

    fn query(&self, headers: &[(&str, &str)]) -> anyhow::Result<Reply> {
        let mut connection = Connection::open(&self.gateway.address)?;
        let answer = connection.ask_with("/", headers, QUERY.as_bytes());
        let answer =
            answer.with_context(|| format!("the gateway, which says {}", self.gateway.log()))?;
        Ok(Reply(answer))
    }

    fn seen(&self) -> anyhow::Result<Value> {
        let answer = Connection::open(&self.origin.address)?.ask("GET", "/seen", b"")?;
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Checks that every request to both subgraphs carried this header with this value.
    fn origin_saw(&self, header: &str, value: &str) -> anyhow::Result<()> {
        let seen = self.seen()?;
        for subgraph in ["locations", "reviews"] {
            let found = &seen[subgraph]["headers"][header];
            let expected = json!({"values": {value: REQUESTS}, "other_values": 0, "absent": 0});
            ensure!(
                *found == expected,
                "{subgraph}: expected {header} {expected}, saw {found}"
            );
        }
        Ok(())
    }
}

/// The response that the gateway's client received.
struct Reply(Answer);

impl Reply {
    /// Checks that the response has status 200, data and no errors.
    fn is_data(&self) -> anyhow::Result<()> {
        let said = String::from_utf8_lossy(&self.0.body);
        let body: Value = serde_json::from_str(&said).unwrap_or_default();
        let is_data = body["data"]["locations"][0]["id"].is_string() && body["errors"].is_null();
        ensure!(
            self.0.status == 200 && is_data,
            "the client got {} {said}",
            self.0.status
        );
        Ok(())
    }
}
