//! The socket of a container engine.

use std::fmt;
use std::path::PathBuf;

use crate::error::ConnectError;

/// The environment variables about engines. The caller reads them.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Value of `DOCKER_HOST`.
    pub docker_host: Option<String>,
    /// Value of `XDG_RUNTIME_DIR`. Podman listens below it for a user that is not root.
    pub runtime_dir: Option<PathBuf>,
}

/// The Unix socket of a container engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host(String);

const SCHEME: &str = "unix://";

/// Sockets of Docker, and of Podman for root.
const USUAL: [&str; 3] = [
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/docker.sock",
];

impl Host {
    /// Returns the socket that `DOCKER_HOST` names, or else the first usual socket that exists.
    ///
    /// # Errors
    /// If there is no socket, or if `DOCKER_HOST` names an engine without a Unix socket.
    pub fn find(surroundings: &Surroundings) -> Result<Host, ConnectError> {
        let named = surroundings.docker_host.as_deref();
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let path = named
                .strip_prefix(SCHEME)
                .filter(|path| path.starts_with('/'));
            return match path {
                Some(path) => Ok(Host(path.to_owned())),
                None => Err(ConnectError::NoSocket {
                    named: named.to_owned(),
                }),
            };
        }
        let of_user = surroundings.runtime_dir.as_ref().map(|folder| {
            let sockets = ["docker.sock", "podman/podman.sock"];
            sockets.map(|socket| folder.join(socket).display().to_string())
        });
        let usual = USUAL.map(str::to_owned).into_iter();
        let places: Vec<String> = usual.chain(of_user.into_iter().flatten()).collect();
        let found = places.iter().find(|place| PathBuf::from(place).exists());
        match found {
            Some(place) => Ok(Host(place.clone())),
            None => Err(ConnectError::Nowhere { places }),
        }
    }

    /// The socket at this path.
    #[must_use]
    pub fn at(path: &str) -> Host {
        Host(path.to_owned())
    }

    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(host: &str) -> Result<Host, ConnectError> {
        Host::find(&Surroundings {
            docker_host: Some(host.to_owned()),
            runtime_dir: None,
        })
    }

    #[test]
    fn what_is_named_wins_and_must_be_a_socket() {
        assert_eq!(
            named("unix:///tmp/e.sock").ok(),
            Some(Host::at("/tmp/e.sock"))
        );
        for elsewhere in ["tcp://10.0.0.1:2375", "ssh://a", "unix://e.sock"] {
            let error = named(elsewhere).unwrap_err().to_string();
            assert!(
                error.contains(elsewhere) && error.contains("unix:///"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_user_s_own_socket_is_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("podman")).unwrap();
        std::fs::write(folder.path().join("podman/podman.sock"), "").unwrap();
        let found = Host::find(&Surroundings {
            docker_host: None,
            runtime_dir: Some(folder.path().to_owned()),
        });
        // An engine of the whole machine comes first, if there is one.
        let found = found.unwrap();
        let is_usual = USUAL.contains(&found.path());
        assert!(is_usual || found.path().starts_with(folder.path().to_str().unwrap()));
    }
}
