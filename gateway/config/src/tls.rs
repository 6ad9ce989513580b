//! `tls`: the gateway's certificates, and the authorities that it trusts.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// Certificates of the gateway, and certificates that it trusts. All values are PEM. `${file.PATH}` reads a
/// value from a file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// TLS for clients at the address of `supergraph.listen`. Without this key, clients connect without TLS.
    pub supergraph: Option<ServerTls>,
    /// TLS for subgraphs with `https` URLs.
    pub subgraph: SubgraphTls,
}

/// The certificate that clients receive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTls {
    /// The certificate of the gateway.
    pub certificate: Pem,
    /// The certificates between the gateway's certificate and an authority that clients trust. The chain may
    /// begin with the gateway's certificate.
    #[serde(default)]
    pub certificate_chain: Pem,
    /// The private key of the certificate.
    pub key: Pem,
}

/// Settings of TLS connections to subgraphs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubgraphTls {
    /// Settings for all subgraphs.
    pub all: ClientTls,
    /// Settings for one subgraph, by its name. Missing keys have the values of `all`.
    pub subgraphs: BTreeMap<String, ClientTls>,
}

/// The authorities that the gateway trusts, and its own certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientTls {
    /// Certificate authorities to trust, instead of the authorities of the operating system.
    pub certificate_authorities: Option<Pem>,
    /// The certificate of the gateway, for mutual TLS.
    pub client_authentication: Option<ClientAuthentication>,
}

/// The certificate of the gateway, for mutual TLS.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientAuthentication {
    /// The certificate, and the certificates between it and an authority that the other side trusts.
    pub certificate_chain: Pem,
    /// The private key of the certificate.
    pub key: Pem,
}

/// Text in PEM. It may be a key, so the gateway never shows it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pem(pub String);

impl fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "({} bytes of PEM)", self.0.len())
    }
}

impl SubgraphTls {
    /// The settings of a subgraph: its own keys, otherwise the keys of `all`. `None` if both are empty.
    #[must_use]
    pub fn of_subgraph(&self, name: &str) -> Option<ClientTls> {
        let own = self.subgraphs.get(name).cloned().unwrap_or_default();
        let all = &self.all;
        let both = ClientTls {
            certificate_authorities: own
                .certificate_authorities
                .or_else(|| all.certificate_authorities.clone()),
            client_authentication: own
                .client_authentication
                .or_else(|| all.client_authentication.clone()),
        };
        (both != ClientTls::default()).then_some(both)
    }
}
