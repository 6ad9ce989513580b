//! A system that is a container.

use std::path::PathBuf;

use crate::text::Text;

/// A container, as a variant needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The image as an engine names it; the name that it gets where it is built.
    pub image: String,
    /// How the image is built; absent for one that is there or is fetched.
    pub build: Option<ImageBuild>,
    /// The words of the command instead of the image's own; empty for the image's own.
    pub command: Vec<Text>,
    /// What it is shown of this machine, and its own empty folders.
    pub volumes: Vec<Volume>,
    /// Where it listens.
    pub network: Network,
    /// The user that it runs as; the image's own when absent.
    pub user: Option<String>,
    /// Whether the image is fetched.
    pub pull: Pull,
}

/// How an image is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBuild {
    /// The folder that the engine gets.
    pub context: PathBuf,
    /// The Dockerfile, relative to the context.
    pub dockerfile: String,
    /// Values of its `ARG`s.
    pub args: Vec<(String, String)>,
}

/// A folder within a container that is not of its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A folder or file of this machine.
    Shown {
        /// Where it is on this machine.
        source: PathBuf,
        /// Where it is within the container; begins with `/`.
        path: String,
        /// Whether the container cannot change it.
        is_read_only: bool,
    },
    /// Empty at each start, and gone with the container.
    Fresh {
        /// Where it is within the container; begins with `/`.
        path: String,
    },
}

/// Which network a container is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// That of this machine: it listens at the address that it is told.
    Host,
    /// One of containers, where it listens at this port at all of its addresses. From 1.
    Bridge {
        /// The port within.
        port: u16,
    },
}

/// When an image is fetched from its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Where the engine does not have it.
    Missing,
    /// Before each run.
    Always,
    /// Not at all.
    Never,
}
