//! Session variables: headers about the client for services and handlers (`x-hasura-role` and similar names).
//!
//! They come from the claims of a verified token. A client's own `x-hasura-*` headers count only if the
//! client is trusted. The configuration can trust all clients, or a client sends the administrator's secret.

use std::borrow::Cow;

use gateway_config::{SessionName, SessionVariables};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use subtle::ConstantTimeEq as _;

const ROLE: HeaderName = HeaderName::from_static("x-hasura-role");
const ADMIN: HeaderValue = HeaderValue::from_static("admin");
const ADMIN_SECRET: HeaderName = HeaderName::from_static("x-hasura-admin-secret");
const ALLOWED_ROLES: &str = "x-hasura-allowed-roles";
const DEFAULT_ROLE: &str = "x-hasura-default-role";

/// The reason why a request has no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The client sent a wrong administrator secret.
    #[error("the header `x-hasura-admin-secret` is wrong")]
    AdminSecret,
    /// The client requests a role that its token does not allow.
    #[error("the role of the header `x-hasura-role` is not among the allowed roles of the token")]
    Role,
    /// A claim has an invalid value.
    #[error("the claim `{0}` of the token cannot be a session variable")]
    Claim(String),
}

/// The session variables of one request: the role, then the others.
#[derive(Clone, Debug)]
pub struct Session(Vec<(HeaderName, HeaderValue)>);

impl Default for Session {
    /// The session of an anonymous client: the role `anonymous`.
    fn default() -> Self {
        Self::of_role(HeaderValue::from_static("anonymous"))
    }
}

/// True if a header carries a session variable. The gateway forwards no such header of a client unchanged.
pub(crate) fn is_session_header(name: &HeaderName) -> bool {
    name.as_str().starts_with(SessionName::PREFIX)
}

impl Session {
    /// The session of a request with these headers, and the claims of its token if it has one.
    ///
    /// # Errors
    /// Fails if the client requests more than it may have, or if the claims are invalid.
    pub fn new(
        rules: &SessionVariables,
        client: &HeaderMap,
        claims: Option<&Value>,
    ) -> Result<Self, SessionError> {
        let is_trusted = match (&rules.admin_secret, client.get(ADMIN_SECRET)) {
            (Some(secret), Some(given)) => {
                // In constant time. A comparison that ends at the first difference would reveal the secret
                // byte by byte through its duration.
                if !bool::from(secret.as_bytes().ct_eq(given.as_bytes())) {
                    return Err(SessionError::AdminSecret);
                }
                true
            }
            _ => rules.trust_clients,
        };
        if is_trusted {
            return Ok(Self::of_trusted(client));
        }
        let unauthorized = || Self::of_role((*rules.unauthorized_role).clone());
        let Some(claims) = claims else {
            return Ok(unauthorized());
        };
        let variables = variables(rules, claims)?;
        if variables.is_empty() {
            return Ok(unauthorized());
        }
        Self::of_claims(&variables, client.get(ROLE), rules)
    }

    fn of_role(role: HeaderValue) -> Self {
        Self(vec![(ROLE, role)])
    }

    /// The session that the client sent. Without a role the client is the administrator, by the contract.
    fn of_trusted(client: &HeaderMap) -> Self {
        let mut session = Self::of_role(client.get(ROLE).cloned().unwrap_or(ADMIN));
        // Only the first value of each header, because a session variable has one value.
        let others = client
            .keys()
            .filter(|name| is_session_header(name) && **name != ROLE && **name != ADMIN_SECRET);
        let others = others.filter_map(|name| Some((name.clone(), client.get(name)?.clone())));
        session.0.extend(others);
        session
    }

