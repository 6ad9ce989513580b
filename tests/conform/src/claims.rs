//! Claims that a case cannot express: many requests at once, many requests on one connection, large bodies,
//! signed tokens, and the shutdown.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::http::{Connection, head};
use crate::process::Running;

type Claim = fn(&mut Running) -> anyhow::Result<()>;

/// All claims. The shutdown comes last.
pub(crate) const ALL: [(&str, Claim); 5] = [
    ("its own tokens are believed", believes_its_own_tokens),
    ("a connection is kept alive", keeps_a_connection),
    ("8 MiB pass through", passes_large_bodies),
    ("200 at once are all answered", answers_many_at_once),
    ("a stop finishes what is under way", stops_gracefully),
];

const KEPT: usize = 100;
const AT_ONCE: usize = 200;
const LARGE: usize = 8 << 20;

fn ask(connection: &mut Connection, path: &str, message: &Value) -> anyhow::Result<Value> {
    let answer = connection.ask("POST", path, message.to_string().as_bytes())?;
    ensure!(answer.status == 200, "status {}", answer.status);
    Ok(serde_json::from_slice(&answer.body)?)
}

fn believes_its_own_tokens(running: &mut Running) -> anyhow::Result<()> {
    let mut connection = running.connect()?;
    let wish = json!({"clientName": "own", "clientVersion": "9"});
    let token = ask(&mut connection, "/create-jwt", &wish)?;
    let token = token
        .get("token")
        .and_then(Value::as_str)
        .context("a token")?;
    let message = json!({
        "version": 1, "stage": "RouterRequest", "control": "continue",
        "headers": {"authentication": [format!("Bearer {token}")]},
    });
    let answer = ask(&mut connection, "/client-awareness", &message)?;
    let name = answer.pointer("/headers/apollographql-client-name/0");
    let version = answer.pointer("/headers/apollographql-client-version/0");
    ensure!(
        name == Some(&json!("own")) && version == Some(&json!("9")),
        "{answer}"
    );
    Ok(())
}

fn keeps_a_connection(running: &mut Running) -> anyhow::Result<()> {
    let mut connection = running.connect()?;
    for number in 0..KEPT {
        let message = json!({"version": 1, "stage": "RouterResponse", "id": number});
        let answer = ask(&mut connection, "/guid-response", &message)
            .with_context(|| format!("request {number} on one connection"))?;
        ensure!(answer == message, "expected {message}, found {answer}");
    }
    Ok(())
}

fn passes_large_bodies(running: &mut Running) -> anyhow::Result<()> {
    let message = |source: Value| {
        let mut headers = json!({"content-type": ["application/json"]});
        if !source.is_null() {
            headers["source"] = source;
        }
        json!({"version": 1, "stage": "SubgraphRequest", "control": "continue",
               "headers": headers, "body": "x".repeat(LARGE - 300)})
    };
    let answer = ask(
        &mut running.connect()?,
        "/static-subgraph",
        &message(Value::Null),
    )?;
    ensure!(
        answer == message(json!(["coprocessor"])),
        "the body is another one"
    );
    Ok(())
}

fn answers_many_at_once(running: &mut Running) -> anyhow::Result<()> {
    let running = &*running;
    // All connections are open and have sent half a request before the first one sends the rest.
    let half = |number: usize| {
        let body = json!({"version": 1, "stage": "RouterResponse", "headers": {}, "id": number});
        let bytes = body.to_string().into_bytes();
        let mut connection = running.connect()?;
        connection.send(&head("POST", "/guid-response", bytes.len()))?;
        connection.send(&bytes[..5])?;
        anyhow::Ok((connection, bytes))
    };
    let mut open = (0..AT_ONCE).map(half).collect::<anyhow::Result<Vec<_>>>()?;
    for (connection, bytes) in &mut open {
        connection.send(&bytes[5..])?;
    }
    let mut ids = Vec::new();
    for (number, (connection, _)) in open.iter_mut().enumerate() {
        let answer = connection.answer()?;
        let answer: Value = serde_json::from_slice(&answer.body)?;
        ensure!(answer["id"] == number, "the answer to {number} is {answer}");
        let found = answer["headers"]["GUID"].as_array().context("ids")?;
        ids.extend(found.iter().map(Value::to_string));
    }
    ids.sort_unstable();
    ids.dedup();
    ensure!(ids.len() == 10 * AT_ONCE, "only {} distinct ids", ids.len());
    Ok(())
}

fn stops_gracefully(running: &mut Running) -> anyhow::Result<()> {
    let message = json!({"version": 1, "stage": "SubgraphRequest", "headers": {}}).to_string();
    let mut connection = running.connect()?;
    connection.announce("/static-subgraph", message.len())?;
    connection.send(&message.as_bytes()[..10])?;
    running.tell_to_stop()?;
    running
        .wait_until(|running| Ok(Connection::open(&running.address).is_err()))
        .context("it still takes connections")?;
    connection.send(&message.as_bytes()[10..])?;
    let answer = connection.answer().context("the request under way")?;
    ensure!(
        answer.status == 200,
        "the request under way got {}",
        answer.status
    );
    let body: Value = serde_json::from_slice(&answer.body)?;
    ensure!(body["headers"]["source"][0] == "coprocessor", "{body}");
    drop(connection);
    let status = running.end()?;
    ensure!(
        status.success(),
        "it ended with {status}: {}",
        running.log()
    );
    Ok(())
}
