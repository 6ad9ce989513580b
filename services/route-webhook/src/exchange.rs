//! One HTTP request and its response: bodies and statuses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chassis::ConnectionTable;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use telemetry::metrics;

use crate::cors::Origins;
use crate::credentials::{CallDenied, Callers};
use crate::deploy::{Access, Cluster, Denied, DeployError, Order};
use crate::endpoint::Endpoint;
use crate::metrics::Metrics;
use crate::request::Refusal;
use crate::sync::{ResponseFormat, Rules, sync};
use crate::{certificate, clock, etag};

/// Time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

type Reply = Response<Full<Bytes>>;

/// The state that a worker needs to handle requests.
pub(crate) struct Handler {
    pub(crate) rules: Rules,
    pub(crate) origins: Origins,
    pub(crate) body_limit: usize,
    pub(crate) access: Access,
    pub(crate) callers: Callers,
    /// True if answers of the hooks have entity tags.
    pub(crate) has_etags: bool,
    pub(crate) cluster: Cluster,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) connections: Arc<ConnectionTable>,
}

/// A refusal: its status and its text for the client.
struct Refused(StatusCode, String);

impl Handler {
    /// Handles any request.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Reply {
        let began = clock::now();
        // A copy, because the request moves into the handler, and refusals also need the header.
        let origin = request.headers().get(header::ORIGIN).cloned();
        let request_id = chassis::request_id(request.headers()).cloned();
        let endpoint = Endpoint::of(request.uri().path());
        let reply = self.reply(endpoint, request).await;
        let mut reply = reply.unwrap_or_else(|Refused(status, text)| {
            let name = endpoint.name();
            tracing::debug!(
                endpoint = name,
                status = status.as_u16(),
                answer = text,
                "refused"
            );
            let mut reply = with_body(status, TEXT, text);
            if status == StatusCode::UNAUTHORIZED {
                let challenge = match endpoint {
                    Endpoint::Route => "Bearer",
                    _ => self.callers.challenge(),
                };
                set(&mut reply, header::WWW_AUTHENTICATE, challenge);
            }
            reply
        });
        self.origins.allow(origin.as_ref(), reply.headers_mut());
        set(&mut reply, header::SERVER, "route-webhook");
        chassis::set_request_id(request_id, reply.headers_mut());
        let status = reply.status().as_u16();
        self.metrics.answered(endpoint, status, began.elapsed());
        reply
    }

    async fn reply(
        &self,
        endpoint: Endpoint,
        request: Request<Incoming>,
    ) -> Result<Reply, Refused> {
        // Before paths and methods, because browsers send preflights for any path, and OPTIONS is not one of
        // the allowed methods.
        if request.method() == Method::OPTIONS
            && let Some(reply) = self.origins.preflight(request.headers())
        {
            return Ok(reply);
        }
        if endpoint == Endpoint::Unknown {
            return without_slash(&request);
        }
        let mut methods = endpoint.methods().split(", ");
        if !methods.any(|method| method == request.method().as_str()) {
            let text = "Method Not Allowed";
            let mut reply = with_body(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
            set(&mut reply, header::ALLOW, endpoint.methods());
            return Ok(reply);
        }
        let ok = StatusCode::OK;
        match endpoint {
            Endpoint::Sync => {
                let known = self.admitted(&request)?;
                let body = self.body(request).await?;
                let answer = sync(&body, &self.rules, clock::utc);
                let answer = answer.map_err(|refusal| self.refused(&refusal))?;
                Ok(known.answer(answer))
            }
            Endpoint::Certificates => {
                let known = self.admitted(&request)?;
                let body = self.body(request).await?;
                let answer = certificate::certificates(&body);
                let answer = answer.map_err(|refusal| self.refused(&refusal))?;
                Ok(known.answer(answer))
            }
            Endpoint::Route => {
                // Before the body, so that a client without permission need not send it.
                let admitted = self.access.admit(request.headers(), request.uri());
                admitted.map_err(|denied| self.denied(&denied))?;
                self.deploy(&self.body(request).await?).await
            }
            Endpoint::Metrics => {
                let counts = (Arc::clone(&self.metrics), Arc::clone(&self.connections));
                let text = metrics::text(Arc::new(counts));
                Ok(with_body(ok, metrics::CONTENT_TYPE, text))
            }
            Endpoint::Status | Endpoint::Unknown => Ok(with_body(ok, JSON, r#"{"status":"UP"}"#)),
        }
    }

    /// Checks that a request may call a hook. This happens before the body, so that a client without
    /// credentials need not send it.
    fn admitted(&self, request: &Request<Incoming>) -> Result<Known, Refused> {
        let admitted = self.callers.admit(request.headers());
        admitted.map_err(|denied| {
            let status = match denied {
                CallDenied::WrongCredentials => StatusCode::UNAUTHORIZED,
                CallDenied::NoOwnCredentials => StatusCode::SERVICE_UNAVAILABLE,
            };
            Refused(status, denied.to_string())
        })?;
        // A copy, because the body takes the request.
        Ok(Known(self.has_etags.then(|| request.headers().clone())))
    }

    /// Writes routes into the cluster.
    async fn deploy(&self, body: &[u8]) -> Result<Reply, Refused> {
        let order = Order::read(body).map_err(|refusal| self.refused(&refusal))?;
        let routes = match order {
            Order::Routes(routes) => routes,
            Order::Violations(report) => {
                return Ok(with_body(StatusCode::UNPROCESSABLE_ENTITY, JSON, report));
            }
        };
        let allowed = self.access.allow(&routes);
        allowed.map_err(|denied| self.denied(&denied))?;
        match self.cluster.deploy(&routes).await {
            Ok(report) => Ok(with_body(StatusCode::CREATED, JSON, report)),
            Err(
                error @ (DeployError::Foreign(_)
                | DeployError::Leaving(_)
                | DeployError::Changed(_)),
            ) => {
                self.metrics.route_denied();
                Err(Refused(StatusCode::CONFLICT, error.to_string()))
            }
            Err(error) => {
                tracing::warn!(%error, "routes not deployed");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                // The reason may contain names and addresses of the cluster, so it only goes to the log.
                Err(Refused(status, "Internal server error".to_owned()))
            }
        }
    }

    fn denied(&self, denied: &Denied) -> Refused {
        self.metrics.route_denied();
        let status = match denied {
            Denied::NoToken | Denied::WrongToken => StatusCode::UNAUTHORIZED,
            Denied::NoOwnToken => StatusCode::SERVICE_UNAVAILABLE,
            Denied::Closed | Denied::ForeignHost | Denied::Namespace(_) => StatusCode::FORBIDDEN,
        };
        Refused(status, denied.to_string())
    }

    async fn body(&self, request: Request<Incoming>) -> Result<Bytes, Refused> {
        let coding = request.headers().get(header::CONTENT_ENCODING);
        if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            let text = "expected a body without Content-Encoding".to_owned();
            return Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        let body = Limited::new(request.into_body(), self.body_limit).collect();
        match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refused(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("expected a body of at most {} bytes", self.body_limit),
            )),
            Ok(Err(_)) => {
                let text = "the body broke off".to_owned();
                Err(Refused(StatusCode::BAD_REQUEST, text))
            }
            Err(_) => {
                let text = "the body did not arrive within 10 s".to_owned();
                Err(Refused(StatusCode::REQUEST_TIMEOUT, text))
            }
        }
    }

    fn refused(&self, refusal: &Refusal) -> Refused {
        let text = match (self.rules.format, refusal) {
            // The service of 2023 did not include the reason.
            (ResponseFormat::Seed, Refusal::NoJson(_)) => "Failed to parse request body".to_owned(),
            _ => refusal.to_string(),
        };
        Refused(StatusCode::BAD_REQUEST, text)
    }
}

