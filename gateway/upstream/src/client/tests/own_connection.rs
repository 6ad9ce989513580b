//! Tests the places of long-lived connections, and the places left for calls.

use std::net::IpAddr;

use tokio::task::JoinHandle;

use super::limits::{client, held, send, until};
use super::*;

fn lasts(
    client: &Client,
    endpoint: &UpstreamEndpoint,
) -> JoinHandle<Result<OwnConnection, SendError>> {
    let (client, endpoint) = (client.clone(), endpoint.clone());
    tokio::task::spawn_local(async move { client.own_connection(&endpoint, None).await })
}

async fn opened(client: &Client, endpoint: &UpstreamEndpoint) -> OwnConnection {
    let opened = client.own_connection(endpoint, None).await;
    opened.unwrap_or_else(|error| panic!("{error}"))
}

async fn refused(client: &Client, endpoint: &UpstreamEndpoint) -> String {
    match client.own_connection(endpoint, None).await {
        Err(error) if error.is_crowded() => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("there was a place"),
    }
}

#[test]
fn half_of_the_places_are_kept_at_most_and_calls_have_the_others() {
    run(async {
        let held = held().await;
        let (client, traffic) = client(100, 4, 10);
        let first = opened(&client, &held.endpoint).await;
        let _second = opened(&client, &held.endpoint).await;
        let told = refused(&client, &held.endpoint).await;
        let origin = held.endpoint.as_str();
        assert_eq!(
            told,
            format!("too many WebSockets are open, and there is none for {origin}")
        );
        assert_eq!(traffic.refused(), 1);
        let sendings: Vec<_> = (0..3).map(|_| send(&client, &held.endpoint)).collect();
        until(|| traffic.waiting() == 1 && held.open.get() == 4).await;
        // A finished connection gives its place to the waiting caller, and makes room for another one.
        drop(first);
        until(|| traffic.waiting() == 0).await;
        let third = lasts(&client, &held.endpoint);
        until(|| traffic.waiting() == 1).await;
        assert_eq!(refused(&client, &held.endpoint).await, told);
        held.go.add_permits(3);
        for sending in sendings {
            assert_eq!(sending.await.unwrap().unwrap().status, 200);
        }
        assert!(third.await.unwrap().is_ok());
    });
}

#[test]
fn a_single_place_is_kept_and_there_is_one_for_calls() {
    run(async {
        let held = held().await;
        held.go.add_permits(2);
        let (client, traffic) = client(1, 1, 10);
        let _kept = opened(&client, &held.endpoint).await;
        refused(&client, &held.endpoint).await;
        let answers = [send(&client, &held.endpoint), send(&client, &held.endpoint)];
        for answer in answers {
            assert_eq!(answer.await.unwrap().unwrap().status, 200);
        }
        // One after the other, over one connection.
        assert_eq!((held.most.get(), traffic.waited()), (2, 1));
    });
}

#[test]
fn who_does_not_wait_any_longer_keeps_nothing() {
    run(async {
        let held = held().await;
        let (client, traffic) = client(100, 2, 10);
        let sendings = [send(&client, &held.endpoint), send(&client, &held.endpoint)];
        until(|| held.open.get() == 2).await;
        let hasty = lasts(&client, &held.endpoint);
        until(|| traffic.waiting() == 1).await;
        hasty.abort();
        assert!(hasty.await.is_err());
        assert_eq!(traffic.waiting(), 0);
        held.go.add_permits(2);
        for sending in sendings {
            assert_eq!(sending.await.unwrap().unwrap().status, 200);
        }
        let _kept = opened(&client, &held.endpoint).await;
    });
}

#[test]
fn one_origin_leaves_places_for_another() {
    run(async {
        let (one, other) = (held().await, held().await);
        let (client, _) = client(16, None, 10);
        let mut kept = Vec::new();
        for _ in 0..4 {
            kept.push(opened(&client, &one.endpoint).await);
        }
        refused(&client, &one.endpoint).await;
        for _ in 0..2 {
            kept.push(opened(&client, &other.endpoint).await);
        }
        refused(&client, &other.endpoint).await;
        // These connections have 6 of 16 places. Calls to one of the two origins get half of the rest.
        for _ in 0..6 {
            send(&client, &one.endpoint);
        }
        until(|| one.open.get() == 4 + 5).await;
    });
}

#[test]
fn idle_connections_make_room() {
    run(async {
        let (one, other) = (held().await, held().await);
        one.go.add_permits(1);
        let (client, traffic) = client(2, None, 10);
        send(&client, &one.endpoint).await.unwrap().unwrap();
        let _under_way = send(&client, &other.endpoint);
        until(|| other.open.get() == 1).await;
        assert_eq!(client.counters().idle, 1);
        let _kept = opened(&client, &other.endpoint).await;
        assert_eq!((client.counters().idle, traffic.open()), (0, 2));
    });
}

#[test]
fn clients_of_one_address_leave_places_for_those_of_another() {
    run(async {
        let held = held().await;
        for per_origin in [None, Some(24)] {
            let (client, _) = client(32, per_origin, 10);
            let of = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
            let mut kept = Vec::new();
            while let Ok(connection) = client.own_connection(&held.endpoint, of(1)).await {
                kept.push(connection);
            }
            assert_eq!(kept.len(), 6, "of those that the origin may have");
            let other = client.own_connection(&held.endpoint, of(2)).await;
            kept.push(other.unwrap_or_else(|error| panic!("{error}")));
            drop(kept.pop());
            // A connection that moves to another address no longer counts for the first.
            for connection in &kept[..3] {
                ConnectionPlace(Rc::downgrade(&connection.held)).count_for(None);
            }
            let again = client.own_connection(&held.endpoint, of(1)).await;
            assert!(again.is_ok());
        }
    });
}
