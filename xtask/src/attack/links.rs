//! Two subgraphs with entities that link each other, ten each. A short query has an exponential response.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::Context as _;

/// Number of links of each entity to the other subgraph.
const LINKS: usize = 10;

/// The subgraphs, on threads that end with this program.
pub(super) struct Links(SocketAddr);

impl Links {
    pub(super) fn start() -> anyhow::Result<Links> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A gateway has few connections to it.
                thread::spawn(move || serve(&stream));
            }
        });
        Ok(Links(address))
    }

    /// The supergraph over them. It takes its directives from another supergraph.
    pub(super) fn supergraph(&self, other: &str) -> anyhow::Result<String> {
        let marker = "enum join__Graph {";
        let (head, _) = other
            .split_once(marker)
            .context("a supergraph has graphs")?;
        let address = self.0;
        Ok(format!(
            "{head}{marker}\n  A @join__graph(name: \"a\", url: \"http://{address}/a\")\n  \
             B @join__graph(name: \"b\", url: \"http://{address}/b\")\n}}\n\n\
             type A @join__type(graph: A, key: \"id\") @join__type(graph: B, key: \"id\") {{\n  \
             id: ID!\n  bs: [B!]! @join__field(graph: A)\n}}\n\n\
             type B @join__type(graph: A, key: \"id\") @join__type(graph: B, key: \"id\") {{\n  \
             id: ID!\n  as: [A!]! @join__field(graph: B)\n}}\n\n\
             type Query @join__type(graph: A) @join__type(graph: B) {{\n  \
             a: A @join__field(graph: A)\n}}\n"
        ))
    }
}

/// Responds to the requests of one connection until it is closed.
fn serve(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut path) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            } else if let Some(rest) = line.strip_prefix("post ") {
                path = rest.to_owned();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let answer = answer(path.starts_with("/b"), &String::from_utf8_lossy(&body));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        let mut writer = stream;
        writer.write_all((head + &answer).as_bytes()).ok()?;
    }
}

/// The response of a subgraph. It depends only on the number of requested entities.
fn answer(is_b: bool, request: &str) -> String {
    let (kind, field, other) = if is_b {
        ("B", "as", "A")
    } else {
        ("A", "bs", "B")
    };
    let links: Vec<String> = (0..LINKS)
        .map(|id| format!(r#"{{"__typename":"{other}","id":"{id}"}}"#))
        .collect();
    let entity = format!(
        r#"{{"__typename":"{kind}","id":"0","{field}":[{}]}}"#,
        links.join(",")
    );
    let representations = request.split_once(r#""representations":["#);
    match representations.map(|(_, rest)| rest.matches("__typename").count()) {
        Some(count) => {
            let all = vec![entity.as_str(); count].join(",");
            format!(r#"{{"data":{{"_entities":[{all}]}}}}"#)
        }
        None => format!(r#"{{"data":{{"a":{entity}}}}}"#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entity_that_is_asked_for_has_ten_of_the_others() {
        let root = answer(false, r#"{"query":"{a{__typename id bs{__typename id}}}"}"#);
        let value: serde_json::Value = serde_json::from_str(&root).unwrap();
        assert_eq!(value["data"]["a"]["bs"].as_array().unwrap().len(), LINKS);
        let request = r#"{"query":"…","variables":{"representations":[{"__typename":"B","id":"1"},{"__typename":"B","id":"2"}]}}"#;
        let value: serde_json::Value = serde_json::from_str(&answer(true, request)).unwrap();
        let entities = value["data"]["_entities"].as_array().unwrap();
        assert_eq!(entities.len(), 2);
        assert_eq!(entities[1]["as"][9]["__typename"], "A");
    }
}
