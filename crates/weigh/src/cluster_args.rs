//! The cluster on the command line.

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
    /// The image of weigh, of this same version, that generators are made of.
    #[arg(
        long,
        requires = "on",
        value_name = "IMAGE",
        help_heading = "In a cluster",
        env = "WEIGH_IMAGE",
        default_value = concat!("weigh:", env!("CARGO_PKG_VERSION"))
    )]
    pub(crate) generator_image: String,
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

    /// The cluster and namespace that the flags select.
    pub(crate) fn place(&self) -> cluster::ClusterContext {
        cluster::ClusterContext {
            context: self.context.clone(),
            namespace: self.namespace.clone(),
        }
    }
}
