//! `session_variables`: the source of the `x-hasura-*` headers for remote schemas and actions.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{ClaimPath, Form, Written};

/// Where session variables (`x-hasura-role` and the like) come from: from the claims of a checked
/// token; from the client only when it is trusted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionVariables {
    /// Whether the `x-hasura-*` headers of every client count, and a client without a role is
    /// `admin`. Only for a gateway that trusted services alone can reach.
    pub trust_clients: bool,
    /// A client whose `x-hasura-admin-secret` is this is trusted; it is never sent on.
    pub admin_secret: Option<Written<HeaderValue>>,
    /// The role of everyone who is neither trusted nor has a role in a token.
    pub unauthorized_role: Written<HeaderValue>,
    /// The claim that holds the session variables as an object, or as the JSON text of one.
    pub claims_namespace: String,
    /// Session variables from other claims, by name; the claim of `claims_namespace` is not looked
    /// at then. `x-hasura-allowed-roles` and `x-hasura-default-role` decide about the role.
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

/// Where one session variable comes from; at least one of the two keys is required.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct MappedClaim {
    /// The place in the claims: `$.sub`, `$.roles[0]`, `$['https://a.b/c'].d`.
    pub path: Option<Written<ClaimPath>>,
    /// The value when there is nothing at `path`.
    pub default: Option<String>,
}

/// The name of a session variable, in lower case: `x-hasura-user-id`.
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
