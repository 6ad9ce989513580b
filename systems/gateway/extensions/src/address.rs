//! Addresses of a configuration as endpoints of the client.

use gateway_config::HttpVersions;
use gateway_upstream::{Endpoint, EndpointError, Http2, Policy};

pub(crate) fn endpoint(
    written: &gateway_config::Endpoint,
    policy: Policy,
) -> Result<Endpoint, EndpointError> {
    match written {
        gateway_config::Endpoint::Http(uri) => Endpoint::from_uri(uri, policy),
        gateway_config::Endpoint::Unix { socket, path } => {
            Endpoint::parse(&format!("unix://{}?path={path}", socket.display()), policy)
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
