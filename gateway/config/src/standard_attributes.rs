//! The standard attributes and instruments of each service.

use crate::instrumentation::RequirementLevel;

/// A service with instrumentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentedService {
    /// The client's HTTP request.
    Router,
    /// An operation.
    Supergraph,
    /// An HTTP request to a subgraph.
    Subgraph,
}

/// A standard attribute of a service.
#[derive(Clone, Copy, Debug)]
pub struct StandardAttribute {
    /// Name of the attribute.
    pub name: &'static str,
    /// The lowest level that adds the attribute to spans. `None` if only a key adds it.
    pub on_spans: Option<RequirementLevel>,
    /// The lowest level that adds the attribute to standard instruments. `None` if only a key adds it.
    pub on_instruments: Option<RequirementLevel>,
    /// True if the gateway sets the attribute on each span without this table.
    pub is_built_in: bool,
}

const REQUIRED: Option<RequirementLevel> = Some(RequirementLevel::Required);
const RECOMMENDED: Option<RequirementLevel> = Some(RequirementLevel::Recommended);

/// An attribute that each span has, unless it is turned off.
const fn built_in(
    name: &'static str,
    on_instruments: Option<RequirementLevel>,
) -> StandardAttribute {
    StandardAttribute {
        name,
        on_spans: REQUIRED,
        on_instruments,
        is_built_in: true,
    }
}

/// An attribute that a level or a key adds.
const fn added(name: &'static str, on_spans: Option<RequirementLevel>) -> StandardAttribute {
    StandardAttribute {
        name,
        on_spans,
        on_instruments: None,
        is_built_in: false,
    }
}

const ROUTER: &[StandardAttribute] = &[
    built_in("http.request.method", REQUIRED),
    built_in("http.response.status_code", REQUIRED),
    built_in("error.type", REQUIRED),
    built_in("http.route", REQUIRED),
    built_in("url.scheme", REQUIRED),
    built_in("url.path", None),
    built_in("network.protocol.version", RECOMMENDED),
    built_in("client.address", None),
    built_in("server.address", RECOMMENDED),
    built_in("server.port", RECOMMENDED),
    built_in("user_agent.original", None),
    built_in("graphql.operation.name", None),
    built_in("graphql.operation.type", None),
    added("http.request.body.size", RECOMMENDED),
    added("http.response.body.size", RECOMMENDED),
    added("network.type", RECOMMENDED),
    added("url.query", RECOMMENDED),
    added("network.protocol.name", None),
    added("network.transport", None),
    added("network.peer.address", None),
    added("trace_id", None),
    added("dd.trace_id", None),
];

const SUPERGRAPH: &[StandardAttribute] = &[
    built_in("graphql.operation.name", RECOMMENDED),
    built_in("graphql.operation.type", RECOMMENDED),
    added("graphql.document", RECOMMENDED),
    added("cost.estimated", None),
    added("cost.actual", None),
    added("cost.delta", None),
    added("cost.result", None),
];

const SUBGRAPH: &[StandardAttribute] = &[
    built_in("subgraph.name", REQUIRED),
    built_in("subgraph.graphql.operation.type", RECOMMENDED),
    built_in("http.request.method", None),
    built_in("http.response.status_code", None),
    built_in("error.type", None),
    built_in("server.address", None),
    built_in("server.port", None),
    built_in("network.transport", None),
    built_in("url.full", None),
    built_in("http.request.resend_count", None),
    added("subgraph.graphql.operation.name", RECOMMENDED),
    added("subgraph.graphql.document", RECOMMENDED),
];

/// Standard attributes of Apollo Router that the gateway cannot determine.
pub(crate) const UNKNOWABLE: &[&str] = &[
    "network.local.address",
    "network.local.port",
    "network.peer.port",
    "baggage",
];

/// The attributes that set the name and the status of a span.
pub(crate) const SPAN_SETTINGS: &[&str] =
    &["otel.name", "otel.status_code", "otel.status_description"];

impl InstrumentedService {
    /// All services, in the order of a request.
    pub const ALL: [Self; 3] = [Self::Router, Self::Supergraph, Self::Subgraph];

    /// The key of the service.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Supergraph => "supergraph",
            Self::Subgraph => "subgraph",
        }
    }

    /// The standard attributes of the service.
    #[must_use]
    pub fn attributes(self) -> &'static [StandardAttribute] {
        match self {
            Self::Router => ROUTER,
            Self::Supergraph => SUPERGRAPH,
            Self::Subgraph => SUBGRAPH,
        }
    }

    /// The standard attribute with this name.
    #[must_use]
    pub fn attribute(self, name: &str) -> Option<&'static StandardAttribute> {
        self.attributes().iter().find(|it| it.name == name)
    }

    /// The standard instruments of the service.
    #[must_use]
    pub fn instruments(self) -> &'static [&'static str] {
        match self {
            Self::Router => &[
                "http.server.active_requests",
                "http.server.request.duration",
                "http.server.request.body.size",
                "http.server.response.body.size",
            ],
            Self::Supergraph => &["cost.actual", "cost.delta", "cost.estimated"],
            Self::Subgraph => &[
                "http.client.request.duration",
                "http.client.request.body.size",
                "http.client.response.body.size",
            ],
        }
    }
}
