//! Reads a file, step by step.

use std::path::Path;

use serde::Deserialize as _;
use yaml_with_places::{Document, Finding, Findings, Mistakes, Node, Place, Value};

use crate::config::Config;
use crate::expansion::{self, Surroundings};
use crate::sources::{ONE_DOCUMENT, sources};
use crate::survey::{self, Survey};
use crate::{agreement, authentication, cors, header_warnings, references, relocation, structure};

/// A configuration with its warnings.
#[derive(Clone, Debug)]
pub struct ReadConfig {
    /// The complete configuration, with all defaults.
    pub config: Config,
    /// Warnings with their lines: keys that are accepted without effect, and probable mistakes.
    pub warnings: Vec<String>,
}

/// Reads a file's text. `path` is only used in messages. With `is_development`, the keys that `--dev` sets
/// are set before the check of keys that depend on each other.
///
/// # Errors
/// Returns every mistake that was found.
pub fn read(
    path: &Path,
    text: &str,
    surroundings: &dyn Surroundings,
    is_development: bool,
) -> Result<ReadConfig, Mistakes> {
    let sources = sources(path, text);
    let mut findings = Findings::default();
    let mut surveyed = Survey::default();
    let tree = match yaml_with_places::read(0, text, ONE_DOCUMENT, &mut findings) {
        Document::Tree(tree) => {
            let mut tree = expansion::expand(tree, surroundings, &mut findings);
            relocation::relocate(&mut tree, &mut findings);
            surveyed = survey::take(&mut tree, text, &mut findings);
            Some(structure::check(tree, &mut findings))
        }
        // An empty file is a configuration with all defaults.
        Document::Empty => Some(Node {
            place: Place::default(),
            value: Value::Map(Vec::new()),
        }),
        Document::Unreadable => None,
    };
    // Stops here with all mistakes of the text. serde would report only the first one, without a place.
    let sources = findings.settle(sources)?;
    let tree = tree.expect("what makes a file unreadable is reported");
    let mut findings = Findings::default();
    let mut config = match Config::deserialize(tree.json()) {
        Ok(config) => config,
        Err(error) => {
            // The structure check finds all of serde's errors. If it misses an error, the error is at least
            // reported at the top of the file.
            findings.add(Finding::new(tree.place, error.to_string()));
            return Err(findings.settle(sources).expect_err("a mistake was added"));
        }
    };
    if is_development {
        config.for_development();
    }
    // The tree is passed for its places, because the structs contain no lines.
    agreement::check(&config, &tree, &mut findings);
    references::check(&config, &tree, &mut findings);
    findings.settle(sources)?;
    let mut warnings = surveyed.warnings();
    warnings.extend(references::warnings(&config, &tree, text));
    warnings.extend(cors::warnings(&tree, text));
    warnings.extend(header_warnings::warnings(&config.headers));
    if config.response_cache.enabled && config.headers.propagate_patterns() {
        warnings.push(
            "`headers` copies client headers by a pattern, and every header of a subgraph request is part of \
             the key in `response_cache`. Clients with different headers share no response: name the headers"
                .to_owned(),
        );
    }
    let jwt = config.authentication.router.jwt.as_ref();
    warnings.extend(jwt.map(authentication::warnings).unwrap_or_default());
    Ok(ReadConfig { config, warnings })
}
