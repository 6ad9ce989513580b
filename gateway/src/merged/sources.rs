//! The services and handlers of one client request.

use gateway_extensions::{Exchange, RelayCall};
use gateway_remote::{Call, CallAnswer, CallError};
use http::header;

use crate::process::worker_state::WorkerState;

/// The services of remote schemas, followed by the handlers of actions.
pub(crate) struct Sources<'a> {
    pub(crate) serving: &'a WorkerState,
    pub(crate) exchange: &'a Exchange,
}

impl gateway_remote::Sources for Sources<'_> {
    async fn call(&self, call: Call) -> Result<CallAnswer, CallError> {
        let generation = &self.serving.generation;
        let relayed = RelayCall {
            is_graphql: call.source < generation.config.remote_schemas.len(),
            timeout: generation.timeouts[call.source],
            method: call.method,
            url: call.url,
            headers: call.headers,
            body: call.body,
            is_idempotent: call.is_idempotent,
        };
        let extensions = &self.serving.extensions;
        match extensions.relay(call.source, self.exchange, relayed).await {
            Ok(response) => {
                let cookies = response.headers.get_all(header::SET_COOKIE).iter().cloned();
                Ok(CallAnswer {
                    status: response.status,
                    cookies: cookies.collect(),
                    body: response.body,
                })
            }
            Err(error) => Err(CallError(error.to_string())),
        }
    }

    async fn give_way(&self) {
        tokio::task::yield_now().await;
    }
}
