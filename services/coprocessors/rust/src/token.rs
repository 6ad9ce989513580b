//! Checks tokens.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde_json::{Map, Value};

/// The client of a request, from the claims of its token.
pub struct Client {
    pub name: String,
    pub version: String,
}

/// Keys and rules to sign and check tokens.
pub struct Keys {
    signing: EncodingKey,
    checking: DecodingKey,
    rules: Validation,
}

impl Keys {
    /// Creates the keys from a shared secret.
    pub fn of(secret: &str) -> Keys {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.required_spec_claims.clear();
        rules.validate_nbf = true;
        rules.validate_aud = false;
        rules.leeway = 0;
        Keys {
            signing: EncodingKey::from_secret(secret.as_bytes()),
            checking: DecodingKey::from_secret(secret.as_bytes()),
            rules,
        }
    }

    /// The client of a header value, if its token is valid.
    pub fn client(&self, value: &str) -> Option<Client> {
        let (scheme, token) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let claims = decode::<Map<String, Value>>(token, &self.checking, &self.rules)
            .ok()?
            .claims;
        Some(Client {
            name: text(claims.get("client_name"), "coprocessor"),
            version: text(claims.get("client_version"), "loadtest"),
        })
    }

    /// Signs a token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        encode(&Header::default(), claims, &self.signing).expect("HS256 signs any JSON")
    }
}

fn text(claim: Option<&Value>, default: &str) -> String {
    match claim {
        None | Some(Value::Null) => default.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
