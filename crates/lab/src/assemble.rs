//! Builds the whole lab from its parts.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use yaml_with_places::{At, Finding, Node, Place, Value, did_you_mean};

use model::{Data, Gate, Order, Settle, Step};

use crate::container_keys;
use crate::data;
use crate::experiment::{Lab, Placement, Variant};
use crate::factors;
use crate::formats::{Name, Title, Written};
use crate::groups;
use crate::ladder;
use crate::levels;
use crate::load::{self, time_span};
use crate::places::Places;
use crate::pods;
use crate::proofs::Prover;
use crate::quantities::LongerThanZero;
use crate::reading::Reading;
use crate::references;
use crate::replicas;
use crate::requests::{self, Sent};
use crate::scope::Scope;
use crate::setups;
use crate::shared_systems;
use crate::streams;
use crate::structure;
use crate::systems::{Systems, list, values};
use crate::variants::{self, Draft};
use crate::websockets;
use crate::wire::{LabFile, LoadFile, OrderFile, PlacementFile, SettleFile, With, default};

/// Returns the lab of a tree. `None` if a part is missing, which is reported.
pub(crate) fn lab(path: &Path, tree: &Node, reading: &mut Reading<'_>) -> Option<Lab> {
    let file = lab_file(tree, reading)?;
    let load = file.load.as_ref().zip(tree.entry("load"));
    let sending = load.and_then(|(load, entry)| load::check(load, entry, file.seed, reading));
    let systems = systems_of(&file, tree);
    // Before the variants, so that a mistake in a system is reported once and not for each variant.
    check_alone(&file, &systems, tree, reading);
    let baselines = variants::baselines(&file, reading);
    let drafts = variants::variants(&file, reading);
    let data = check_data(&file, reading);
    // From here on all parts are checked, even if one of them is wrong, so that all mistakes are reported at
    // once.
    let assembly = Assembly {
        file: &file,
        load_at: load.map_or(tree.place, |(_, entry)| entry.key_place),
        systems: &systems,
        data: data.as_ref(),
    };
    assembly.check_sent(reading);
    let (variants, steps) = assembly.variants(&baselines, &drafts, reading);
    assembly.check_drafts(&baselines, &drafts, sending.as_ref(), reading);
    let groups = assembly.together(&variants, reading);
    let ladder = ladder::check(&file, &variants, reading);
    let pods = pods::of(&file.pods, &systems, reading);
    // The rest needs all parts. Each missing part has been reported.
    let sending = sending?;
    let Written(Title(question)) = file.question.clone()?;
    let mut variants = variants.into_iter();
    let baseline = variants.next()?;
    Some(Lab {
        name: name(path),
        question,
        // Before `until`, because it borrows the file.
        target: assembly.target()?.to_owned(),
        path: path.to_owned(),
        // `parse_with` fills in both when all files have been read.
        sources: Vec::new(),
        asked: Vec::new(),
        load: sending.load,
        rate_choice: sending.rate_choice,
        capacity: sending.capacity,
        sweep: sending.sweep,
        slice: sending.slice,
        requests: baseline.requests.clone(),
        steps,
        data: data.clone(),
        timeout: sending.timeout,
        keep_alive: sending.keep_alive,
        protocol: sending.protocol,
        spin_percent: sending.spin_percent,
        realtime: sending.realtime,
        awake: sending.awake,
        precedence: sending.precedence,
        threads: sending.threads,
        warmup: time_span::<Duration>(file.warmup.as_ref(), default::WARMUP),
        settle: file.settle.map(settle),
        order_asked: file.order.map(order),
        groups,
        ladder,
        factors: factors::check(&file, &baseline.name),
        placement: file.placement.map(placement).unwrap_or_default(),
        rounds: file.rounds.unwrap_or(default::ROUNDS),
        generators: file.generators.unwrap_or(1),
        pods,
        until: file.until.as_ref().map(|Written(goal)| goal.clone()),
        max_time: time_span::<LongerThanZero>(file.max_time.as_ref(), default::MAX_TIME).0,
        seed: file.seed,
        systems: systems.domain(),
        settings: values(&file.settings),
        quick: quick_settings(&file.quick),
        expect: baseline.expect.clone(),
        gates: gates(&file.gates.0),
        baseline,
        variants: variants.collect(),
    })
}

