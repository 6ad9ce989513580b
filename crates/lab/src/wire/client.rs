//! The certificate of the load, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use yaml_with_places::At;

/// The certificate that the load and the proofs send to a target with `scheme: https`, if the target
/// requests one. `weigh` reads both files at each start of the systems, so that a `build` can make
/// them. Paths are relative to the file that contains these keys. A measurement in a cluster has no
/// such files.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "tls")]
pub(crate) struct ClientFile {
    /// A PEM file with the certificate, and after it the certificates of its issuers if the target
    /// needs them.
    #[schemars(required)]
    pub(crate) certificate: Option<At<String>>,
    /// A PEM file with the private key of the certificate, without a password.
    #[schemars(required)]
    pub(crate) key: Option<At<String>>,
}
