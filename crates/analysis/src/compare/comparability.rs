//! Differences between two results, and the decision if they make the results incomparable.

mod foreign;

use recording::{
    Environment, LoadText, Recording, RequestText, SystemRecord, VariantRecord, describe,
};

use super::side::Side;
use super::{Operand, OperandSource};
use crate::company;

/// Differences between two results, sorted by their effect.
#[derive(Default)]
pub(super) struct Comparability {
    /// Differences that make the two results incomparable.
    pub(super) obstacles: Vec<String>,
    /// Differences that a reader should know.
    pub(super) notes: Vec<String>,
}

impl Comparability {
    /// Turns obstacles into notes if `despite` is true.
    pub(super) fn settled(mut self, despite: bool) -> Self {
        if despite {
            let lifted = std::mem::take(&mut self.obstacles);
            let lifted = lifted
                .into_iter()
                .map(|text| format!("compared in spite of this: {text}"));
            // They come first, because an overridden obstacle is more important than other notes.
            self.notes.splice(0..0, lifted);
        }
        self
    }

    fn differ(&mut self, is_grave: bool, what: &str, a: Option<String>, b: Option<String>) {
        if a == b {
            return;
        }
        let shown = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let text = format!("{what}: {} in A, {} in B", shown(a), shown(b));
        if is_grave {
            self.obstacles.push(text);
        } else {
            self.notes.push(text);
        }
    }
}

/// Description of a recording: `recording of lab truth, 6 rounds, …`.
pub(super) fn described(recording: &Recording) -> String {
    let what = match &recording.lab {
        Some(lab) => format!("lab {}", lab.name),
        None => format!(
            "load on {}",
            recording.load.url.as_deref().unwrap_or("an unknown target")
        ),
    };
    format!(
        "{what}, {}, {}",
        recording.started_at,
        describe::load(recording)
    )
}

pub(super) fn of(
    a: &Operand,
    b: &Operand,
    is_same_run: bool,
    sides: &[(Side, Side)],
) -> Comparability {
    let mut found = Comparability::default();
    let each = || sides.iter().flat_map(|(of_a, of_b)| [of_a, of_b]);
    // The failures of named requests are among the failures of their file.
    let has_whole = each().any(|side| side.is_whole);
    let troubles = each().filter(|side| !has_whole || side.is_whole);
    for trouble in troubles.filter_map(|side| side.trouble.clone()) {
        // Both sides of several rows may have the same obstacle. It is listed once.
        if !found.obstacles.contains(&trouble) {
            found.obstacles.push(trouble);
        }
    }
    for side in each().filter(|side| !has_whole || side.is_whole) {
        if side.replies.is_none() {
            found.notes.push(format!(
                "the failures of {} are unknown, because its file does not contain them",
                side.name
            ));
        }
    }
    match (&a.source, &b.source) {
        // Two variants of one recording share machine, load and version.
        (OperandSource::Recording(one), OperandSource::Recording(_)) if is_same_run => {
            let strangers = sides
                .iter()
                .filter(|(of_a, of_b)| !company::is_together(one, &of_a.name, &of_b.name));
            found.obstacles.extend(strangers.map(|(of_a, of_b)| {
                format!(
                    "{} and {} were measured in different groups",
                    of_a.name, of_b.name
                )
            }));
        }
        (OperandSource::Recording(one), OperandSource::Recording(other)) => {
            recordings(&mut found, one, other, sides);
        }
        _ => foreign::runs(&mut found, a, b),
    }
    found
}

fn recordings(found: &mut Comparability, a: &Recording, b: &Recording, sides: &[(Side, Side)]) {
    machines(found, &a.environment, &b.environment);
    loads(found, a, b);
    for (label, recording) in [("A", a), ("B", b)] {
        if recording.interrupted {
            found
                .notes
                .push(format!("{label} was stopped before its end"));
        }
    }
    let version = |recording: &Recording| {
        let commit = recording.weigh.commit.as_deref();
        let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
        Some(format!("{}{commit}", recording.weigh.version))
    };
    found.differ(false, "weigh", version(a), version(b));
    for (of_a, of_b) in sides {
        if let (Some(one), Some(other)) = (a.variant(&of_a.name), b.variant(&of_b.name)) {
            setups(found, one, other);
        }
    }
}

