//! Lab files: YAML to a checked experiment, with all mistakes at once.
//!
//! A lab goes through five steps, one module each:
//!
//! 1. `yaml_with_places` turns text into a tree. Every node has its place.
//! 2. `structure` checks the tree against the JSON Schema made from the structs of `wire`
//!    (unknown keys, wrong types, bad formats) and removes wrong values.
//! 3. `include` merges the files of one lab key by key. The including file takes precedence.
//! 4. serde reads the rest into the structs of `wire`.
//! 5. `assemble` calls `load`, `requests`, `systems`, `variants`, `setups` and `proofs`, which make the
//!    checks that a schema cannot express, and builds the [`Lab`].
//!
//! A [`Scenario`] of its own file takes the same steps without the third.
//!
//! Every step adds to one list of mistakes and continues, so that an author sees all mistakes in one run.
//! Only text that is not YAML ends the reading of its file.
//!
//! Absent on purpose: the file system, the clock, the environment and sockets. The caller provides access to
//! files through [`Files`].

#![warn(missing_docs)]

mod assemble;
mod capacity;
mod choices;
mod command_line;
mod command_line_hints;
mod compose;
mod compose_keys;
mod config_file_names;
mod config_files;
mod container;
mod container_keys;
mod data;
mod elsewhere;
mod experiment;
mod factors;
mod fields;
mod filling;
mod formats;
mod fraction;
mod groups;
mod grpc;
mod include;
mod inherit;
mod ladder;
mod level;
mod levels;
mod limits;
mod load;
mod manifests;
mod manifests_keys;
mod manual;
mod merge;
mod origin_keys;
mod places;
mod pods;
mod proofs;
mod quantities;
mod readers;
mod reading;
mod references;
mod relocated;
mod replicas;
mod requests;
mod revisions;
mod scenario;
mod schema;
mod scope;
mod setups;
mod shared_systems;
mod steps;
mod streams;
mod structure;
mod sweep;
mod systems;
mod table;
mod template;
mod text;
mod url_keys;
mod variants;
mod ways;
mod websockets;
mod wire;

use std::path::Path;

pub use command_line::{duration, find, rate, size};
pub use experiment::{
    Attach, Balance, Balances, Certificates, ClientFiles, Compose, ConfigFile, Container,
    DistinctValues, Elsewhere, Expect, Factor, Factors, HeaderValues, ImageBuild, Lab, LabTrust,
    Limits, Manifests, Network, Origin, Placement, Pods, Probe, Proof, ProofWhat, Protocol, Pull,
    RateChoice, Ready, RequestTemplate, Scenario, SeenNumber, SeenRule, ServiceChange, Setup,
    System, Variant, Volume, WorkloadChange,
};
pub use grpc::{GrpcSchema, grpc_descriptors};
pub use level::Level;
pub use manual::manual;
pub use reading::Files;
pub use schema::{scenario_schema, schema};
pub use table::Table;
pub use text::{Endpoint, Text};
pub use yaml_with_places::{Mistake, Mistakes, Related, Source};

use reading::Reading;
use yaml_with_places::{Finding, Place};

/// Reads a scenario from a file of its own and checks it.
///
/// # Errors
/// All mistakes found, see [`Mistakes::render`].
pub fn scenario(path: &Path, files: &dyn Files) -> Result<Scenario, Mistakes> {
    let mut reading = Reading::new(files);
    let scenario = scenario::of_file(path, &mut reading);
    let Reading {
        sources,
        mut findings,
        ..
    } = reading;
    // As for a lab: see `parse_with`.
    if scenario.is_none() && findings.count() == 0 {
        let message = "a defect of weigh: it refused this scenario without a reason";
        findings.add(Finding::new(Place::default(), message));
    }
    findings.settle(sources)?;
    Ok(scenario.expect("a scenario that is not made has at least one mistake"))
}

/// Reads a lab file, with all files that it includes and names, and checks it.
///
/// # Errors
/// All mistakes found, see [`Mistakes::render`].
pub fn parse(path: &Path, files: &dyn Files) -> Result<Lab, Mistakes> {
    parse_with(path, files, &[])
}

/// Like [`parse`], with other values of settings: by `NAME` for a lab-wide setting, by `SYSTEM.NAME` for a
/// setting of a system. A setting of a variant stays.
///
/// # Errors
/// Like [`parse`]. A setting that the lab does not have is a mistake, too.
pub fn parse_with(
    path: &Path,
    files: &dyn Files,
    settings: &[(String, String)],
) -> Result<Lab, Mistakes> {
    let mut reading = Reading::new(files);
    let lab = reading
        .lab(path, settings)
        .and_then(|tree| assemble::lab(path, &tree, &mut reading));
    let Reading {
        sources,
        mut findings,
        ..
    } = reading;
    // Every step that stops reports the reason. Without this check, a missing report would end in a panic.
    if lab.is_none() && findings.count() == 0 {
        let message = "a defect of weigh: it refused this lab without a reason";
        findings.add(Finding::new(Place::default(), message));
    }
    // From here on the lab exists. A single mistake returns here.
    let sources = findings.settle(sources)?;
    let lab = lab.expect("a lab that is not made has at least one mistake");
    Ok(Lab {
        sources,
        asked: settings.to_vec(),
        ..lab
    })
}

/// Like [`parse_with`], with the settings that the lab has for a quick run. `settings` take precedence over
/// them.
///
/// # Errors
/// See [`parse_with`].
pub fn parse_quick(
    path: &Path,
    files: &dyn Files,
    settings: &[(String, String)],
) -> Result<Lab, Mistakes> {
    let lab = parse_with(path, files, settings)?;
    if lab.quick.is_empty() {
        return Ok(lab);
    }
    parse_with(path, files, &[&lab.quick, settings].concat())
}
