//! The whole lab out of its parts.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::experiment::{Lab, Variant};
use crate::formats::{Name, Title, Written};
use crate::include::Reading;
use crate::load::{self, time_span};
use crate::mistake::Finding;
use crate::requests;
use crate::setups;
use crate::structure;
use crate::systems::{Systems, values};
use crate::variants::{self, Draft};
use crate::wire::{LabFile, default};
use crate::yaml::{Node, Value};

/// The lab that a tree means, or `None` when a part of it is missing; that is reported.
pub(crate) fn lab(path: &Path, tree: &Node, reading: &mut Reading<'_>) -> Option<Lab> {
    if tree.value == Value::Reported {
        return None;
    }
    structure::check_complete(tree, reading);
    let file = match LabFile::deserialize(tree) {
        Ok(file) => file,
        Err(error) => {
            // The structural check lets nothing through that cannot be read.
            let message = format!("a defect of weigh: {error}");
            reading.findings.add(Finding::new(tree.place, message));
            return None;
        }
    };
    let load = file.load.as_ref().zip(tree.entry("load"));
    let sending = load.and_then(|(load, entry)| load::check(load, entry, file.seed, reading));
    let requests = load.map(|(load, entry)| requests::check(load, entry.key_place, reading));
    let expect = requests::expect(&file.expect, reading);
    let systems = Systems {
        declared: file.systems.as_ref().map_or(&[], |systems| &systems.0),
        settings: &file.settings,
        tree,
    };
    systems.check(file.target.as_ref(), reading);
    let baseline = variants::baseline(&file);
    let drafts = variants::variants(&file, reading);
    variants::check_names(baseline.as_ref(), &drafts, &mut reading.findings);
    let target = file.target.as_ref().map(|target| {
        let Written(Name(name)) = &target.value;
        name.as_str()
    });
    let mut variant = |draft: &Draft| {
        systems.check_with(draft, reading);
        Variant {
            name: draft.name.clone(),
            with: draft.values(),
            stack: setups::stack(&systems, target, draft, reading),
        }
    };
    let baseline = baseline.as_ref().map(&mut variant);
    let variants = drafts.iter().map(&mut variant).collect();
    let sending = sending?;
    let Written(Title(question)) = file.question?;
    Some(Lab {
        name: name(path),
        question,
        path: path.to_owned(),
        sources: Vec::new(),
        load: sending.load,
        requests: requests?,
        timeout: sending.timeout,
        keep_alive: sending.keep_alive,
        threads: sending.threads,
        connections_max: sending.connections_max,
        warmup: time_span::<Duration>(file.warmup.as_ref(), default::WARMUP),
        rounds: file.rounds.unwrap_or(default::ROUNDS),
        seed: file.seed,
        target: target?.to_owned(),
        systems: systems.domain(),
        settings: values(&file.settings),
        baseline: baseline?,
        variants,
        expect,
    })
}

/// The file's stem, or the folder's name where the stem says no more than that.
fn name(path: &Path) -> String {
    let text =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let stem = text(path.file_stem()).unwrap_or_default();
    match text(path.parent().and_then(Path::file_name)) {
        Some(folder) if stem == "lab" => folder,
        _ => stem,
    }
}
