//! `tls`: the gateway's certificates, and the authorities that it trusts.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// Certificates of the gateway, and whom it trusts. All values are PEM; `${file.PATH}` takes them from
/// a file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// TLS for clients, on the address of `supergraph.listen`; without it they are served in the
    /// clear.
    pub supergraph: Option<ServerTls>,
    /// TLS towards subgraphs whose URLs are `https`.
    pub subgraph: SubgraphTls,
}

/// The certificate that clients see.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTls {
    /// The certificate of the gateway.
    pub certificate: Pem,
    /// The certificates between it and an authority that clients know; may hold the first again.
    #[serde(default)]
    pub certificate_chain: Pem,
    /// The private key.
    pub key: Pem,
}

/// TLS towards subgraphs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubgraphTls {
    /// For all of them.
    pub all: ClientTls,
    /// For one subgraph, by its name; what it leaves out is taken from `all`.
    pub subgraphs: BTreeMap<String, ClientTls>,
}

/// Whom the gateway trusts, and what it shows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientTls {
    /// Authorities to trust in place of those of the operating system.
    pub certificate_authorities: Option<Pem>,
    /// The certificate that the gateway shows (mutual TLS).
    pub client_authentication: Option<ClientAuthentication>,
}

/// The certificate that the gateway shows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientAuthentication {
    /// The certificate, and those between it and an authority that the other side knows.
    pub certificate_chain: Pem,
    /// Its private key.
    pub key: Pem,
}

/// Text in PEM. It is never shown: it may be a key.
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
