//! The carrier against a fuzzing server of the Autobahn test suite, which sends every kind of frame.
//!
//! The server is not a part of this repository. `AUTOBAHN` is its address, such as `127.0.0.1:9001`. The
//! client echoes each message, which is what the suite expects.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;

use model::{ReplyRule, WebSocketCall, WebSocketDialect};
use tokio::task::LocalSet;

use super::{Happening, Upgrade, Upgraded};
use crate::answer::Gathering;
use crate::clock::Clock;
use crate::general::progress::ResponseProgress;
use crate::general::route::{Channel, Route};
use crate::job::{Address, Bounds, Target};
use crate::socket::Peer;
use tokio_tungstenite::tungstenite::Message;

async fn open(address: SocketAddr, path: &str) -> Upgraded {
    let target = Target {
        address: Address::Tcp(address),
        host: address.to_string(),
        protocol: model::Protocol::default(),
    };
    let route = Route::new(&target).unwrap();
    let peer = Peer::new(&target.address).unwrap();
    let channel = route.connect(&peer, &Rc::default()).await;
    let Ok(Channel::Http1 { stream, .. }) = channel else {
        panic!("a connection of HTTP/1.1");
    };
    let call = WebSocketCall {
        dialect: WebSocketDialect::Raw {
            subprotocol: None,
            messages: Vec::new(),
            replies: ReplyRule::None,
        },
        offers: Vec::new(),
        hold: None,
        is_kept: false,
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\n\r\n"
    );
    let upgrade = Upgrade {
        call: &call,
        request: request.as_bytes(),
        opened_with: b"",
        bounds: Bounds::default(),
        clock: Clock::start(),
    };
    let mut progress = ResponseProgress::default();
    let upgraded = upgrade
        .on(stream, &mut progress, &mut Gathering::new(None))
        .await;
    upgraded.unwrap().unwrap()
}

/// Echoes messages until the server or an error ends the connection. Returns the first text.
async fn echo(mut upgraded: Upgraded) -> String {
    let mut first = String::new();
    loop {
        match poll_fn(|context| upgraded.poll_happening(context)).await {
            Happening::Message(message @ (Message::Text(_) | Message::Binary(_))) => {
                if let Message::Text(text) = &message
                    && first.is_empty()
                {
                    first = text.to_string();
                }
                if upgraded.start_send(message).is_err() {
                    return first;
                }
                upgraded.flush().await;
            }
            Happening::Message(_) => {}
            Happening::Failed(_) | Happening::Ended => return first,
        }
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the address of a server that only some machines have"
)]
fn every_case_of_the_fuzzing_server_runs() {
    let Some(address) = std::env::var_os("AUTOBAHN") else {
        return judged::absent("the variable AUTOBAHN names no fuzzing server");
    };
    judged::ran();
    let address: SocketAddr = address.to_str().unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let count = echo(open(address, "/getCaseCount").await).await;
        let count: u32 = count.parse().unwrap();
        assert!(count > 200, "{count}");
        let mut wrong = Vec::new();
        for case in 1..=count {
            echo(open(address, &format!("/runCase?case={case}&agent=weigh")).await).await;
            let path = format!("/getCaseStatus?case={case}&agent=weigh");
            let status = echo(open(address, &path).await).await;
            if !["OK", "NON-STRICT", "INFORMATIONAL"]
                .iter()
                .any(|it| status.contains(it))
            {
                wrong.push(format!("{case}: {status}"));
            }
        }
        echo(open(address, "/updateReports?agent=weigh").await).await;
        assert_eq!(wrong, Vec::<String>::new());
    });
}
