//! A connection that a request uses.

use std::time::Duration;

use deadpool_postgres::{Client, ClientWrapper, Object};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::Asker;
use super::tls::Connector;
use crate::store::turns::Place;

/// Time for the cancellation of a statement to reach the database, and the same time for the statement's end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection of the pool, with its place. If it is dropped without `give_back`, its statement is
/// cancelled, because the client has left or waited too long.
pub(super) struct Lent {
    /// `None` only while it is dropped.
    lent: Option<(Client, Place<Asker>)>,
    connector: Connector,
    is_done: bool,
}

impl Lent {
    pub(super) fn new(client: Client, connector: Connector, place: Place<Asker>) -> Self {
        Self {
            lent: Some((client, place)),
            connector,
            is_done: false,
        }
    }

    pub(super) fn client(&self) -> &Client {
        let (client, _) = self.lent.as_ref().expect("it is there until the drop");
        client
    }

    /// Returns the connection after the database has responded.
    pub(super) fn give_back(mut self) {
        self.is_done = true;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some((client, place)) = self.lent.take() else {
            return;
        };
        // Without a runtime the process is ending, and so are its connections.
        let (false, Ok(runtime)) = (self.is_done, Handle::try_current()) else {
            // The connection goes into the pool first, so that the next request in turn finds it there.
            drop(client);
            drop(place);
            return;
        };
        // Never used again: a late cancellation would end the statement of another request.
        let client = Object::take(client);
        let connector = self.connector.clone();
        runtime.spawn(async move {
            end(client, connector).await;
            // Only now may another connection take this place.
            drop(place);
        });
    }
}

/// Cancels the current statement of a connection and closes the connection.
async fn end(client: ClientWrapper, connector: Connector) {
    // If the cancellation fails, the connection is closed or the database's own time limit ends it.
    let token = client.cancel_token();
    let _ = timeout(CANCEL_TIMEOUT, token.cancel_query(connector)).await;
    // The response arrives after the end of all earlier statements.
    let _ = timeout(CANCEL_TIMEOUT, client.simple_query("")).await;
}
