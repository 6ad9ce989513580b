//! Stored operations as REST. A request becomes a GraphQL request and passes all stages. Then the GraphQL
//! envelope of the response is removed.

use std::rc::Rc;

use gateway_config::Csrf;
use gateway_extensions::StageRequest;
use gateway_remote::{RestAnswer, RestError, RestRequest, unwrap_response};
use gateway_telemetry::Active;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};

use crate::graphql::pipeline;
use crate::http::csrf;
use crate::http::reply::{self, JSON, Reply};
use crate::http::summary::Summary;
use crate::process::worker_state::WorkerState;

/// The rejection of a request that a foreign page could have made a browser send. A browser also sends GET
/// without a preflight, but the configuration allows only queries with GET.
pub(crate) fn early(csrf: &Csrf, method: &Method, headers: &HeaderMap) -> Option<Reply> {
    if method != Method::POST {
        return None;
    }
    let message = csrf::problem(csrf, headers)?;
    Some(refused(&RestError {
        status: 400,
        message,
        code: "csrf",
        allow: None,
    }))
}

/// Responds to a request below `/api/rest/`.
pub(crate) async fn serve(
    serving: &Rc<WorkerState>,
    request: &mut StageRequest,
    trace: Option<Active>,
    summary: &mut Summary,
) -> Reply {
    let Some(endpoints) = &serving.generation.rest else {
        return reply::empty(StatusCode::NOT_FOUND);
    };
    let asked = RestRequest {
        method: request.method.as_str(),
        path: request.uri.path(),
        parameters: request.uri.query().unwrap_or_default(),
        body: &request.body,
    };
    match endpoints.graphql(asked) {
        Ok(body) => request.body = body.into(),
        Err(error) => return refused(&error),
    }
    // The stages see an ordinary GraphQL request. REST negotiates no media type, so GraphQL's negotiation
    // would only reject the client's own headers.
    request.method = Method::POST;
    request.headers.insert(header::CONTENT_TYPE, JSON);
    request.headers.insert(header::ACCEPT, JSON);
    let mut reply = pipeline::serve(serving, request, trace, summary).await;
    let (status, body) = match unwrap_response(&reply.body) {
        RestAnswer::Data(body) => (reply.status, body),
        // Only if the status is GraphQL's 200. A status from a stage or from the gateway is more precise.
        RestAnswer::Error(status, body) if reply.status == StatusCode::OK => {
            (status_of(status), body)
        }
        RestAnswer::Error(_, body) => (reply.status, body),
    };
    reply.status = status;
    reply.body = body.into();
    reply
}

fn refused(error: &RestError) -> Reply {
    let mut reply = reply::with_body(status_of(error.status), JSON, error.body());
    let allow = error.allow.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(allow)) = allow {
        reply.headers.insert(header::ALLOW, allow);
    }
    reply
}

fn status_of(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
