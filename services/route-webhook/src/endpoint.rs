//! The endpoints: their paths, names and methods.

/// The endpoint of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Sync,
    Certificates,
    Route,
    Status,
    Metrics,
    Unknown,
}

impl Endpoint {
    pub(crate) const ALL: [Self; 6] = [
        Self::Sync,
        Self::Certificates,
        Self::Route,
        Self::Status,
        Self::Metrics,
        Self::Unknown,
    ];

    /// The endpoint of a path.
    pub(crate) fn of(path: &str) -> Self {
        match path {
            "/webhook/sync" | "/sync" => Self::Sync,
            "/webhook/addons/certmanager/sync" | "/addons/certmanager/sync" => Self::Certificates,
            "/route" => Self::Route,
            "/status" | "/health" | "/healthz" => Self::Status,
            "/metrics" => Self::Metrics,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Certificates => "certificates",
            Self::Route => "route",
            Self::Status => "status",
            Self::Metrics => "metrics",
            Self::Unknown => "unknown",
        }
    }

    /// The methods that the endpoint supports, in the form of the `Allow` header.
    pub(crate) fn methods(self) -> &'static str {
        match self {
            Self::Sync | Self::Certificates => "POST",
            Self::Route => "PUT",
            Self::Status | Self::Metrics | Self::Unknown => "GET, HEAD",
        }
    }
}