    fn of_claims(
        variables: &[(String, Cow<'_, Value>)],
        wanted: Option<&HeaderValue>,
        rules: &SessionVariables,
    ) -> Result<Self, SessionError> {
        let find = |name: &str| {
            let mut all = variables.iter();
            all.find(|(known, _)| known == name)
                .map(|(_, value)| &**value)
        };
        let role = match wanted {
            // A client may choose one of the roles in its token.
            Some(wanted) => {
                let allowed = roles(find(ALLOWED_ROLES)).ok_or_else(|| wrong(ALLOWED_ROLES))?;
                if !allowed
                    .iter()
                    .any(|role| role.as_bytes() == wanted.as_bytes())
                {
                    return Err(SessionError::Role);
                }
                wanted.clone()
            }
            None => match find(DEFAULT_ROLE).or_else(|| find(ROLE.as_str())) {
                Some(role) => header_value(DEFAULT_ROLE, role)?,
                None => (*rules.unauthorized_role).clone(),
            },
        };
        let mut session = Self::of_role(role);
        for (name, value) in variables {
            let is_about_roles = [ROLE.as_str(), ALLOWED_ROLES, DEFAULT_ROLE].contains(&&**name);
            if is_about_roles || *name == ADMIN_SECRET.as_str() {
                continue;
            }
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(name))?;
            // The claims contain two spellings of one name, and services could use either value.
            if session.0.iter().any(|(known, _)| *known == header) {
                return Err(wrong(name));
            }
            session.0.push((header, header_value(name, value)?));
        }
        Ok(session)
    }

    /// The variables as request headers.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// True if the client may do everything.
    pub(crate) fn is_admin(&self) -> bool {
        self.role() == Some(&ADMIN)
    }

    pub(crate) fn has_role(&self, role: &str) -> bool {
        self.role().is_some_and(|own| own == role)
    }

    fn role(&self) -> Option<&HeaderValue> {
        let mut headers = self.headers();
        headers.find_map(|(name, value)| (*name == ROLE).then_some(value))
    }

    /// The variables as a JSON object of strings.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8(out).expect("the texts were made of characters")
    }

    /// Appends the variables as a JSON object of strings.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            gateway_template::write_text(name.as_str(), out);
            out.push(b':');
            gateway_template::write_text(&String::from_utf8_lossy(value.as_bytes()), out);
        }
        out.push(b'}');
    }
}

fn wrong(claim: &str) -> SessionError {
    SessionError::Claim(claim.to_owned())
}

/// Session variables from claims: names in lower case, with their values.
type Variables<'a> = Vec<(String, Cow<'a, Value>)>;

fn variables<'a>(
    rules: &'a SessionVariables,
    claims: &'a Value,
) -> Result<Variables<'a>, SessionError> {
    if !rules.claims_map.is_empty() {
        let mapped = rules.claims_map.iter().filter_map(|(name, from)| {
            let found = from
                .path
                .as_ref()
                .and_then(|it| claims.pointer(&it.pointer));
            let value = match found.filter(|it| !it.is_null()) {
                Some(found) => Cow::Borrowed(found),
                None => Cow::Owned(from.default.clone()?.into()),
            };
            Some((name.0.0.clone(), value))
        });
        return Ok(mapped.collect());
    }
    let namespace = &rules.claims_namespace;
    let held = match claims.get(namespace) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        // Some issuers can only write strings.
        Some(Value::String(text)) => {
            Cow::Owned(serde_json::from_str(text).map_err(|_| wrong(namespace))?)
        }
        Some(value) => Cow::Borrowed(value),
    };
    let entries: Vec<(String, Cow<'a, Value>)> = match held {
        Cow::Borrowed(Value::Object(members)) => {
            let members = members.iter();
            members
                .map(|(name, value)| (name.clone(), Cow::Borrowed(value)))
                .collect()
        }
        Cow::Owned(Value::Object(members)) => {
            let members = members.into_iter();
            members
                .map(|(name, value)| (name, Cow::Owned(value)))
                .collect()
        }
        _ => return Err(wrong(namespace)),
    };
    // The issuer may store other entries there. The gateway ignores them.
    let entries = entries.into_iter().filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        name.starts_with(SessionName::PREFIX)
            .then_some((name, value))
    });
    Ok(entries.collect())
}

/// The allowed roles: a list, or a string with the JSON of a list.
fn roles(claim: Option<&Value>) -> Option<Vec<String>> {
    match claim {
        None => Some(Vec::new()),
        Some(Value::String(text)) => serde_json::from_str(text).ok(),
        Some(Value::Array(items)) => {
            let items = items.iter().map(|item| item.as_str().map(str::to_owned));
            items.collect()
        }
        Some(_) => None,
    }
}

fn header_value(claim: &str, value: &Value) -> Result<HeaderValue, SessionError> {
    let text = match value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        other => Cow::Owned(other.to_string()),
    };
    // Refused rather than left out, because a service may treat a missing variable as unrestricted.
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| wrong(claim))
}
