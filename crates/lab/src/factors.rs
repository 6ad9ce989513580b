//! Factors of a lab: variants that form a two-level factorial design.
//!
//! `factors` stand for a list of variants, one for each run of the design. They are written out in the tree,
//! before the choices of settings are made. So a level may be the name of a choice, and all other checks see
//! ordinary variants.
//!
//! A variant is named by its factors at the second level, such as `log on, tls on`. All others are at the
//! first level. The baseline has all factors at the first level.

use model::{FactorSet, FactorialDesign};
use yaml_with_places::{Entry, Finding, Node, Place, Value};

use crate::experiment::{Factor, Factors};
use crate::formats::{Format, Title};
use crate::fraction::Fraction;
use crate::reading::Reading;
use crate::template::TARGET;
use crate::wire::LabFile;

/// A factor as the tree has it.
struct Found<'n> {
    entry: &'n Entry,
    levels: [&'n Node; 2],
    /// True if its levels are the targets of the variants, and not values of a setting.
    is_target: bool,
}

/// True if a factor is the target of the variants. A setting of this name takes precedence.
fn is_target(root: &Node, key: &str) -> bool {
    key == TARGET && root.at(&["settings", TARGET]).is_none()
}

/// Returns the tree with the variants of its design. `asked` are the settings of the command line.
pub(crate) fn expand(root: Node, asked: &[(String, String)], reading: &mut Reading<'_>) -> Node {
    let Some(factors) = root.entry("factors") else {
        if let Some(entry) = root.entry("fraction") {
            let finding = Finding::new(entry.key_place, "`fraction` without `factors`").help(
                "add `factors`, such as `{log: [off, on], tls: [off, on]}`, or remove this key",
            );
            reading.findings.add(finding);
        }
        return root;
    };
    let before = reading.findings.count();
    check_baseline(&root, factors.key_place, reading);
    check_asked(&root, &factors.node, asked, reading);
    let found: Vec<Found<'_>> = factors
        .node
        .entries()
        .iter()
        .filter_map(|entry| factor(&root, entry, reading))
        .collect();
    let is_whole = found.len() == factors.node.entries().len();
    // A part with a mistake leaves no design, and each mistake is reported.
    let design = match is_whole && factors.node.value != Value::Reported {
        true => design(&root, factors, found.len(), reading),
        false => None,
    };
    let runs = match design.filter(|_| reading.findings.count() == before) {
        Some(design) => design.runs(),
        // The baseline of a wrong design is not missing.
        None => vec![FactorSet::NONE],
    };
    let words = words(found.iter().map(|it| it.entry.key.as_str()));
    let variants: Vec<Node> = runs
        .into_iter()
        .map(|run| variant(&found, &words, run, factors.key_place))
        .collect();
    with_variants(root, variants)
}

/// Returns a factor with two levels. `None` if it has a mistake.
fn factor<'n>(root: &Node, entry: &'n Entry, reading: &mut Reading<'_>) -> Option<Found<'n>> {
    // A wrong value is reported, and a list of wrong values as well.
    let Value::List(levels) = &entry.node.value else {
        return None;
    };
    let texts: Vec<&str> = levels.iter().filter_map(Node::text).collect();
    if texts.len() != levels.len() {
        return None;
    }
    let key = &entry.key;
    let mut refuse = |place: Place, message: String, help: &str| {
        let finding = Finding::new(place, message).help(help);
        reading.findings.add(finding);
    };
    let [first, second] = levels.as_slice() else {
        let number = levels.len();
        let word = if number == 1 { "level" } else { "levels" };
        let message = format!("the factor `{key}` has {number} {word}, and a factor has two");
        let help = match number {
            0 | 1 => "write both levels, such as `[off, on]`",
            _ => "keep two levels, or list variants with `for` instead of `factors`",
        };
        refuse(entry.node.place, message, help);
        return None;
    };
    if let Some(level) = levels
        .iter()
        .zip(&texts)
        .find(|(_, text)| text.contains("{{"))
    {
        refuse(
            level.0.place,
            "a level cannot contain a template".to_owned(),
            "give the setting choices with names, such as `log: {off: …, on: …}`, and use the names as levels",
        );
        return None;
    }
    if texts[0].trim() == texts[1].trim() {
        let message = format!("both levels of `{key}` are `{}`", texts[0].trim());
        refuse(second.place, message, "a factor has two different levels");
        return None;
    }
    Some(Found {
        entry,
        levels: [first, second],
        is_target: is_target(root, key),
    })
}

