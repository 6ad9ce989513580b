//! Certificates of a Redis for one test.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// A certificate authority with a folder for its files.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// The files of a certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// The file of the authority.
    pub(crate) fn file(&self) -> String {
        self.path("ca.pem")
    }

    /// Writes a certificate for these names.
    pub(crate) fn identity(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let prefix = names[0].clone();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let identity = Identity {
            certificate: self.path(&format!("{prefix}.pem")),
            key: self.path(&format!("{prefix}.key")),
        };
        fs::write(&identity.certificate, certificate.pem()).unwrap();
        fs::write(&identity.key, key.serialize_pem()).unwrap();
        identity
    }

    /// The settings of a Redis or a sentinel with this certificate, as pairs of a name and a value.
    pub(crate) fn settings(&self, identity: &Identity, clients: &str) -> Vec<(String, String)> {
        [
            ("port", "0"),
            ("tls-port", "{port}"),
            ("tls-cert-file", &identity.certificate),
            ("tls-key-file", &identity.key),
            ("tls-ca-cert-file", &self.file()),
            ("tls-auth-clients", clients),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    fn path(&self, name: &str) -> String {
        let path: &Path = &self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }
}
