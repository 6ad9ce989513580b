//! Consent on the command line, equal for every subcommand that sends load.

use experiment::systems::Consent;

/// Consent to load of other machines than this one.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConsentArgs {
    /// Permit load to this host, which is another machine. Repeat the flag for several hosts.
    ///
    /// Load without consent is an attack. Name only your own hosts, or hosts with the consent of their
    /// owners.
    #[arg(long, value_name = "HOST", help_heading = "Other machines")]
    yes_load: Vec<String>,
    /// Permit unlimited load to other machines. Without this flag, each variant gets at most 500 requests
    /// per second over 16 connections, for at most 15 minutes.
    #[arg(long, help_heading = "Other machines")]
    unbounded: bool,
}

impl ConsentArgs {
    /// The consent that the flags give.
    pub(crate) fn given(&self) -> Consent {
        Consent {
            hosts: self.yes_load.clone(),
            is_unbounded: self.unbounded,
        }
    }
}