/// The answers that a client has, by the head of its request. `None` without entity tags.
struct Known(Option<HeaderMap>);

impl Known {
    /// The answer of a hook, or 304 if the client has it.
    fn answer(&self, answer: String) -> Reply {
        let Some(headers) = &self.0 else {
            return with_body(StatusCode::OK, JSON, answer);
        };
        let tag = etag::of(answer.as_bytes());
        let mut reply = if etag::is_known(headers, &tag) {
            let mut reply = Response::new(Full::default());
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
            reply
        } else {
            with_body(StatusCode::OK, JSON, answer)
        };
        let tag = HeaderValue::try_from(tag).expect("quotes and digits are valid");
        reply.headers_mut().insert(header::ETAG, tag);
        reply
    }
}

/// Redirects a request with a surplus slash to the right path.
fn without_slash(request: &Request<Incoming>) -> Result<Reply, Refused> {
    let uri = request.uri();
    let path = uri.path().trim_end_matches('/');
    if Endpoint::of(path) == Endpoint::Unknown {
        return Err(Refused(StatusCode::NOT_FOUND, "Not Found".to_owned()));
    }
    let query = uri.query().map(|query| format!("?{query}"));
    let location = format!("{path}{}", query.unwrap_or_default());
    let mut reply = Response::new(Full::default());
    // 307 keeps method and body, which a POST requires.
    *reply.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    // The path is one of ours, and the HTTP parser has checked the query. If a header cannot hold them, the
    // status alone is still correct.
    if let Ok(location) = HeaderValue::try_from(location) {
        reply.headers_mut().insert(header::LOCATION, location);
    }
    Ok(reply)
}

fn with_body(status: StatusCode, media: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    set(&mut reply, header::CONTENT_TYPE, media);
    reply
}

fn set(reply: &mut Reply, name: HeaderName, value: &'static str) {
    reply
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}