fn systems_of<'a>(file: &'a LabFile, tree: &'a Node) -> Systems<'a> {
    Systems {
        declared: file.systems.as_ref().map_or(&[], |systems| &systems.0),
        settings: &file.settings,
        tree,
    }
}

/// Checks the parts that do not depend on variants.
fn check_alone(file: &LabFile, systems: &Systems<'_>, tree: &Node, reading: &mut Reading<'_>) {
    systems.check(file.target.as_ref(), reading);
    systems.check_paths(file.quick.0.iter().map(|(path, _)| path), reading);
    replicas::check_names(systems, reading);
    check_max_time(file, tree, reading);
}

fn gates(gates: &[At<Written<Gate>>]) -> Vec<Gate> {
    gates.iter().map(|gate| gate.value.0.clone()).collect()
}

/// Returns the settings of a quick run as text.
fn quick_settings(quick: &With) -> Vec<(String, String)> {
    let settings = quick.0.iter();
    settings
        .map(|(path, value)| (path.value.to_string(), value.value.0.to_string()))
        .collect()
}

/// Checks that a lab with keys about certificates has a target with TLS, in any variant, and its authorities.
fn check_certificate(file: &LabFile, variants: &[Variant], reading: &mut Reading<'_>) {
    let targets = || variants.iter().map(|variant| variant.systems().last());
    // A variant with mistakes may have that target, and an unreadable included file may contain its `scheme`.
    // Without this check a correct lab would be refused.
    if variants.is_empty() || reading.has_gaps || targets().any(|target| target.is_none()) {
        return;
    }
    if let Some(load) = &file.load {
        let setups = variants.iter().flat_map(|variant| variant.systems());
        load::check_authorities(load, setups, reading);
    }
    if let (Some(load), Some(target)) = (&file.load, &file.target)
        && !targets().flatten().any(|target| target.is_encrypted)
    {
        let Written(Name(target)) = &target.value;
        load::check_certificate(load, target, reading);
    }
}

fn placement(file: PlacementFile) -> Placement {
    match file {
        PlacementFile::OneCore => Placement::OneCore,
        PlacementFile::Free => Placement::Free,
    }
}

fn order(file: OrderFile) -> Order {
    match file {
        OrderFile::SideBySide => Order::SideBySide,
        OrderFile::InTurn => Order::InTurn,
    }
}

/// Returns the lab file, and reports all structural mistakes.
fn lab_file(tree: &Node, reading: &mut Reading<'_>) -> Option<LabFile> {
    if tree.value == Value::Reported {
        return None;
    }
    structure::check_complete(tree, reading);
    match LabFile::deserialize(tree) {
        Ok(file) => Some(file),
        Err(error) => {
            // The structural check refuses every file that cannot be read.
            let message = format!("a defect of weigh: {error}");
            reading.findings.add(Finding::new(tree.place, message));
            None
        }
    }
}

/// Returns the values that differ from request to request, if the load has any.
fn check_data(file: &LabFile, reading: &mut Reading<'_>) -> Option<Data> {
    let data = file.load.as_ref()?.data.as_ref()?;
    Some(data::check(data, reading))
}

/// The parts that all variants of a lab share.
struct Assembly<'a> {
    file: &'a LabFile,
    /// Place of the load in the file.
    load_at: Place,
    systems: &'a Systems<'a>,
    data: Option<&'a Data>,
}

