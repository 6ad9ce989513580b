//! Checks that the gateway never accepts arbitrary bytes in the token header as a signed token.
#![no_main]

use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_config::{Surroundings, read};
use gateway_extensions::{
    ClientHead, Exchange, Extensions, JWT_CLAIMS, NoObserver, StageRequest, Step, ExtensionsWorker,
};
use gateway_upstream::{Client, ClientSettings};
use http::{HeaderMap, HeaderValue, Method};
use libfuzzer_sys::fuzz_target;

/// A secret that no seed contains. If a token is accepted, the fuzzer has found a way around the signature.
const KEYS: &str = r#"{"keys":[{"kty":"oct","k":"bm90IGluIGFueSBzZWVk"},
    {"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

fn worker() -> ExtensionsWorker {
    let file = std::env::temp_dir().join(format!("keys-of-fuzz-{}.json", std::process::id()));
    std::fs::write(&file, KEYS).expect("a file of the temporary folder");
    let yaml = format!(
        "authentication: {{router: {{jwt: {{jwks: [{{url: 'file://{}'}}]}}}}}}",
        file.display()
    );
    let reading = read(Path::new("router.yaml"), &yaml, &Nothing, false).expect("a configuration");
    let extensions = Extensions::build(
        Arc::new(reading.config),
        "type Query { a: Int }",
        &[],
        Arc::new(|_| None),
        &Arc::default(),
    );
    // The keys are read when the extensions are built.
    let _ = std::fs::remove_file(file);
    let extensions = extensions.unwrap_or_else(|errors| panic!("{errors:?}"));
    extensions.worker(Client::new(ClientSettings::default()), Rc::new(NoObserver))
}

thread_local! {
    static WORKER: ExtensionsWorker = worker();
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = HeaderValue::from_bytes(bytes) else {
        return;
    };
    let mut headers = HeaderMap::new();
    headers.append("authorization", value);
    let head = ClientHead {
        method: Method::POST,
        uri: "/".parse().expect("a path"),
        headers: headers.clone(),
    };
    let exchange = Exchange::new(Rc::new(head));
    let mut request = StageRequest {
        headers,
        ..StageRequest::default()
    };
    WORKER.with(|worker| {
        let router = worker.router.as_ref().expect("tokens are configured");
        let mut work = pin!(router.request(&exchange, &mut request));
        let step = match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(step) => step,
            Poll::Pending => panic!("keys of a file are not waited for"),
        };
        assert!(!exchange.context.contains(JWT_CLAIMS));
        if let Step::Break(response) = step {
            assert!(response.status.is_client_error());
        }
    });
});