fn machines(found: &mut Comparability, a: &Environment, b: &Environment) {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let yes = |is: Option<bool>| is.map(|is| if is { "on" } else { "off" }.to_owned());
    let cpus = |cpus: &Option<Vec<usize>>| cpus.as_ref().map(|cpus| format!("{cpus:?}"));
    let flat = |text: &Option<String>| text.clone();
    for (is_grave, what, of_a, of_b) in [
        (true, "processor", flat(&a.cpu_model), flat(&b.cpu_model)),
        (true, "cores", number(a.cores), number(b.cores)),
        (
            true,
            "virtualization",
            flat(&a.virtualization),
            flat(&b.virtualization),
        ),
        (false, "kernel", flat(&a.kernel), flat(&b.kernel)),
        (false, "operating system", flat(&a.os), flat(&b.os)),
        (
            false,
            "frequency governor",
            flat(&a.governor),
            flat(&b.governor),
        ),
        (false, "boost", yes(a.boost), yes(b.boost)),
        (false, "two threads a core", yes(a.smt), yes(b.smt)),
        (
            false,
            "idle cores kept awake",
            yes(a.cores_awake),
            yes(b.cores_awake),
        ),
        (
            false,
            "systems before other programs",
            yes(a.precedence),
            yes(b.precedence),
        ),
        (
            false,
            "accounting",
            flat(&a.accounting),
            flat(&b.accounting),
        ),
        (
            false,
            "cores of the generator",
            cpus(&a.generator_cpus),
            cpus(&b.generator_cpus),
        ),
    ] {
        found.differ(is_grave, what, of_a, of_b);
    }
}

fn loads(found: &mut Comparability, a: &Recording, b: &Recording) {
    // Side by side, absolute figures include the effect of the other variants.
    let order = |recording: &Recording| Some(recording.order_measured().word().to_owned());
    found.differ(true, "order of variants", order(a), order(b));
    // Other groups have another effect on absolute figures.
    let groups = |recording: &Recording| {
        let text = company::listed(recording.groups());
        Some(text.unwrap_or_else(|| "all".to_owned()))
    };
    found.differ(true, "variants up together", groups(a), groups(b));
    let placed = |recording: &Recording| {
        let systems = recording.placed_systems();
        Some(match systems.is_empty() {
            true => "none".to_owned(),
            false => systems.join(", "),
        })
    };
    found.differ(true, "systems on one core each", placed(a), placed(b));
    // Models are compared as data and shown as text, because different models may have equal texts.
    if a.load.model != b.load.model {
        let (of_a, of_b) = (describe::load(a), describe::load(b));
        found.differ(true, "load", Some(of_a), Some(of_b));
    }
    if requests(&a.load.requests) != requests(&b.load.requests) {
        let names = |load: &LoadText| {
            let names: Vec<&str> = load.requests.iter().map(|request| &*request.name).collect();
            Some(names.join(", "))
        };
        match (names(&a.load), names(&b.load)) {
            (of_a, of_b) if of_a == of_b => found
                .obstacles
                .push("requests: equal names, but different contents or weights".to_owned()),
            (of_a, of_b) => found.differ(true, "requests", of_a, of_b),
        }
    }
    let (a, b) = (&a.load, &b.load);
    let keeps = |load: &LoadText| {
        Some(
            if load.keep_alive {
                "kept"
            } else {
                "one a request"
            }
            .to_owned(),
        )
    };
    found.differ(true, "connections", keeps(a), keeps(b));
    let protocol = |load: &LoadText| {
        let found = load.protocol.as_ref().map(describe::protocol);
        Some(found.unwrap_or_else(|| "HTTP/1.1".to_owned()))
    };
    found.differ(true, "protocol", protocol(a), protocol(b));
    // The length is not rounded, because different lengths may round to equal texts.
    let length = |us: u64| {
        Some(match us % 1000 {
            0 => format!("{} ms", us / 1000),
            _ => format!("{us} us"),
        })
    };
    found.differ(false, "timeout", length(a.timeout_us), length(b.timeout_us));
    found.differ(false, "warm-up", length(a.warmup_us), length(b.warmup_us));
    let systems = |load: &LoadText| {
        Some(match (load.keeps_systems, &*load.kept_systems) {
            (true, _) => "kept from round to round".to_owned(),
            (false, []) => "started again in each round".to_owned(),
            (false, kept) => format!("{} kept from round to round", kept.join(", ")),
        })
    };
    found.differ(false, "systems", systems(a), systems(b));
    let threads = |load: &LoadText| Some(load.threads.to_string());
    found.differ(false, "generator threads", threads(a), threads(b));
}

