//! Labs of null servers, for claims about how rounds are measured.

use std::path::Path;

use e2e::{World, summary_of, weigh};

/// A lab of null servers: the baseline `plain`, and variants that differ from it in `server.flag`.
pub(crate) struct NullServers {
    load: String,
    warmup: &'static str,
    rounds: u32,
    keys: String,
    settings: &'static str,
    command: String,
    server_keys: String,
    beside: String,
    variants: String,
}

/// A lab side by side, of 6 rounds.
pub(crate) fn lab(load: &str, variants: &str) -> World {
    NullServers::under(load)
        .key("order: side-by-side")
        .variants(variants)
        .world()
}

/// Whether a delay of the second variant was found in its typical latency: the interval is between
/// these, in microseconds.
pub(crate) fn is_found(recording: &Path, least: f64, most: f64) -> bool {
    let summary = summary_of(recording);
    assert_eq!(summary["headline"], "latency_us_typical");
    let overhead = &summary["variants"][1]["metrics"]["latency_us_typical"]["overhead"];
    let end = |key: &str| overhead[key].as_f64();
    overhead["claim"] == "higher"
        && end("difference_low").is_some_and(|low| low > least)
        && end("difference_high").is_some_and(|high| high < most)
}

/// The command of a null server, as a lab has it.
pub(crate) fn command() -> String {
    format!("'{}' null-server --listen {{{{addr}}}}", weigh().display())
}

impl NullServers {
    /// Two equal servers under a load; 6 rounds after a warm-up of 100 ms.
    pub(crate) fn under(load: &str) -> NullServers {
        NullServers {
            load: load.to_owned(),
            warmup: "100ms",
            rounds: 6,
            keys: String::new(),
            settings: "flag: --seed=1",
            command: format!("{} {{{{flag}}}}", command()),
            server_keys: String::new(),
            beside: String::new(),
            variants: "  - {name: again}\n".to_owned(),
        }
    }

    pub(crate) fn warmup(mut self, length: &'static str) -> NullServers {
        self.warmup = length;
        self
    }

    pub(crate) fn rounds(mut self, rounds: u32) -> NullServers {
        self.rounds = rounds;
        self
    }

    /// A further line of the lab.
    pub(crate) fn key(mut self, line: &str) -> NullServers {
        self.keys += &format!("{line}\n");
        self
    }

    /// The settings of the server, in place of `flag: --seed=1`.
    pub(crate) fn settings(mut self, settings: &'static str) -> NullServers {
        self.settings = settings;
        self
    }

    /// What runs the server; without double quotes and backslashes.
    pub(crate) fn command(mut self, command: String) -> NullServers {
        self.command = command;
        self
    }

    /// A further line of the server.
    pub(crate) fn server_key(mut self, line: &str) -> NullServers {
        self.server_keys += &format!("    {line}\n");
        self
    }

    /// Another system, in the lines of a lab.
    pub(crate) fn beside(mut self, system: &str) -> NullServers {
        self.beside += system;
        self
    }

    /// The variants, a line each, in place of one that is equal.
    pub(crate) fn variants(mut self, lines: &str) -> NullServers {
        lines.clone_into(&mut self.variants);
        self
    }

    pub(crate) fn world(self) -> World {
        let NullServers {
            load,
            warmup,
            rounds,
            keys,
            settings,
            command,
            server_keys,
            beside,
            variants,
        } = self;
        World::of_lab(&format!(
            "question: Is what was planted found?
load: {load}
warmup: {warmup}
rounds: {rounds}
target: server
{keys}systems:
  server:
    settings: {{{settings}}}
{server_keys}    run: \"{command}\"
    ready: {{path: /}}
{beside}baseline: {{name: plain}}
variants:
{variants}"
        ))
    }
}
