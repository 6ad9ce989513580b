//! The request that subscribes at a subgraph, after header rules and request stages. Sending it and reading
//! the response is the caller's job.

use bytes::Bytes;
use gateway_upstream::UpstreamEndpoint;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, Method};

use crate::exchange::{Exchange, StageRequest, Step};
use crate::identifier;
use crate::request_key::RequestKey;
use crate::subgraph::{Subgraph, SubgraphOutcome};

/// A request that subscribes, ready to send.
#[derive(Debug)]
pub struct EventRequest {
    /// The subgraph's endpoint.
    pub endpoint: UpstreamEndpoint,
    /// The headers after rules and stages.
    pub headers: HeaderMap,
    /// The GraphQL request as JSON.
    pub body: Bytes,
}

impl EventRequest {
    /// The key of the request. It is equal for requests that differ in ignored headers only.
    pub fn key(&self, is_ignored: impl Fn(&HeaderName) -> bool) -> RequestKey {
        let headers = self.headers.iter();
        let headers = headers.filter(|(name, _)| !is_ignored(name));
        RequestKey::new(Some(self.endpoint.as_str()), headers, &self.body)
    }
}

impl Subgraph {
    /// Runs header rules and request stages on a request that subscribes. `path` replaces the endpoint's
    /// path.
    ///
    /// # Errors
    /// Returns the response if a stage ended the request, or if the address is invalid.
    pub(crate) async fn event_request(
        &self,
        exchange: &Exchange,
        path: Option<&str>,
        body: Bytes,
    ) -> Result<EventRequest, SubgraphOutcome> {
        let uri = self.at(path).map_err(|error| self.unsendable(&error))?;
        let mut request = StageRequest {
            method: Method::POST,
            uri,
            headers: self.ruled(exchange),
            body,
        };
        if let Some(service) = &self.service {
            let id = identifier::uuid_v4();
            if let Step::Break(response) = service.request_of(exchange, &mut request, &id).await {
                return Err(SubgraphOutcome::given(response));
            }
        }
        let endpoint = if request.uri == *self.endpoint.uri() {
            Ok(self.endpoint.clone())
        } else {
            self.endpoint.moved_to(&request.uri)
        };
        Ok(EventRequest {
            endpoint: endpoint.map_err(|error| self.unsendable(&error.to_string()))?,
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
}