/// Returns the design of these factors. `None` if there is none, which is reported.
fn design(
    root: &Node,
    factors: &Entry,
    count: usize,
    reading: &mut Reading<'_>,
) -> Option<FactorialDesign> {
    let fraction = root.entry("fraction");
    let (asked, place) = match fraction {
        // A wrong fraction is reported.
        Some(entry) => (Fraction::read(entry.node.text()?).ok()?, entry.node.place),
        None => (Fraction { halvings: 0 }, factors.key_place),
    };
    if let Some(design) = FactorialDesign::standard(count, asked.halvings) {
        return Some(design);
    }
    let most = FactorialDesign::RUNS_MAX;
    let fractions: Vec<String> = FactorialDesign::halvings(count)
        .filter(|halvings| *halvings > 0)
        .map(|halvings| Fraction { halvings }.to_string())
        .collect();
    let runs = count
        .checked_sub(asked.halvings)
        .and_then(|basic| 1_usize.checked_shl(u32::try_from(basic).ok()?))
        .unwrap_or(0);
    let (message, help) = match (count, fractions.as_slice()) {
        (0 | 1, _) => (
            "a design needs at least two factors".to_owned(),
            "add a factor, or write the two setups as `baseline` and `variants`".to_owned(),
        ),
        (_, []) if count > 2 => (
            format!("{count} factors are too many"),
            "a design has at most 11 factors. Remove some of them".to_owned(),
        ),
        (_, [fits, ..]) if runs > most => (
            match fraction {
                Some(_) => format!(
                    "a fraction {asked} has {runs} combinations, and a lab has at most {most}"
                ),
                None => {
                    format!("the factors have {runs} combinations, and a lab has at most {most}")
                }
            },
            format!("write `fraction: {fits}`, which fits"),
        ),
        (_, []) => (
            format!("a fraction {asked} of {count} factors leaves no effect apart"),
            "remove `fraction`".to_owned(),
        ),
        (_, some) => (
            format!("a fraction {asked} of {count} factors would not keep the factors apart"),
            format!("write {}", some.join(" or ")),
        ),
    };
    let finding = Finding::new(place, message).help(help);
    reading.findings.add(finding);
    None
}

/// Reports keys of the baseline that its design excludes. A variant of the design differs from the baseline
/// only in its factors.
fn check_baseline(root: &Node, factors: Place, reading: &mut Reading<'_>) {
    let entries = root.get("baseline").map_or(&[][..], Node::entries);
    for entry in entries.iter().filter(|entry| entry.key != "name") {
        let (message, help) = match entry.key.as_str() {
            "for" => (
                "`for` and `factors` exclude each other".to_owned(),
                "`factors` already have a variant for each combination. Remove one of the two",
            ),
            key => (
                format!("the baseline of `factors` cannot have `{key}`"),
                "the variants differ only in their factors. Move this key to the lab, where it is for all of them",
            ),
        };
        let finding = Finding::new(entry.key_place, message)
            .related(factors, "`factors` are given here")
            .help(help);
        reading.findings.add(finding);
    }
}

/// Reports settings of the command line that are factors, because every variant sets its own level.
fn check_asked(root: &Node, factors: &Node, asked: &[(String, String)], reading: &mut Reading<'_>) {
    for entry in factors.entries() {
        if !asked.iter().any(|(path, _)| *path == entry.key) {
            continue;
        }
        let path: Vec<&str> = match entry.key.split_once('.') {
            Some((system, setting)) => vec!["systems", system, "settings", setting],
            None => vec!["settings", &entry.key],
        };
        // The wish has replaced the value in the tree, so the value has its place.
        let place = root.at(&path).map_or(entry.key_place, |it| it.node.place);
        let finding = Finding::new(place, format!("`{}` is a factor of the lab", entry.key))
            .related(entry.key_place, "the factor")
            .help("each variant has one of its two levels. Change the levels in the lab");
        reading.findings.add(finding);
    }
}

/// Returns the words for factors: the name of the setting, with its system if two factors have that name.
pub(crate) fn words<'k>(keys: impl Iterator<Item = &'k str> + Clone) -> Vec<String> {
    fn last(key: &str) -> &str {
        key.rsplit_once('.').map_or(key, |(_, setting)| setting)
    }
    let same = |key: &str| {
        keys.clone()
            .filter(|other| last(other) == last(key))
            .count()
    };
    keys.clone()
        .map(|key| if same(key) > 1 { key } else { last(key) }.to_owned())
        .collect()
}

