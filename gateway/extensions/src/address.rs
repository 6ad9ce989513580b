//! Converts configured addresses to endpoints of the HTTP client.

use gateway_config::{ClientTls, HttpVersions};
use gateway_upstream::{EndpointError, Http2, Policy, Trust, UpstreamEndpoint};

pub(crate) fn endpoint(
    written: &gateway_config::ServiceAddress,
    policy: Policy,
) -> Result<UpstreamEndpoint, EndpointError> {
    match written {
        gateway_config::ServiceAddress::Http(uri) => UpstreamEndpoint::from_uri(uri, policy),
        gateway_config::ServiceAddress::Unix { socket, path } => {
            UpstreamEndpoint::parse(&format!("unix://{}?path={path}", socket.display()), policy)
        }
    }
}

pub(crate) fn http2(versions: HttpVersions) -> Http2 {
    match versions {
        HttpVersions::Enable => Http2::Enable,
        HttpVersions::Disable => Http2::Disable,
        HttpVersions::Http2Only => Http2::Only,
    }
}

/// The trusted authorities and the client certificate of a subgraph's endpoint.
pub(crate) fn trust(tls: &ClientTls) -> Result<Trust, EndpointError> {
    let authorities = tls.certificate_authorities.as_ref().map(|pem| &*pem.0);
    let identity = tls.client_authentication.as_ref();
    let identity = identity.map(|it| (&*it.certificate_chain.0, &*it.key.0));
    Ok(Trust::new(authorities, identity)?)
}