/// Properties that make two requests equal. Headers are left out, because they contain tokens and ports.
fn requests(requests: &[RequestText]) -> Vec<(&str, &str, Option<&str>, u32)> {
    requests
        .iter()
        .map(|request| {
            (
                request.method.as_str(),
                request.path.as_str(),
                request.body_sha256.as_deref(),
                request.weight,
            )
        })
        .collect()
}

/// Compares the parts of two setups. Most comparisons are made because these differ.
fn setups(found: &mut Comparability, a: &VariantRecord, b: &VariantRecord) {
    let name = &b.name;
    let keys = a.with.keys().chain(b.with.keys());
    // Keys of either side are used, because an added or removed key is a difference, too.
    let mut keys: Vec<&String> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let of = |variant: &VariantRecord| variant.with.get(key).cloned();
        found.differ(false, &format!("{name}: {key}"), of(a), of(b));
    }
    // This has the same weight as other requests of the load, because other requests are another question.
    if requests(&a.requests) != requests(&b.requests) {
        let shown = |variant: &VariantRecord| {
            let own = describe::requests(&variant.requests);
            Some(match own.as_slice() {
                [] => "the requests of the load".to_owned(),
                own => own.join("; "),
            })
        };
        let what = format!("{name}: requests");
        match (shown(a), shown(b)) {
            (of_a, of_b) if of_a == of_b => found
                .obstacles
                .push(format!("{what}: equal names, but different contents")),
            (of_a, of_b) => found.differ(true, &what, of_a, of_b),
        }
    }
    let protocol = |variant: &VariantRecord| {
        let own = variant.protocol.as_ref().map(describe::protocol);
        Some(own.unwrap_or_else(|| "the protocol of the load".to_owned()))
    };
    found.differ(true, &format!("{name}: protocol"), protocol(a), protocol(b));
    for system in &b.systems {
        // A system that only one side has is visible in the keys of its setup.
        let Some(other) = a.systems.iter().find(|other| other.name == system.name) else {
            continue;
        };
        let what = |part: &str| format!("{name}: {part} of {}", system.name);
        found.differ(
            false,
            &what("version"),
            other.version.clone(),
            system.version.clone(),
        );
        let limits = |system: &SystemRecord| {
            // The enforced limits count, not the requested limits, because only enforced limits bound the
            // figures.
            let enforced = system.limits_enforced.as_ref();
            enforced.map_or_else(|| "none".to_owned(), describe::limits)
        };
        let (then, now) = (limits(other), limits(system));
        found.differ(false, &what("limits"), Some(then), Some(now));
        let processes = |system: &SystemRecord| {
            let what = if system.shared {
                "one for all variants"
            } else {
                "one a variant"
            };
            Some(what.to_owned())
        };
        found.differ(false, &what("process"), processes(other), processes(system));
    }
}
