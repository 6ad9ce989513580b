//! A system that is a container.

use std::path::PathBuf;

use crate::text::Text;

/// A container, as a variant needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The image as an engine names it. A built image receives this name.
    pub image: String,
    /// The build of the image. `None` for an image that exists or is fetched.
    pub build: Option<ImageBuild>,
    /// The words of the command that replaces the command of the image. Empty for the command of the image.
    pub command: Vec<Text>,
    /// Files and folders of this machine that it can see, and its own empty folders.
    pub volumes: Vec<Volume>,
    /// The network of its listener.
    pub network: Network,
    /// The user that it runs as. `None` for the user of the image.
    pub user: Option<String>,
    /// The rule for fetching the image.
    pub pull: Pull,
}

/// The build of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBuild {
    /// The folder that the engine receives.
    pub context: PathBuf,
    /// The Dockerfile, relative to the context.
    pub dockerfile: String,
    /// Values of the `ARG`s of the Dockerfile.
    pub args: Vec<(String, String)>,
}

/// A folder within a container that does not come from its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A folder or file of this machine.
    Shown {
        /// Path on this machine.
        source: PathBuf,
        /// Path within the container. It begins with `/`.
        path: String,
        /// True if the container cannot change it.
        is_read_only: bool,
    },
    /// A folder that is empty at each start and is removed with the container.
    Fresh {
        /// Path within the container. It begins with `/`.
        path: String,
    },
}

/// The network of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// The network of this machine. The container receives its listen address.
    Host,
    /// A network of containers. The container listens at this port at all of its addresses.
    Bridge {
        /// The port within the network, from 1.
        port: u16,
    },
}

/// The rule for fetching an image from its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Fetch it if the engine does not have it.
    Missing,
    /// Fetch it before each run.
    Always,
    /// Do not fetch it.
    Never,
}