impl Assembly<'_> {
    fn target(&self) -> Option<&str> {
        let Written(Name(name)) = &self.file.target.as_ref()?.value;
        Some(name)
    }

    /// Returns every baseline, each before the variants that are compared with it, and the common steps of
    /// the scenario.
    fn variants(
        &self,
        baselines: &[Draft<'_>],
        drafts: &[Draft<'_>],
        reading: &mut Reading<'_>,
    ) -> (Vec<Variant>, Vec<Step>) {
        let groups = variants::groups(baselines, drafts, &mut reading.findings);
        let mut steps = Vec::new();
        let mut variants = Vec::new();
        for (baseline, group) in baselines.iter().zip(groups) {
            let (first, own_steps) = self.variant(baseline, None, reading);
            // The steps are equal for all baselines, so the last steps are used. The steps of other baselines
            // are only read to find their mistakes.
            steps = own_steps;
            variants.push(first);
            let against = references::compared_with(baseline, &group, &mut reading.findings);
            for (draft, against) in group.iter().zip(against) {
                let (variant, _) = self.variant(draft, Some(against), reading);
                variants.push(variant);
            }
        }
        self.check_same(&variants, baselines.iter().chain(drafts), reading);
        // Without a baseline, variants may still have mistakes.
        if baselines.is_empty() {
            for draft in drafts {
                self.variant(draft, None, reading);
            }
        }
        (variants, steps)
    }

    fn variant(
        &self,
        draft: &Draft<'_>,
        against: Option<&str>,
        reading: &mut Reading<'_>,
    ) -> (Variant, Vec<Step>) {
        self.systems.check_with(draft, reading);
        self.systems.check_own_target(draft, reading);
        // The variant comes first: a lab that compares setups with different targets has one target for each.
        let own = draft.target.as_ref().map(|target| target.value.as_str());
        let target = own.or(self.target());
        let scope = Scope::new(self.systems, draft, target, reading);
        let mut stack = setups::stack(&scope, target, reading);
        // A missing `load` is reported. The systems and proofs of a variant can still be checked.
        let nothing = LoadFile::default();
        let load = self.file.load.as_ref().unwrap_or(&nothing);
        if let Some(target) = stack.last_mut() {
            target.http = load::version(load, draft.sent);
            target.resumption = load::resumption(load, draft.sent);
        }
        let sent = Sent::of_lab(load, draft.sent)
            .with_data(self.data)
            .within(&scope);
        requests::check_scenario(load, draft.sent, reading);
        let (mut requests, steps) = sent.check(self.load_at, reading);
        let prepare = sent.prepare(reading);
        let known = Places {
            scope: Some(&scope),
            data: None,
            captured: &[],
        };
        let expect = requests::expect(&self.file.expect, known, reading);
        if let Some(target) = stack.last() {
            load::check_carried(target, &requests, self.load_at, reading);
        }
        streams::check_usual(&requests, &self.file.expect, self.load_at, reading);
        let status = expect.answer.status;
        websockets::check_usual(&requests, &self.file.expect, status, reading);
        requests::expect_arrays(&mut requests, &expect);
        let prover = Prover {
            scope: &scope,
            sent: &sent,
            stack: &stack,
            // A setup without a baseline is a baseline.
            is_baseline: against.is_none(),
        };
        let proofs = prover.check(&self.file.proof, draft, reading);
        let variant = Variant {
            name: draft.name.clone(),
            // The text of the lab instead of its meaning, because the report shows it.
            with: draft.values(),
            against: against.map(str::to_owned),
            requests,
            prepare,
            keep_alive: load::keeps_connections(load, draft, reading),
            expect,
            proofs,
            is_quick: draft.is_quick,
            absent: None,
            systems: stack,
        };
        (variant, steps)
    }

    /// Checks gates and shared systems, which need all variants. Returns the groups of variants that run
    /// together.
    fn together(
        &self,
        variants: &[Variant],
        reading: &mut Reading<'_>,
    ) -> Option<Vec<Vec<String>>> {
        check_gates(self.file, variants, reading);
        check_certificate(self.file, variants, reading);
        let findings = &mut reading.findings;
        container_keys::check_names(self.systems.declared, variants, findings);
        shared_systems::check(self.systems.declared, self.target(), variants, findings);
        groups::check(self.file, self.systems.tree, variants, findings)
    }

    /// Reports mistakes in names and keys that concern several variants.
    fn check_drafts(
        &self,
        baselines: &[Draft<'_>],
        drafts: &[Draft<'_>],
        sending: Option<&load::Sending>,
        reading: &mut Reading<'_>,
    ) {
        variants::check_names(baselines, drafts, &mut reading.findings);
        let all = [baselines, drafts].concat();
        if let Some((load, sending)) = self.file.load.as_ref().zip(sending) {
            load::check_versions(load, &sending.load, &all, reading);
        }
        let (proof, target) = (&self.file.proof, self.target());
        levels::check(proof, &all, self.systems, target, reading);
    }

    /// Reports a lab with both kinds of requests, and names with two meanings.
    fn check_sent(&self, reading: &mut Reading<'_>) {
        let Some(load) = &self.file.load else {
            return;
        };
        if let (Some(scenario), Some(first)) = (&load.scenario, load.requests.0.first()) {
            reading.findings.add(
                Finding::new(first.place, "`requests` and `scenario` exclude each other")
                    .related(scenario.place, "`scenario` is given here")
                    .help("`requests` are sent in rotation, and the steps of a `scenario` one after the other. Remove one of the two"),
            );
        }
        let captured = load.scenario.iter().flat_map(|steps| &steps.value);
        let captured = captured.flat_map(|step| &step.value.capture.0);
        for (name, _) in captured {
            let Name(word) = &name.value;
            if self
                .data
                .is_some_and(|data| data::names(data).any(|known| known == word))
            {
                reading.findings.add(
                    Finding::new(name.place, format!("`data` already has the name `{word}`"))
                        .help("give the captured value another name"),
                );
            }
        }
        let settings = self.systems.setting_names(None);
        let clashing = |word: &&str| {
            self.data
                .is_some_and(|data| data::names(data).any(|it| it == *word))
        };
        for word in settings.filter(clashing) {
            let place = load.data.as_ref().map_or(self.load_at, |data| data.place);
            reading.findings.add(
                Finding::new(
                    place,
                    format!("`{word}` is the name of a value in `data` and of a setting"),
                )
                .help("`{{…}}` in a request could mean either. Rename one of them"),
            );
        }
    }

    /// Checks that each request with `same_as: baseline` has a counterpart in the baseline.
    fn check_same<'d>(
        &self,
        variants: &[Variant],
        drafts: impl Iterator<Item = &'d Draft<'d>> + Clone,
        reading: &mut Reading<'_>,
    ) {
        for variant in variants {
            let mut named = drafts.clone();
            let draft = named.find(|draft| draft.name == variant.name);
            let place = draft.map_or(self.load_at, |draft| draft.place);
            let baseline = variant.against.as_ref();
            let baseline = baseline.and_then(|name| variants.iter().find(|it| it.name == *name));
            requests::check(variant, baseline, place, &mut reading.findings);
        }
    }
}

fn settle(file: SettleFile) -> Settle {
    Settle {
        connections: file.connections.unwrap_or(default::SETTLE_CONNECTIONS),
        within: time_span::<LongerThanZero>(file.within.as_ref(), default::SETTLE_WITHIN).0,
    }
}

/// Checks that each gate names an existing variant. A gate on another variant would never be judged.
fn check_gates(file: &LabFile, variants: &[Variant], reading: &mut Reading<'_>) {
    // Variants with mistakes are missing here, and a gate may name one of them.
    if reading.has_gaps || reading.findings.count() > 0 {
        return;
    }
    let names = || variants.iter().map(|variant| variant.name.as_str());
    for At { place, value } in &file.gates.0 {
        let Written(gate) = value;
        if !names().any(|name| gate.is_about(name)) {
            let name = gate.variant.as_deref().unwrap_or_default();
            reading.findings.add(
                Finding::new(
                    *place,
                    format!("this gate names `{name}`, which is not a variant"),
                )
                .help(
                    did_you_mean(name, names())
                        .unwrap_or_else(|| list("the variants are", names())),
                ),
            );
        }
    }
}

/// Reports a limit without effect, which is a mistake of the author.
fn check_max_time(file: &LabFile, tree: &Node, reading: &mut Reading<'_>) {
    // The tree is checked, too, because a misspelled `until` was given and is already reported.
    if file.until.is_some() || file.max_time.is_none() || tree.get("until").is_some() {
        return;
    }
    if let Some(entry) = tree.entry("max-time") {
        let help = "add `until`, such as `until: p99 ±2%`, or remove this key";
        let message = "`max-time` without `until`";
        reading
            .findings
            .add(Finding::new(entry.key_place, message).help(help));
    }
}

/// Returns the stem of the file. Returns the name of the folder if the stem is not specific.
fn name(path: &Path) -> String {
    let text =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    // A path without a stem ends in `..`, which no readable file has.
    let stem = text(path.file_stem()).unwrap_or_default();
    match text(path.parent().and_then(Path::file_name)) {
        Some(folder) if stem == "lab" => folder,
        _ => stem,
    }
}
