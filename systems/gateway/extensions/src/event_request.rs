//! What is sent to a subgraph to subscribe: header rules and request stages hold for it as for any
//! request. Who sends it, and what comes back, is not decided here.

use bytes::Bytes;
use gateway_telemetry::{TRACEPARENT, TRACESTATE};
use gateway_upstream::Endpoint;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Method};

use crate::exchange::{Exchange, Request, Step};
use crate::failure::FetchProblem;
use crate::identifier;
use crate::subgraph::{Subgraph, SubgraphOutcome};

/// A request that subscribes, as it leaves.
#[derive(Debug)]
pub struct EventRequest {
    /// Where it goes.
    pub endpoint: Endpoint,
    /// What rules and stages have left of the headers.
    pub headers: HeaderMap,
    /// The GraphQL request as JSON.
    pub body: Bytes,
}

impl Subgraph {
    /// Takes a request that subscribes through header rules and request stages. `path` stands in place
    /// of the endpoint's.
    ///
    /// # Errors
    /// What is the answer in its place: a stage gave one, or there is nowhere to send it.
    pub(crate) async fn event_request(
        &self,
        exchange: &Exchange,
        (path, body): (Option<&str>, Bytes),
    ) -> Result<EventRequest, SubgraphOutcome> {
        let mut headers = HeaderMap::new();
        let client = &exchange.client.headers;
        let (context, client_body) = (&exchange.context, &exchange.client_body);
        self.rules.apply(client, context, client_body, &mut headers);
        if exchange.trace.is_some() {
            headers.remove(TRACEPARENT);
            headers.remove(TRACESTATE);
        }
        let uri = self.at(path).map_err(|error| self.no_request(&error))?;
        let mut request = Request {
            method: Method::POST,
            uri,
            headers,
            body,
        };
        if let Some(service) = &self.service {
            let id = identifier::uuid_v4();
            if let Step::Break(response) = service.request_of(exchange, &mut request, &id).await {
                return Err(SubgraphOutcome {
                    body: response.body,
                    problems: Vec::new(),
                    status: Some(response.status),
                });
            }
        }
        let endpoint = if request.uri == *self.endpoint.uri() {
            Ok(self.endpoint.clone())
        } else {
            self.endpoint.moved_to(&request.uri)
        };
        Ok(EventRequest {
            endpoint: endpoint.map_err(|error| self.no_request(&error.to_string()))?,
            headers: request.headers,
            body: request.body,
        })
    }

    /// The endpoint's URL with another path.
    fn at(&self, path: Option<&str>) -> Result<Uri, String> {
        let uri = self.endpoint.uri().clone();
        let Some(path) = path else {
            return Ok(uri);
        };
        let mut parts = uri.into_parts();
        let path: PathAndQuery = path.parse().map_err(|error| format!("`{path}`: {error}"))?;
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).map_err(|error| error.to_string())
    }

    fn no_request(&self, reason: &str) -> SubgraphOutcome {
        SubgraphOutcome {
            problems: vec![FetchProblem::http(&self.name, reason, None)],
            ..SubgraphOutcome::default()
        }
    }
}