/// Returns the name of a run: its factors at the second level. The baseline has all factors in its name.
fn name(words: &[String], levels: &[[String; 2]], run: FactorSet) -> String {
    let all = words.iter().zip(levels).enumerate();
    let named = all.filter(|(factor, _)| run.is_empty() || run.has(*factor));
    let each = named.map(|(_, (word, [first, second]))| {
        let level = if run.is_empty() { first } else { second };
        format!("{word} {level}")
    });
    each.collect::<Vec<String>>().join(", ")
}

/// Returns a baseline or variant of the design.
fn variant(found: &[Found<'_>], words: &[String], run: FactorSet, place: Place) -> Node {
    let text = |node: &Node| node.text().unwrap_or_default().trim().to_owned();
    let levels: Vec<[String; 2]> = found.iter().map(|it| it.levels.map(text)).collect();
    let all = found.iter().enumerate().map(|(factor, found)| Entry {
        key: found.entry.key.clone(),
        key_place: found.entry.key_place,
        node: found.levels[usize::from(run.has(factor))].clone(),
        is_guess: false,
    });
    let all = all.zip(found);
    let (targets, with): (Vec<_>, Vec<_>) = all.partition(|(_, found)| found.is_target);
    let only = |entries: Vec<(Entry, _)>| entries.into_iter().map(|(entry, _)| entry);
    let name = Node {
        place,
        value: Value::Scalar {
            text: name(words, &levels, run),
            plain: false,
        },
    };
    let with = Node {
        place,
        value: Value::Map(only(with).collect()),
    };
    let mut entries = vec![entry("name", name), entry("with", with)];
    entries.extend(only(targets));
    Node {
        place,
        value: Value::Map(entries),
    }
}

fn entry(key: &str, node: Node) -> Entry {
    Entry {
        key: key.to_owned(),
        key_place: node.place,
        node,
        is_guess: false,
    }
}

/// Returns the tree with the first variant as the baseline, and with the others before its own variants. A
/// name of the baseline stays.
fn with_variants(mut root: Node, variants: Vec<Node>) -> Node {
    let mut variants = variants.into_iter();
    let baseline = variants.next();
    let Value::Map(entries) = &mut root.value else {
        return root;
    };
    if let Some(baseline) = baseline {
        match entries.iter_mut().find(|it| it.key == "baseline") {
            Some(own) => {
                if let (Value::Map(own), Value::Map(made)) = (&mut own.node.value, baseline.value) {
                    let is_own = |made: &Entry| own.iter().any(|it| it.key == made.key);
                    let missing: Vec<Entry> = made.into_iter().filter(|it| !is_own(it)).collect();
                    own.extend(missing);
                }
            }
            None => entries.push(entry("baseline", baseline)),
        }
    }
    let variants: Vec<Node> = variants.collect();
    match entries.iter_mut().find(|it| it.key == "variants") {
        Some(own) => {
            if let Value::List(own) = &mut own.node.value {
                own.splice(0..0, variants);
            }
        }
        None if variants.is_empty() => {}
        None => {
            let place = variants[0].place;
            let value = Value::List(variants);
            entries.push(entry("variants", Node { place, value }));
        }
    }
    root
}

/// Returns the design of a lab. `None` without factors, and if they have a mistake.
pub(crate) fn check(file: &LabFile, baseline: &str) -> Option<Factors> {
    let written = &file.factors.as_ref()?.value.0;
    let halvings = file.fraction.as_ref().map_or(0, |it| it.value.0.halvings);
    let design = FactorialDesign::standard(written.len(), halvings)?;
    let paths: Vec<String> = written
        .iter()
        .map(|(path, _)| path.value.to_string())
        .collect();
    let words = words(paths.iter().map(String::as_str));
    let levels: Vec<[String; 2]> = written
        .iter()
        .map(|(_, levels)| {
            let level = |index: usize| {
                let Title(text) = &levels.get(index)?.value.0;
                Some(text.clone())
            };
            Some([level(0)?, level(1)?])
        })
        .collect::<Option<_>>()?;
    let names = design.runs().into_iter().map(|run| match run.is_empty() {
        // The baseline may have a name of its own.
        true => baseline.to_owned(),
        false => name(&words, &levels, run),
    });
    let names: Vec<String> = names.collect();
    let factors = words.into_iter().zip(paths).zip(levels);
    let factors = factors.map(|((name, setting), levels)| Factor {
        name,
        setting,
        levels,
    });
    Some(Factors {
        factors: factors.collect(),
        variants: names,
        design,
    })
}
