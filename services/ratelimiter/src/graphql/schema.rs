//! The schema in async-graphql's terms.

use async_graphql::{
    Context, EmptyMutation, EmptySubscription, Enum, Error, ErrorExtensions as _, InputObject,
    Object, SimpleObject, ValidationMode, Value, value,
};
use graphql_document::DEPTH_MAX;

use crate::address::Address;
use crate::advice::Tally;
use crate::email;
use crate::error_shape::ErrorShape;
use crate::gate::Gate;
use crate::rule;

/// The schema of one worker.
pub(crate) type Schema = async_graphql::Schema<Query, EmptyMutation, EmptySubscription>;

pub(crate) fn schema(
    gate: Gate,
    shape: ErrorShape,
    hostname: Option<String>,
    mode: ValidationMode,
) -> Schema {
    let query = Query {
        gate,
        shape,
        hostname,
    };
    // The library counts the selection set of the operation as 0, `DEPTH_MAX` counts it as 1.
    Schema::build(query, EmptyMutation, EmptySubscription)
        .limit_recursive_depth(DEPTH_MAX - 1)
        .validation_mode(mode)
        .finish()
}

/// The root type of queries.
pub(crate) struct Query {
    gate: Gate,
    shape: ErrorShape,
    /// The name of this instance, if it differs from the machine's name.
    hostname: Option<String>,
}

#[Object]
impl Query {
    async fn ratelimit(
        &self,
        context: &Context<'_>,
        ratelimit_input: RatelimitInput,
    ) -> Option<Result<RatelimitResponse, Error>> {
        let address = Address::parse(&ratelimit_input.ip);
        let (Some(address), true) = (address, email::is_email(&ratelimit_input.email)) else {
            self.gate.metrics.invalid();
            // With `Result<Option<…>>`, the library would set the whole response to null.
            return Some(Err(invalid(
                &ratelimit_input,
                address.is_some(),
                self.shape,
            )));
        };
        // Only if both are valid, because a refused input must not be counted.
        let event = ratelimit_input.event_name.event();
        let decided = self.gate.decide(address, event, &ratelimit_input.email);
        let verdict = decided.await;
        let is_rate_limited = verdict.is_limited;
        if let Some(tally) = context.data_opt::<Tally>() {
            tally.add(verdict);
        }
        Some(Ok(RatelimitResponse {
            is_rate_limited,
            ip_from: ratelimit_input.ip,
        }))
    }

    async fn serverinfo(&self) -> Option<Serverinfo> {
        Some(Serverinfo::read(self.hostname.as_deref()))
    }
}

#[derive(InputObject)]
pub(crate) struct RatelimitInput {
    event_name: EventName,
    ip: String,
    email: String,
}

/// Result of the login attempt.
#[derive(Enum, Copy, Clone, Eq, PartialEq)]
pub(crate) enum EventName {
    LoginFailed,
    LoginSucceeded,
}

impl EventName {
    fn event(self) -> rule::Event {
        match self {
            Self::LoginFailed => rule::Event::Failed,
            Self::LoginSucceeded => rule::Event::Succeeded,
        }
    }

    /// The original's internal name for the event, which its errors contain.
    fn internal(self) -> &'static str {
        match self {
            Self::LoginFailed => "login_failed",
            Self::LoginSucceeded => "login_succeeded",
        }
    }
}

#[derive(SimpleObject)]
pub(crate) struct RatelimitResponse {
    /// IP address from the request, unchanged.
    ip_from: String,
    /// True if the service that handles the login must refuse the client.
    is_rate_limited: bool,
}

/// Used to check instances of loadbalance test
#[derive(SimpleObject)]
pub(crate) struct Serverinfo {
    /// The IPv4 addresses of the machine, joined by commas.
    #[graphql(name = "hostIPs")]
    host_ips: String,
    /// The name of the machine, or of the instance.
    hostname: String,
}

impl Serverinfo {
    fn read(hostname: Option<&str>) -> Self {
        // Only for testers: without the addresses, the response still names the instance.
        let addresses = if_addrs::get_if_addrs().unwrap_or_default();
        let host_ips: Vec<_> = addresses
            .into_iter()
            .map(|interface| interface.ip())
            .filter(std::net::IpAddr::is_ipv4)
            .map(|address| address.to_string())
            .collect();
        let system = rustix::system::uname();
        Self {
            host_ips: host_ips.join(","),
            hostname: hostname.map_or_else(
                || system.nodename().to_string_lossy().into_owned(),
                str::to_owned,
            ),
        }
    }
}

/// The error for an invalid input, with one element per property, ip first.
fn invalid(input: &RatelimitInput, is_ip: bool, shape: ErrorShape) -> Error {
    let target = value!({
        "eventName": (input.event_name.internal()),
        "ip": (input.ip.clone()),
        "email": (input.email.clone()),
    });
    let element = |property: &str, text: &str, constraints: Value| {
        value!({
            "target": (target.clone()),
            "value": (text.to_owned()),
            "property": (property.to_owned()),
            "children": [],
            "constraints": (constraints),
        })
    };
    let mut mistakes = Vec::new();
    if !is_ip {
        let constraints = value!({"isIp": "ip must be an ip address"});
        mistakes.push(element("ip", &input.ip, constraints));
    }
    if !email::is_email(&input.email) {
        let constraints = value!({"isEmail": "email must be an email"});
        mistakes.push(element("email", &input.email, constraints));
    }
    let code = match shape {
        ErrorShape::Compatible => "INTERNAL_SERVER_ERROR",
        ErrorShape::Strict => "BAD_USER_INPUT",
    };
    Error::new("Argument Validation Error").extend_with(|_, extensions| {
        extensions.set("code", code);
        extensions.set(
            "exception",
            value!({"validationErrors": (Value::List(mistakes.clone()))}),
        );
    })
}
