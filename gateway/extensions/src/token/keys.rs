//! Keys by RFC 7517, and the signatures by RFC 7518 that they verify.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway_config::Algorithm;
use ring::{hmac, signature};
use serde::Deserialize;

use super::TokenError;

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Written {
    kty: String,
    r#use: Option<String>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    k: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// A key that can verify signatures.
pub(crate) struct Key {
    id: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
}

enum Material {
    /// For SHA-256, SHA-384 and SHA-512.
    Secret(Box<[hmac::Key; 3]>),
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The algorithm with this name, or `None` if it is unknown or creates no signature.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    use Algorithm::*;
    Some(match name {
        "HS256" => HS256,
        "HS384" => HS384,
        "HS512" => HS512,
        "ES256" => ES256,
        "ES384" => ES384,
        "RS256" => RS256,
        "RS384" => RS384,
        "RS512" => RS512,
        "PS256" => PS256,
        "PS384" => PS384,
        "PS512" => PS512,
        "EdDSA" => EdDSA,
        _ => return None,
    })
}

/// Reads a key set. Skips keys of other kinds and keys for encryption.
pub(super) fn read(text: &[u8], origin: &str) -> Result<Vec<Key>, TokenError> {
    let wrong = |reason: String| TokenError::NotKeys {
        origin: origin.to_owned(),
        reason,
    };
    let set: Set = serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
    // RFC 7517, section 5, requires that keys of an unknown kind are skipped.
    let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::read).collect();
    if keys.is_empty() {
        return Err(wrong("it has no key for signatures".to_owned()));
    }
    Ok(keys)
}

/// Without the key material, because a secret must not get into a log.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Key");
        shown
            .field("id", &self.id)
            .field("algorithm", &self.algorithm);
        shown.finish_non_exhaustive()
    }
}

impl Key {
    /// True if the key has this identifier.
    pub(super) fn is_named(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }

    fn read(value: serde_json::Value) -> Option<Self> {
        let written: Written = serde_json::from_value(value).ok()?;
        // A key without `use` may sign.
        if written.r#use.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let decode = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let material = match (written.kty.as_str(), written.crv.as_deref()) {
            ("oct", _) => {
                let secret = decode(&written.k)?;
                let digests = [hmac::HMAC_SHA256, hmac::HMAC_SHA384, hmac::HMAC_SHA512];
                Material::Secret(Box::new(
                    digests.map(|digest| hmac::Key::new(digest, &secret)),
                ))
            }
            ("RSA", _) => Material::Rsa {
                modulus: decode(&written.n)?,
                exponent: decode(&written.e)?,
            },
            ("EC", Some("P-256")) => {
                Material::P256(point(decode(&written.x)?, decode(&written.y)?))
            }
            ("EC", Some("P-384")) => {
                Material::P384(point(decode(&written.x)?, decode(&written.y)?))
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(decode(&written.x)?),
            _ => return None,
        };
        // An unknown `alg` must not mean "any".
        let algorithm = match &written.alg {
            Some(name) => Some(algorithm(name)?),
            None => None,
        };
        Some(Self {
            id: written.kid,
            algorithm,
            material,
        })
    }

    /// True if a token with this algorithm and key identifier may be signed by this key. The kind of the key
    /// decides, because a public RSA key must never be used as an HMAC secret.
    pub(super) fn fits(&self, algorithm: Algorithm, id: Option<&str>) -> bool {
        use Algorithm::*;
        let is_kind = match &self.material {
            Material::Secret(_) => matches!(algorithm, HS256 | HS384 | HS512),
            Material::Rsa { .. } => {
                matches!(algorithm, RS256 | RS384 | RS512 | PS256 | PS384 | PS512)
            }
            Material::P256(_) => algorithm == ES256,
            Material::P384(_) => algorithm == ES384,
            Material::Ed25519(_) => algorithm == EdDSA,
        };
        // If the token or the key has no identifier, every key of the kind is tried.
        let is_named = match (id, self.id.as_deref()) {
            (Some(wanted), Some(own)) => wanted == own,
            _ => true,
        };
        is_kind && is_named && self.algorithm.is_none_or(|own| own == algorithm)
    }

    pub(super) fn verifies(&self, algorithm: Algorithm, signed: &[u8], given: &[u8]) -> bool {
        // `allows` and `fits` have checked the algorithm. The last arm is the 256-bit algorithm of each
        // family.
        match &self.material {
            Material::Secret(keys) => {
                let key = match algorithm {
                    Algorithm::HS384 => &keys[1],
                    Algorithm::HS512 => &keys[2],
                    _ => &keys[0],
                };
                hmac::verify(key, signed, given).is_ok()
            }
            Material::Rsa { modulus, exponent } => {
                let parameters = match algorithm {
                    Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => &signature::RSA_PKCS1_2048_8192_SHA256,
                };
                let key = signature::RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, signed, given).is_ok()
            }
            Material::P256(point) => {
                verify(&signature::ECDSA_P256_SHA256_FIXED, point, signed, given)
            }
            Material::P384(point) => {
                verify(&signature::ECDSA_P384_SHA384_FIXED, point, signed, given)
            }
            Material::Ed25519(point) => verify(&signature::ED25519, point, signed, given),
        }
    }
}

fn verify(
    algorithm: &'static dyn signature::VerificationAlgorithm,
    key: &[u8],
    signed: &[u8],
    given: &[u8],
) -> bool {
    signature::UnparsedPublicKey::new(algorithm, key)
        .verify(signed, given)
        .is_ok()
}

/// An uncompressed point (SEC 1, 2.3.3).
fn point(x: Vec<u8>, y: Vec<u8>) -> Vec<u8> {
    // 4 marks a point with both coordinates.
    [vec![4], x, y].concat()
}
