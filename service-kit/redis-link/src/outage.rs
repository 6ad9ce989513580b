//! The reasons why there is no connection.

use std::time::Duration;

/// Time limit for each step of connecting. With the pause between attempts, it is well below a second.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The reason why there is no connection, with the texts for the log.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Unreachable(String),
    #[error("it did not answer within {CONNECT_TIMEOUT:?}")]
    Silent,
    #[error("it refuses the login: {0}")]
    Login(String),
    #[error("{0}")]
    Certificate(String),
    #[error("{0}; expected the port of Redis with TLS, or a URL that starts with redis:")]
    NoTls(String),
    #[error("no sentinel answers: {0}")]
    NoSentinel(String),
    #[error("the sentinels name no master that can be used: {0}")]
    NoMaster(String),
}

/// The kind of an outage, for metrics and health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Outage {
    /// Redis cannot be reached, or there was no attempt yet.
    #[default]
    NotConnected,
    /// Redis or a sentinel refuses the login.
    WrongLogin,
    /// The certificate of Redis, or of this client, is refused.
    Certificate,
    /// The port does not speak TLS.
    NoTls,
    /// No sentinel answers.
    NoSentinel,
    /// The sentinels name no master that can be used.
    NoMaster,
}

impl Outage {
    /// All kinds. The position of a kind is its number.
    pub const ALL: [Self; 6] = [
        Self::NotConnected,
        Self::WrongLogin,
        Self::Certificate,
        Self::NoTls,
        Self::NoSentinel,
        Self::NoMaster,
    ];

    /// The label of metrics.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotConnected => "not-connected",
            Self::WrongLogin => "wrong-login",
            Self::Certificate => "certificate",
            Self::NoTls => "no-tls",
            Self::NoSentinel => "no-sentinel",
            Self::NoMaster => "no-master",
        }
    }
}

impl ConnectError {
    pub(crate) fn outage(&self) -> Outage {
        match self {
            Self::Unreachable(_) | Self::Silent => Outage::NotConnected,
            Self::Login(_) => Outage::WrongLogin,
            Self::Certificate(_) => Outage::Certificate,
            Self::NoTls(_) => Outage::NoTls,
            Self::NoSentinel(_) => Outage::NoSentinel,
            Self::NoMaster(_) => Outage::NoMaster,
        }
    }

    /// Adds the address to the text. The kind is unchanged.
    pub(crate) fn at(self, address: &str) -> Self {
        match self {
            Self::Unreachable(text) => Self::Unreachable(format!("{address}: {text}")),
            Self::Silent => Self::Unreachable(format!("{address}: {}", Self::Silent)),
            Self::Login(text) => Self::Login(format!("{address}: {text}")),
            Self::Certificate(text) => Self::Certificate(format!("{address}: {text}")),
            Self::NoTls(text) => Self::NoTls(format!("{address}: {text}")),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_an_outage_is_its_number() {
        for (place, outage) in Outage::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(outage as u8), place);
        }
    }
}
