//! Tests of sharing: who receives an event and when, and which clients keep a subscription alive.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::FutureExt as _;
use gateway_extensions::EventRequest;
use gateway_upstream::{Policy, UpstreamEndpoint};

use super::*;

fn subscribe_request(name: &str) -> SubscribeRequest {
    SubscribeRequest {
        name: name.into(),
        request: EventRequest {
            endpoint: UpstreamEndpoint::parse("http://localhost", Policy::default()).unwrap(),
            headers: http::HeaderMap::new(),
            body: "{}".into(),
        },
        parameters: None,
    }
}

fn begin(counts: &Arc<SubscriptionCounters>) -> (Receiving, Receiver) {
    let (source, receiver) = Source::begin(2, Client::default(), counts);
    let shared = None;
    (Receiving { source, shared }, receiver)
}

async fn push(source: &Source) -> usize {
    source.push(Event::Response("{}".into())).await
}

fn end_of(receiver: &Receiver) -> Ending {
    receiver.ready().now_or_never().unwrap().unwrap_err()
}

#[test]
fn an_end_without_a_reason_is_told_from_the_end_of_events() {
    let counts = Arc::default();
    let (receiving, cut) = begin(&counts);
    let source = Arc::clone(receiving.source());
    drop(receiving);
    assert_eq!(end_of(&cut), Ending::Cut);
    assert!(cut.opened().now_or_never().unwrap().is_err());
    assert!(source.join(2, Client::default()).is_err());
    let (receiving, complete) = begin(&counts);
    receiving.source().open();
    assert_eq!(push(receiving.source()).now_or_never(), Some(1));
    assert!(
        receiving
            .source()
            .end(Ending::Complete)
            .now_or_never()
            .is_some()
    );
    drop(receiving);
    assert!(complete.opened().now_or_never().unwrap().is_ok());
    assert!(complete.take().is_some());
    assert_eq!(end_of(&complete), Ending::Complete);
    assert_eq!(counts.snapshot().upstream, 0);
}

#[test]
fn the_last_who_leaves_closes_it() {
    let counts = Arc::default();
    let (receiving, first) = begin(&counts);
    let source = receiving.source();
    let second = source.join(2, Client::default()).unwrap();
    drop(first);
    assert!(source.left().now_or_never().is_none());
    assert_eq!(push(source).now_or_never(), Some(1));
    drop(second);
    assert!(source.left().now_or_never().is_some());
    assert!(source.join(2, Client::default()).is_err());
    assert_eq!(counts.bytes(), 0);
}

/// Takes one event from each receiver. Returns how many receivers had one.
fn served(receivers: &[Receiver]) -> usize {
    receivers.iter().filter_map(Receiver::take).count()
}

#[test]
fn an_event_is_given_to_so_many_clients_in_a_turn_and_in_one_order() {
    let counts = Arc::default();
    let (receiving, first) = begin(&counts);
    let source = receiving.source();
    let join = || source.join(2, Client::default()).unwrap();
    let mut receivers = vec![first];
    let count = 3 * CLIENTS_AT_ONCE + 4;
    receivers.extend((1..count).map(|_| join()));
    let mut context = Context::from_waker(Waker::noop());
    let mut first = pin!(push(source));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert_eq!(served(&receivers), CLIENTS_AT_ONCE);
    // Clients join and leave in between. A new client receives the events from then on.
    receivers.push(join());
    drop(receivers.remove(CLIENTS_AT_ONCE));
    let mut second = pin!(push(source));
    let mut end = pin!(source.end(Ending::Expired));
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert!(end.as_mut().poll(&mut context).is_pending());
    assert_eq!(served(&receivers), 0, "the first is not given to all");
    for _ in 0..2 {
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert_eq!(served(&receivers), CLIENTS_AT_ONCE);
    }
    assert!(first.as_mut().poll(&mut context).is_ready());
    assert_eq!(served(&receivers), 3);
    for _ in 0..3 {
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(served(&receivers), CLIENTS_AT_ONCE);
    }
    assert!(second.as_mut().poll(&mut context).is_ready());
    assert_eq!(served(&receivers), 4);
    for _ in 0..3 {
        assert!(end.as_mut().poll(&mut context).is_pending());
    }
    assert!(end.as_mut().poll(&mut context).is_ready());
    assert!(receivers.iter().all(|it| end_of(it) == Ending::Expired));
}

#[test]
fn what_is_asked_again_is_what_a_client_would_whose_token_is_valid() {
    let counts = Arc::default();
    let now = crate::process::clock::now();
    let client = |name: &str, last: u8, seconds: Option<u64>| Client {
        address: Some([192, 0, 2, last].into()),
        expiry: seconds.map(|it| now + Duration::from_secs(it)),
        subscribe_request: Some(Arc::new(subscribe_request(name))),
    };
    let (source, first) = Source::begin(2, client("first", 1, Some(10)), &counts);
    let second = source.join(2, client("second", 2, Some(20))).unwrap();
    let asks = |seconds| {
        let subscribe_request = source.subscribe_request(now + Duration::from_secs(seconds));
        subscribe_request.map(|it| it.name.to_string())
    };
    let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
    assert_eq!(asks(9).as_deref(), Some("first"));
    // The first client is still present, but its token has expired.
    assert_eq!(asks(10).as_deref(), Some("second"));
    assert_eq!(asks(20), None);
    assert_eq!(source.address(), address(1));
    let third = source.join(2, client("third", 3, None)).unwrap();
    assert_eq!(asks(20).as_deref(), Some("third"));
    drop(second);
    assert!(source.first_left().now_or_never().is_none());
    drop(first);
    assert!(source.first_left().now_or_never().is_some());
    assert_eq!(source.address(), address(3));
    assert_eq!(asks(0).as_deref(), Some("third"));
    drop(third);
    assert_eq!((asks(0), source.address()), (None, None));
}
