//! `session_variables`: the source of the `x-hasura-*` headers for remote schemas and actions.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{ClaimPath, Form, Written};

/// The source of session variables such as `x-hasura-role`. They come from the claims of a valid token. The
/// gateway uses the client's headers only if it trusts the client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionVariables {
    /// True if the gateway trusts the `x-hasura-*` headers of every client. A client without a role is then
    /// `admin`. Use it only if untrusted services cannot reach the gateway.
    pub trust_clients: bool,
    /// The secret of trusted clients. They send it in the header `x-hasura-admin-secret`. The gateway never
    /// forwards it.
    pub admin_secret: Option<Written<HeaderValue>>,
    /// The role of clients that are not trusted and have no role in a token.
    pub unauthorized_role: Written<HeaderValue>,
    /// The claim with the session variables, as an object or as JSON text of an object.
    pub claims_namespace: String,
    /// Session variables from other claims, by name. The gateway then ignores `claims_namespace`.
    /// `x-hasura-allowed-roles` and `x-hasura-default-role` decide about the role.
    #[schemars(extend("propertyNames" = {"format": "session-name"}))]
    pub claims_map: BTreeMap<Written<SessionName>, MappedClaim>,
}

impl Default for SessionVariables {
    fn default() -> Self {
        Self {
            trust_clients: false,
            admin_secret: None,
            unauthorized_role: Written(HeaderValue::from_static("anonymous")),
            claims_namespace: "https://hasura.io/jwt/claims".to_owned(),
            claims_map: BTreeMap::new(),
        }
    }
}

/// The source of one session variable. At least one of the two keys is required.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct MappedClaim {
    /// The path in the claims, such as `$.sub`, `$.roles[0]` or `$['https://a.b/c'].d`.
    pub path: Option<Written<ClaimPath>>,
    /// The value if the token has no claim at `path`.
    pub default: Option<String>,
}

/// The name of a session variable in lower case, such as `x-hasura-user-id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionName(pub String);

impl SessionName {
    /// Prefix of all names of session variables.
    pub const PREFIX: &str = "x-hasura-";

    /// The header with this name.
    ///
    /// # Panics
    /// Never panics, because reading a name checks that it is a header name.
    #[must_use]
    pub fn header(&self) -> HeaderName {
        HeaderName::from_bytes(self.0.as_bytes()).expect("it was read as the name of a header")
    }
}

impl Form for SessionName {
    const NAME: &'static str = "session-name";

    fn read(text: &str) -> Result<Self, String> {
        let name = text.to_ascii_lowercase();
        let is_name = name.len() > Self::PREFIX.len()
            && name.starts_with(Self::PREFIX)
            && HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !is_name {
            return Err(format!(
                "expected the name of a session variable such as `x-hasura-user-id`, found `{text}`"
            ));
        }
        Ok(Self(name))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}
