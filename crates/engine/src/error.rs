//! Errors of the engine's operations, one enum for each kind of operation.

use bollard::errors::Error;
use thiserror::Error as ThisError;

/// Error of finding or connecting to an engine.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum ConnectError {
    /// No searched socket exists.
    #[error(
        "no container engine is found at {}. Start Docker or Podman, or set DOCKER_HOST to its socket (unix:///path)",
        places.join(", ")
    )]
    Nowhere {
        /// Paths of the searched sockets.
        places: Vec<String>,
    },
    /// The value of `DOCKER_HOST` is not a Unix socket.
    #[error(
        "expected the Unix socket of a container engine of this machine in DOCKER_HOST, found `{named}`. Write unix:///path/to/docker.sock"
    )]
    NoSocket {
        /// Value of `DOCKER_HOST`.
        named: String,
    },
    /// The engine does not respond.
    #[error(
        "the container engine at {host} does not answer: {reason}. Start it, or set DOCKER_HOST"
    )]
    Silent {
        /// Address of the engine: `unix:///path`.
        host: String,
        /// The error of the connection.
        reason: String,
    },
}

/// Error of finding, fetching or building an image.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum ImageError {
    /// The engine does not have the image, and it must not be fetched.
    #[error("the engine has no image `{image}`. Build or pull it first")]
    Missing {
        /// Name of the image.
        image: String,
    },
    /// The image could not be fetched.
    #[error("the image `{image}` cannot be pulled: {reason}")]
    NotPulled {
        /// Name of the image.
        image: String,
        /// The error of the engine or the registry.
        reason: String,
    },
    /// The image could not be built.
    #[error("the image `{image}` cannot be built: {reason}")]
    NotBuilt {
        /// Name of the image.
        image: String,
        /// The error of the engine.
        reason: String,
    },
    /// The stop flag was raised.
    #[error("stopped before the image `{image}` was ready")]
    Interrupted {
        /// Name of the image.
        image: String,
    },
    /// The engine failed in another way.
    #[error("the engine reports an error for the image `{image}`: {reason}")]
    Other {
        /// Name of the image.
        image: String,
        /// The error of the engine.
        reason: String,
    },
}

/// Error of starting or inspecting a container.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum ContainerError {
    /// There is no container of this name.
    #[error("the engine has no container `{container}`")]
    Missing {
        /// Name or id of the container.
        container: String,
    },
    /// The engine does not have the image.
    #[error("the engine has no image for the container `{container}`: {reason}")]
    NoImage {
        /// Name of the container.
        container: String,
        /// The error of the engine.
        reason: String,
    },
    /// Another container uses its name or its port.
    #[error("the container `{container}` conflicts with another: {reason}")]
    Conflict {
        /// Name of the container.
        container: String,
        /// The error of the engine.
        reason: String,
    },
    /// The engine refused the action.
    #[error("the engine cannot {what} the container `{container}`: {reason}")]
    Refused {
        /// Name of the container.
        container: String,
        /// The requested action, as a verb.
        what: &'static str,
        /// The error of the engine.
        reason: String,
    },
}

/// The remains of a run could not be found or removed.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("the engine cannot remove the remains of the run `{run}`: {reason}")]
pub struct RunError {
    /// Name of the run.
    pub run: String,
    /// The error of the engine.
    pub reason: String,
}

impl ContainerError {
    /// Converts an error of the engine about a container.
    pub(crate) fn of(container: &str, what: &'static str, error: &Error) -> ContainerError {
        let container = container.to_owned();
        let reason = words(error);
        match status(error) {
            Some(404) if what == "create" => ContainerError::NoImage { container, reason },
            Some(404) => ContainerError::Missing { container },
            Some(409) => ContainerError::Conflict { container, reason },
            _ => ContainerError::Refused {
                container,
                what,
                reason,
            },
        }
    }
}

/// The HTTP status of an error response.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// The text of an error, in one line and without a full stop.
pub(crate) fn words(error: &Error) -> String {
    let text = match error {
        Error::DockerResponseServerError { message, .. } => message.clone(),
        Error::DockerStreamError { error } => error.clone(),
        Error::RequestTimeoutError => "no answer in time".to_owned(),
        other => {
            // The libraries' own errors name only the action. The last source contains the reason.
            let mut source: &dyn std::error::Error = other;
            while let Some(inner) = source.source() {
                source = inner;
            }
            source.to_string()
        }
    };
    let lines: Vec<&str> = text.split_whitespace().collect();
    lines.join(" ").trim_end_matches('.').to_owned()
}
