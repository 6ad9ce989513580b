//! The protocol of requests: the version of HTTP, and the certificates of both sides.

use std::path::PathBuf;

use model::{ClientIdentity, Trust, Version};

use super::Setup;

/// The HTTP version and trust of a lab. [`Setup::is_encrypted`] decides whether a target uses TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The HTTP version of every request of the load, unless a variant sets it.
    pub version: Version,
    /// The certificates that are accepted over TLS.
    pub trust: Trust,
    /// The certificate of the load and the proofs, if the lab names one.
    pub client: Option<ClientFiles>,
}

/// The files of a client's certificate. They are read at the start of systems, because a build can make them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate and the certificates of its issuers, in PEM form.
    pub certificate: PathBuf,
    /// The private key, in PEM form.
    pub key: PathBuf,
}

impl Protocol {
    /// Returns the protocol of requests to a system. `identity` is the content of the client's files.
    #[must_use]
    pub fn to(&self, setup: &Setup, identity: Option<&ClientIdentity>) -> model::Protocol {
        model::Protocol {
            version: setup.http,
            tls: setup.is_encrypted.then(|| self.trust.clone()),
            identity: identity.filter(|_| setup.is_encrypted).cloned(),
        }
    }
}
