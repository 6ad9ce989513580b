//! The command line, with environment variables for flags that are not given.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum as _};
use gateway_config::Listen;
use telemetry::log::LogLevel;

/// A GraphQL gateway for a supergraph or for merged schemas, with header rules, Rhai scripts and
/// coprocessors.
///
/// It reads the YAML keys of Apollo Router. The help of each flag shows its environment variable.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Exit codes: 0 stopped as asked, 1 could not serve, 2 wrong flag, configuration or supergraph."
)]
pub(crate) struct Arguments {
    /// Commands that do not start the gateway.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The configuration. Without it, all keys have their defaults.
    #[arg(short, long, env = "APOLLO_ROUTER_CONFIG_PATH", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The composed supergraph in GraphQL's schema language. Not allowed if the configuration has
    /// `remote_schemas` or `actions`.
    #[arg(
        short,
        long,
        env = "APOLLO_ROUTER_SUPERGRAPH_PATH",
        value_name = "FILE"
    )]
    pub(crate) supergraph: Option<PathBuf>,

    /// The listen address, instead of `supergraph.listen`. Port 0 selects a free port and prints
    /// it.
    #[arg(long, env = "APOLLO_ROUTER_LISTEN_ADDRESS", value_name = "ADDRESS", value_parser = Listen::parse)]
    pub(crate) listen: Option<Listen>,

    /// The address of the health check and the metrics, instead of `health_check.listen`.
    #[arg(long, env = "GATEWAY_HEALTH_LISTEN", value_name = "ADDRESS", value_parser = Listen::parse)]
    pub(crate) health_listen: Option<Listen>,

    /// Number of threads for requests [default: one for each CPU that this process may use].
    #[arg(long, env = "GATEWAY_WORKERS", value_name = "N", value_parser = workers)]
    pub(crate) workers: Option<usize>,

    /// Turn on introspection, the sandbox and unchanged errors of subgraphs, for development.
    #[arg(long, env = "APOLLO_ROUTER_DEV")]
    pub(crate) dev: bool,

    /// Read configuration, supergraph and scripts again when their files change. SIGHUP reloads
    /// them at once, with or without this flag.
    #[arg(long, visible_alias = "hr", env = "APOLLO_ROUTER_HOT_RELOAD")]
    pub(crate) hot_reload: bool,

    /// The lowest level of the log: off, error, warn, info, request, debug or trace. It is written
    /// to standard error, one JSON object per line. A filter such as `info,apollo_router=debug` is
    /// read, too.
    #[arg(
        long,
        env = "APOLLO_ROUTER_LOG",
        value_name = "LEVEL",
        default_value = "info",
        value_parser = log_level
    )]
    pub(crate) log: LogLevel,
}

/// Commands that do not start the gateway.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a configuration, and list its supported, ignored and refused keys and its mistakes.
    ///
    /// Scripts are compiled and run up to the first request. Every file that the configuration names
    /// is read. Nothing is sent to an address.
    Check {
        /// The configuration.
        #[arg(value_name = "CONFIG")]
        config: PathBuf,
        /// The supergraph. With it, scripts also register their callbacks for its subgraphs.
        #[arg(short, long, value_name = "FILE")]
        supergraph: Option<PathBuf>,
    },
    /// The commands of Apollo Router for its configuration.
    #[command(subcommand, hide = true)]
    Config(ConfigCommand),
    /// Convert the metadata of Hasura 2. The configuration is written to standard output, and
    /// unsupported settings to standard error.
    Import {
        /// The folder of the project, its `metadata` folder, or the console's `metadata.json`.
        #[arg(value_name = "FOLDER or FILE")]
        metadata: PathBuf,
        /// Write the configuration although it permits requests that Hasura refuses.
        #[arg(long)]
        without_restrictions: bool,
    },
}

/// The commands of Apollo Router for its configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration. `gateway check` does the same.
    Validate {
        /// The configuration.
        #[arg(value_name = "CONFIG")]
        config: PathBuf,
    },
    /// Print the JSON schema of configurations.
    Schema,
}

/// Reads a level, or a filter in the form of `RUST_LOG`. The log of the gateway has one level, so a filter may
/// name no other part than the router itself.
fn log_level(text: &str) -> Result<LogLevel, String> {
    let (mut all, mut own) = (None, None);
    for directive in text.split(',').map(str::trim) {
        let (part, level) = match directive.split_once('=') {
            Some((part, level)) => (Some(part), level),
            None => (None, directive),
        };
        let level = LogLevel::from_str(level, true).map_err(|_| {
            let levels = LogLevel::value_variants().iter();
            let names =
                levels.filter_map(|level| Some(level.to_possible_value()?.get_name().to_owned()));
            let names: Vec<String> = names.collect();
            format!("expected one of {}, found `{level}`", names.join(", "))
        })?;
        match part {
            None => all = Some(level),
            Some("apollo_router" | "gateway") => own = Some(level),
            Some(other) => {
                return Err(format!(
                    "the log has one level for all parts, so it cannot be filtered by `{other}`; write a level, or `apollo_router=LEVEL`"
                ));
            }
        }
    }
    own.or(all).ok_or_else(|| "expected a level".to_owned())
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=512) => Ok(number),
        _ => Err("expected a whole number from 1 to 512".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_flags_are_consistent_and_each_has_a_variable() {
        Arguments::command().debug_assert();
        for argument in Arguments::command().get_arguments() {
            let is_text = matches!(argument.get_id().as_str(), "help" | "version");
            assert!(is_text || argument.get_env().is_some(), "{argument}");
        }
    }

    #[test]
    fn wrong_values_are_told_with_what_was_expected() {
        let wrong = [
            "--workers=0",
            "--listen=4000",
            "--log=loud",
            "--log=",
            "--log=info,tower_http=debug",
        ];
        let told = wrong.map(|flag| {
            let error = Arguments::try_parse_from(["gateway", flag]).unwrap_err();
            error.to_string().lines().next().unwrap().to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        error: invalid value '0' for '--workers <N>': expected a whole number from 1 to 512
        error: invalid value '4000' for '--listen <ADDRESS>': expected an address such as `127.0.0.1:4000` or the path of a Unix socket, found `4000`
        error: invalid value 'loud' for '--log <LEVEL>': expected one of off, error, warn, info, request, debug, trace, found `loud`
        error: invalid value '' for '--log <LEVEL>': expected one of off, error, warn, info, request, debug, trace, found ``
        error: invalid value 'info,tower_http=debug' for '--log <LEVEL>': the log has one level for all parts, so it cannot be filtered by `tower_http`; write a level, or `apollo_router=LEVEL`
        ");
    }

    #[test]
    fn a_filter_of_the_log_is_the_level_of_the_router() {
        for (filter, level) in [
            ("warn", LogLevel::Warn),
            ("INFO", LogLevel::Info),
            ("info,apollo_router=debug", LogLevel::Debug),
            ("apollo_router=trace, error", LogLevel::Trace),
        ] {
            assert_eq!(log_level(filter), Ok(level), "{filter}");
        }
    }
}
