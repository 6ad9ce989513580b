//! Servers and workers for tests.

use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use gateway_config::{Config, Surroundings};
use gateway_extensions::{
    ClientBody, ClientHead, Exchange, Extensions, ExtensionsWorker, KeyStore, NoObserver,
    QueryPlan, SubgraphCall, SubgraphOutcome,
};
use gateway_upstream::{Client, ClientSettings};
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

/// A request that reached a server.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) version: http::Version,
    pub(crate) headers: HeaderMap,
    /// The body as text. Invalid UTF-8 is replaced.
    pub(crate) body: String,
    pub(crate) bytes: Bytes,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let values = self.headers.get_all(name).iter();
        values.map(|value| value.to_str().unwrap()).collect()
    }
}

/// A response of a test server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: String,
}

pub(crate) fn json(body: impl ToString) -> Answer {
    Answer {
        status: 200,
        content_type: Some("application/json"),
        body: body.to_string(),
    }
}

/// A test server and the requests that it received.
#[derive(Clone)]
pub(crate) struct Stand {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Stand {
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> Seen {
        self.seen().pop().expect("the server was asked")
    }
}

type Decide = Arc<dyn Fn(&Seen) -> Option<Answer> + Send + Sync>;

/// A server over TCP. If `decide` returns `None`, it never responds.
pub(crate) async fn serve(
    decide: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> Stand {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stand = Stand {
        url: format!("http://{}", listener.local_addr().unwrap()),
        seen: Arc::default(),
    };
    let (seen, decide): (_, Decide) = (Arc::clone(&stand.seen), Arc::new(decide));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&seen), Arc::clone(&decide)));
        }
    });
    stand
}

/// A server on a Unix socket.
pub(crate) fn serve_unix(
    path: &Path,
    decide: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> Stand {
    let listener = tokio::net::UnixListener::bind(path).unwrap();
    let stand = Stand {
        url: format!("unix://{}", path.display()),
        seen: Arc::default(),
    };
    let (seen, decide): (_, Decide) = (Arc::clone(&stand.seen), Arc::new(decide));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&seen), Arc::clone(&decide)));
        }
    });
    stand
}

async fn connection<S>(stream: S, seen: Arc<Mutex<Vec<Seen>>>, decide: Decide)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (seen, decide) = (Arc::clone(&seen), Arc::clone(&decide));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let request = Seen {
                method: head.method.to_string(),
                path: head.uri.path_and_query().unwrap().to_string(),
                version: head.version,
                headers: head.headers,
                body: String::from_utf8_lossy(&body).into_owned(),
                bytes: body,
            };
            let answer = decide(&request);
            seen.lock().unwrap().push(request);
            let Some(answer) = answer else {
                return std::future::pending().await;
            };
            let mut response = http::Response::builder().status(answer.status);
            if let Some(kind) = answer.content_type {
                response = response.header("content-type", kind);
            }
            response.body(Full::new(Bytes::from(answer.body)))
        }
    });
    // A client that disconnects is not a failure of the server.
    let _gone = Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

struct Outside;

impl Surroundings for Outside {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

pub(crate) const SDL: &str = "type Query { a: Int } # \"quoted\"";

fn read(yaml: &str) -> Result<Config, String> {
    gateway_config::read(Path::new("router.yaml"), yaml, &Outside, false)
        .map(|reading| reading.config)
        .map_err(|mistakes| mistakes.to_string())
}

/// The configuration in this text.
pub(crate) fn config(yaml: &str) -> Config {
    read(yaml).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The extensions of a configuration, with the subgraphs `one` and `two` at a URL.
pub(crate) fn extensions(yaml: &str, subgraph: &str) -> Result<Extensions, String> {
    extensions_with(yaml, subgraph, &Arc::default())
}

/// Like [`extensions`], with the keys of the previous configuration.
pub(crate) fn extensions_with(
    yaml: &str,
    subgraph: &str,
    keys: &Arc<KeyStore>,
) -> Result<Extensions, String> {
    Extensions::build(
        Arc::new(read(yaml)?),
        SDL,
        &[("one", subgraph), ("two", subgraph)],
        Arc::new(|name| (name == "STAGE").then(|| "test".to_owned())),
        keys,
    )
    .map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        texts.join("\n")
    })
}

/// One worker with the extensions of a configuration.
pub(crate) fn worker(yaml: &str, subgraph: &str) -> ExtensionsWorker {
    extensions(yaml, subgraph)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .worker(Client::new(ClientSettings::default()), Rc::new(NoObserver))
}

/// An exchange for a client request with these headers.
pub(crate) fn exchange(headers: &[(&'static str, &str)]) -> Exchange {
    let mut head = ClientHead {
        method: http::Method::POST,
        uri: "/graphql?x=1".parse().unwrap(),
        headers: HeaderMap::new(),
    };
    for (name, value) in headers {
        head.headers.append(*name, value.parse().unwrap());
    }
    let mut exchange = Exchange::new(Rc::new(head));
    exchange.client_body = Rc::new(ClientBody::new(CLIENT_QUERY.into()));
    exchange
}

pub(crate) const CLIENT_QUERY: &str = r#"{"query":"query Q{a}","operationName":"Q","variables":{"n":1},"extensions":{"x":[{"y":"deep"}]}}"#;

/// Sends a request to subgraph `one`.
pub(crate) async fn fetch(worker: &ExtensionsWorker, exchange: &Exchange) -> SubgraphOutcome {
    let call = SubgraphCall {
        body: r#"{"query":"query Q__one__0{a}","operationName":"Q__one__0"}"#.into(),
        is_query: true,
    };
    worker.fetch(0, exchange, call).await
}

/// An origin that responds with `{"data":{"a":1}}`.
pub(crate) async fn origin() -> Stand {
    serve(|_| Some(json(r#"{"data":{"a":1}}"#))).await
}

/// Runs a test on one thread, as a gateway worker runs requests.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test)
}

/// An empty query plan.
pub(crate) fn plan() -> QueryPlan {
    QueryPlan {
        text: "QueryPlan {}".into(),
        json: r#"{"kind":"QueryPlan","node":null}"#.into(),
    }
}
