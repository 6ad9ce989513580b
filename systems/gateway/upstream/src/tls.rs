//! TLS with the authorities that the operating system trusts.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::endpoint::Http2;

/// The connector for one answer to "HTTP/2?". Reading the authorities costs
/// milliseconds and memory, so it happens at the first `https` call only.
pub(crate) fn connector(http2: Http2, roots: &RootCertStore) -> TlsConnector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default protocol versions")
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = match http2 {
        Http2::Disable => vec![b"http/1.1".to_vec()],
        Http2::Enable => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Http2::Only => vec![b"h2".to_vec()],
    };
    TlsConnector::from(Arc::new(config))
}

/// What the operating system trusts; a certificate that cannot be read is left out.
pub(crate) fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
