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
    pub trust: LabTrust,
    /// The certificate of the load and the proofs, if the lab names one.
    pub client: Option<ClientFiles>,
}

/// The certificates that a lab accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabTrust {
    /// Certificates of the authorities that the operating system trusts.
    System,
    /// Only certificates of the authorities in this PEM file. It is read at the start of systems, because a
    /// build can make it.
    Authorities(PathBuf),
    /// Any certificate, even an expired one or one for another name.
    SkipVerification,
}

/// The files of a client's certificate. They are read at the start of systems, because a build can make them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate and the certificates of its issuers, in PEM form.
    pub certificate: PathBuf,
    /// The private key, in PEM form.
    pub key: PathBuf,
}

/// The contents of the files that a [`Protocol`] names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificates {
    /// The authorities of [`LabTrust::Authorities`], in PEM form. Empty for other kinds of trust.
    pub authorities: Vec<u8>,
    /// The certificate and the key of the client, if the lab names them.
    pub client: Option<ClientIdentity>,
}

impl Protocol {
    /// Returns the protocol of requests to a system. `contents` are the contents of the files of this lab. A
    /// protocol for a text needs no contents.
    #[must_use]
    pub fn to(&self, setup: &Setup, contents: &Certificates) -> model::Protocol {
        let trust = || match &self.trust {
            LabTrust::System => Trust::System,
            LabTrust::Authorities(_) => Trust::Authorities(contents.authorities.clone()),
            LabTrust::SkipVerification => Trust::SkipVerification,
        };
        let client = contents.client.as_ref();
        model::Protocol {
            version: setup.http,
            tls: setup.is_encrypted.then(trust),
            identity: client.filter(|_| setup.is_encrypted).cloned(),
            resumption: setup.resumption,
        }
    }
}
