//! The cluster on the command line.

use std::time::Duration;

use experiment::exit::Failure;
use experiment::pods::waits::PodWaits;

/// Where a lab is to be measured, and by which image of weigh.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Measure in a cluster: generators are pods, and so are systems with an `image` or `manifests`; see docs/kubernetes.md.
    #[arg(
        long,
        value_enum,
        value_name = "CLUSTER",
        help_heading = "In a cluster"
    )]
    pub(crate) on: Option<ClusterKind>,
    /// The context of the kubeconfig [default: the current one].
    #[arg(
        long,
        requires = "on",
        value_name = "NAME",
        help_heading = "In a cluster"
    )]
    context: Option<String>,
    /// The namespace [default: that of the context].
    #[arg(
        long,
        requires = "on",
        value_name = "NAME",
        help_heading = "In a cluster"
    )]
    namespace: Option<String>,
    /// The image of weigh, of this same build, that generators are made of.
    #[arg(
        long,
        requires = "on",
        value_name = "IMAGE",
        help_heading = "In a cluster",
        env = "WEIGH_IMAGE",
        default_value = concat!("weigh:", env!("CARGO_PKG_VERSION"))
    )]
    generator_image: String,
    /// Time for a pod to get a node and to start, such as `10m` if an autoscaler adds nodes [default: 20s for a
    /// node, then 90s].
    #[arg(
        long,
        requires = "on",
        value_name = "TIME",
        help_heading = "In a cluster",
        value_parser = lab::duration
    )]
    pods_within: Option<Duration>,
}

/// Which kind of cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClusterKind {
    /// Kubernetes, as the kubeconfig names it.
    Kubernetes,
}

impl ClusterArgs {
    /// These flags. `None` without `--on`.
    pub(crate) fn asked(&self) -> Option<&ClusterArgs> {
        self.on.map(|_| self)
    }

    /// The image of the generators.
    ///
    /// # Errors
    ///
    /// When it is empty.
    pub(crate) fn image(&self) -> Result<String, Failure> {
        match self.generator_image.is_empty() {
            true => Err(Failure::bad_input(
                "expected an image in `--generator-image` or WEIGH_IMAGE, found an empty text. Name an image, or unset WEIGH_IMAGE",
            )),
            false => Ok(self.generator_image.clone()),
        }
    }

    /// The time limits of pods.
    pub(crate) fn waits(&self) -> PodWaits {
        PodWaits {
            given: self.pods_within,
        }
    }

    /// The cluster and namespace that the flags select.
    pub(crate) fn place(&self) -> cluster::ClusterContext {
        cluster::ClusterContext {
            context: self.context.clone(),
            namespace: self.namespace.clone(),
        }
    }
}
