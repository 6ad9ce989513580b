//! A container engine, Docker or Podman, over its Unix socket.
//!
//! All calls block, because the caller is synchronous. Between calls no code of this crate runs, so it takes
//! no processor time from a measurement. Logs are read on demand, not followed.
//!
//! Every object that this crate creates carries two labels, [`MANAGED_BY`] and [`RUN`]. [`Engine::end_run`]
//! finds it by them, also from another process after its creator was killed.
//!
//! Absent on purpose:
//!
//! * labs, load and statistics
//! * TLS, SSH and engines of other machines, because their limits and addresses could not be read, nor their
//!   control groups
//! * pushing, committing and any other change of images

mod container;
mod context;
mod error;
mod host;
mod image;
mod project;
mod run;

use std::fmt;
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::runtime::Runtime;

pub use container::{Container, ContainerSpec, Health, Mount, Network, Resources};
pub use error::{ConnectError, ContainerError, ImageError, RunError};
pub use host::{Host, Surroundings};
pub use image::{Image, ImageBuild};
pub use project::{ContainerAddress, Member, MemberLimits, PROJECT, Published};
pub use run::Removed;

/// The label that marks an object as ours: `weighbridge`.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of the label [`MANAGED_BY`].
pub const WEIGHBRIDGE: &str = "weighbridge";
/// The label with the name of the run that an object belongs to.
pub const RUN: &str = "weighbridge.run";

/// Timeout of one response of the engine. When a container is stopped, its grace period is added.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connected container engine.
pub struct Engine {
    runtime: Runtime,
    docker: Docker,
    host: Host,
    version: EngineVersion,
}

/// Name and versions of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineVersion {
    /// Product name, `Docker Engine` or `Podman Engine`.
    pub name: String,
    /// Version of the product, such as `20.10.24`.
    pub number: String,
    /// The version of the API in use, such as `1.41`.
    pub api: String,
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.number)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("host", &self.host)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Connects and requests the version.
    ///
    /// # Errors
    /// If no engine responds at the socket. The error contains advice.
    pub fn connect(host: &Host) -> Result<Engine, ConnectError> {
        let silent = |reason: String| ConnectError::Silent {
            host: host.to_string(),
            reason,
        };
        // The runtime uses only the calling thread, and only within calls.
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build();
        let runtime = runtime.map_err(|error| silent(error.to_string()))?;
        let seconds = PATIENCE.as_secs();
        let connect = async {
            let docker = Docker::connect_with_unix(host.path(), seconds, API_DEFAULT_VERSION)?;
            // Debian's Docker is older than the library's default API version.
            let docker = docker.negotiate_version().await?;
            let version = docker.version().await?;
            Ok::<_, bollard::errors::Error>((docker, version))
        };
        let (docker, found) = runtime
            .block_on(connect)
            .map_err(|error| silent(error::words(&error)))?;
        let mut components = found.components.unwrap_or_default().into_iter();
        let name = components.next().map(|component| component.name);
        let name = match name.as_deref() {
            // Docker reports its first component as "Engine".
            Some("Engine") | None => "Docker Engine".to_owned(),
            Some(other) => other.to_owned(),
        };
        let client = docker.client_version();
        Ok(Engine {
            runtime,
            docker,
            host: host.clone(),
            version: EngineVersion {
                name,
                number: found.version.unwrap_or_default(),
                api: client.to_string(),
            },
        })
    }

    /// The socket of the engine.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Name and versions of the engine.
    #[must_use]
    pub fn version(&self) -> &EngineVersion {
        &self.version
    }
}
