//! The page that a browser shows for a GraphQL endpoint of our servers.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use e2e::{Browser, View, ratelimiter, wait_until};
use serde_json::Value;

/// A server with the page. Dropping it ends the process.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let child = Command::new(ratelimiter())
            .env("HOST", address.ip().to_string())
            .env("PORT", address.port().to_string())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        wait_until("the server listens", Duration::from_secs(60), || {
            TcpStream::connect(address).is_ok()
        });
        Server {
            child,
            address: address.to_string(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_query_typed_into_graphiql_is_answered() {
    let server = Server::start();
    let url = format!(
        "http://{}/?query=%7Bserverinfo%7Bhostname%7D%7D",
        server.address
    );
    let view = View {
        width: 1200,
        is_dark: false,
    };
    let mut browser = Browser::start();
    let events = browser.open(&url, view);
    for event in &events {
        let method = event["method"].as_str().unwrap_or_default();
        assert_ne!(method, "Runtime.exceptionThrown", "{event}");
        if method == "Network.requestWillBeSent" {
            let asked = event["params"]["request"]["url"].as_str().unwrap_or("");
            let is_own = asked.starts_with(&format!("http://{}", server.address));
            assert!(is_own || asked.starts_with("data:"), "{asked}");
        }
    }
    // The schema arrives, the button sends the query from the address, and the response is shown.
    let shown = browser.ask(
        "new Promise(done => {
            const clicked = new WeakSet();
            const look = () => {
                const button = document.querySelector('.graphiql-execute-button');
                const answer = document.querySelector('.result-window')?.textContent ?? '';
                if (button && !clicked.has(button)) { clicked.add(button); button.click(); }
                if (answer.includes('hostname')) { done(answer); } else { setTimeout(look, 50); }
            };
            look();
        })",
    );
    let Value::String(shown) = shown else {
        panic!("{shown}");
    };
    assert!(shown.contains("\"serverinfo\""), "{shown}");
    assert!(!shown.contains("errors"), "{shown}");
}
