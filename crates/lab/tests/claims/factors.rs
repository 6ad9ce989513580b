//! Factors: variants that form a factorial design.

use std::path::Path;

use insta::assert_snapshot;
use lab::{Lab, parse_with};

use crate::Folder;

const LAB: &str = "\
question: What do log and TLS cost?
load: {rate: 100/s, duration: 1s}
target: server
settings: {log: off}
systems:
  server:
    settings: {tls: off, auth: {none: '', basic: '--auth basic'}}
    run: serve --log {{log}} --tls {{tls}} {{auth}} --listen {{addr}}
factors:
  log: [off, on]
  server.tls: [off, on]
";

/// Returns the lab with a text after it, which must be correct.
fn with(more: &str) -> Lab {
    match Folder::with_lab(format!("{LAB}{more}")).parse() {
        Ok(lab) => lab,
        Err(mistakes) => panic!("{mistakes}"),
    }
}

/// Returns the mistakes of the lab with some of its text replaced.
fn refused(from: &str, to: &str) -> String {
    assert!(LAB.contains(from), "the example has no `{from}`");
    Folder::with_lab(LAB.replace(from, to)).mistakes()
}

/// The command of the server in each variant.
fn commands(lab: &Lab) -> Vec<String> {
    let command = |variant: &lab::Variant| {
        let words = variant.systems().last().unwrap().command().iter();
        let words: Vec<String> = words.map(ToString::to_string).collect();
        words[1..words.len() - 2].join(" ").trim().to_owned()
    };
    lab.all().map(command).collect()
}

#[test]
fn factors_make_a_variant_for_each_combination_with_the_words_of_the_user() {
    let lab = with("");
    assert_eq!(
        lab.names(),
        ["log off, tls off", "log on", "tls on", "log on, tls on"]
    );
    assert_eq!(
        commands(&lab),
        [
            "--log off --tls off",
            "--log on --tls off",
            "--log off --tls on",
            "--log on --tls on"
        ]
    );
    let against: Vec<Option<&str>> = lab
        .variants
        .iter()
        .map(|it| it.against.as_deref())
        .collect();
    assert_eq!(against, [Some("log off, tls off"); 3]);
    let factors = lab.factors.unwrap();
    assert_eq!(factors.names(), ["log", "tls"]);
    assert_eq!(factors.factors[1].setting, "server.tls");
    assert_eq!(factors.factors[1].levels, ["off", "on"]);
    assert_eq!(
        factors.variants,
        lab.variants.iter().map(|it| it.name.clone()).fold(
            vec![lab.baseline.name.clone()],
            |mut all, name| {
                all.push(name);
                all
            }
        )
    );
    assert!(factors.design.is_full());
    assert_eq!(lab.variants[0].with["log"], "on");
    assert_eq!(lab.variants[0].with["server.tls"], "off");
}

#[test]
fn a_lab_without_factors_has_no_design() {
    let lab = Folder::with_lab(crate::LAB).parse().unwrap();
    assert_eq!(lab.factors, None);
}

#[test]
fn a_level_may_be_any_scalar_or_the_name_of_a_choice() {
    let lab = with("  server.auth: [none, basic]\n");
    assert_eq!(lab.names().len(), 8);
    assert_eq!(lab.names()[7], "log on, tls on, auth basic");
    let commands = commands(&lab);
    assert!(commands[7].ends_with("--auth basic"), "{}", commands[7]);
    assert!(!commands[0].contains("--auth"), "{}", commands[0]);
    let text = LAB.replace("log: [off, on]", "log: [1.10, true]");
    let lab = Folder::with_lab(text).parse().unwrap();
    assert_eq!(lab.names()[1], "log true");
    assert_eq!(lab.factors.unwrap().factors[0].levels, ["1.10", "true"]);
}

#[test]
fn the_baseline_may_have_a_name_and_variants_may_be_outside_of_the_design() {
    let lab = with("baseline: {name: plain}\nvariants:\n  - {name: loud, with: {log: loud}}\n");
    assert_eq!(
        lab.names(),
        ["plain", "log on", "tls on", "log on, tls on", "loud"]
    );
    let factors = lab.factors.unwrap();
    assert_eq!(factors.variants[0], "plain");
    assert_eq!(factors.variants.len(), 4);
}

#[test]
fn two_settings_of_one_name_are_told_apart_by_their_systems() {
    let text = LAB
        .replace("settings: {log: off}", "settings: {tls: off}")
        .replace("--log {{log}}", "--log {{tls}}")
        .replace("  log: [off, on]", "  tls: [off, on]");
    let lab = Folder::with_lab(text).parse().unwrap();
    assert_eq!(lab.names()[1], "tls on");
    assert_eq!(lab.names()[2], "server.tls on");
}

#[test]
fn a_fraction_has_the_standard_generators_and_begins_with_the_baseline() {
    let lab = with("  server.auth: [none, basic]\nfraction: 1/2\n");
    assert_eq!(
        lab.names(),
        [
            "log off, tls off, auth none",
            "log on, auth basic",
            "tls on, auth basic",
            "log on, tls on"
        ]
    );
    let design = lab.factors.unwrap().design;
    assert_eq!(design.resolution(), Some(3));
}

#[test]
fn wrong_factors_are_refused_at_their_places() {
    assert_snapshot!(refused("log: [off, on]", "log: [off, on, loud]"), @"
    error: the factor `log` has 3 levels, and a factor has two
      --> labs/x.yaml:10:8
       |
    10 |   log: [off, on, loud]
       |        ^^^^^^^^^^^^^^^
       |
       = help: keep two levels, or list variants with `for` instead of `factors`
    ");
    assert_snapshot!(refused("log: [off, on]", "log: [off]"), @"
    error: the factor `log` has 1 level, and a factor has two
      --> labs/x.yaml:10:8
       |
    10 |   log: [off]
       |        ^^^^^
       |
       = help: write both levels, such as `[off, on]`
    ");
    assert_snapshot!(refused("log: [off, on]", "log: [on, on]"), @"
    error: both levels of `log` are `on`
      --> labs/x.yaml:10:13
       |
    10 |   log: [on, on]
       |             ^^
       |
       = help: a factor has two different levels
    ");
    assert_snapshot!(refused("log: [off, on]", "log: [off, '{{name}}']"), @"
    error: a level cannot contain a template
      --> labs/x.yaml:10:14
       |
    10 |   log: [off, '{{name}}']
       |              ^^^^^^^^^^
       |
       = help: give the setting choices with names, such as `log: {off: …, on: …}`, and use the names as levels
    ");
    assert_snapshot!(refused("log: [off, on]", "log: on"), @"
    error: expected a list, found the text `on`
      --> labs/x.yaml:10:8
       |
    10 |   log: on
       |        ^^
    ");
    assert_snapshot!(refused("  log: [off, on]\n", ""), @"
    error: a design needs at least two factors
     --> labs/x.yaml:9:1
      |
    9 | factors:
      | ^^^^^^^
      |
      = help: add a factor, or write the two setups as `baseline` and `variants`
    ");
    assert_snapshot!(refused("log: [off, on]", "lgo: [off, on]"), @"
    error: the lab has no setting `lgo`
      --> labs/x.yaml:10:3
       |
    10 |   lgo: [off, on]
       |   ^^^
       |
       = help: did you mean `log`?
    ");
}

#[test]
fn what_excludes_factors_is_refused_at_its_place() {
    let text = format!("{LAB}baseline: {{name: a, for: {{size: [1, 2]}}, with: {{log: on}}}}\n");
    assert_snapshot!(Folder::with_lab(text).mistakes(), @"
    error: `for` and `factors` exclude each other
      --> labs/x.yaml:12:21
       |
     9 | factors:
       | ------- `factors` are given here
    ...
    12 | baseline: {name: a, for: {size: [1, 2]}, with: {log: on}}
       |                     ^^^
       |
       = help: `factors` already have a variant for each combination. Remove one of the two

    error: the baseline of `factors` cannot have `with`
      --> labs/x.yaml:12:42
       |
     9 | factors:
       | ------- `factors` are given here
    ...
    12 | baseline: {name: a, for: {size: [1, 2]}, with: {log: on}}
       |                                          ^^^^
       |
       = help: the variants differ only in their factors. Move this key to the lab, where it is for all of them
    ");
    assert_snapshot!(refused("factors:\n  log: [off, on]\n  server.tls: [off, on]\n", "fraction: 1/2\nbaseline: {name: a}\n"), @"
    error: `fraction` without `factors`
     --> labs/x.yaml:9:1
      |
    9 | fraction: 1/2
      | ^^^^^^^^
      |
      = help: add `factors`, such as `{log: [off, on], tls: [off, on]}`, or remove this key
    ");
    assert_snapshot!(refused("factors:", "fraction: 2/3\nfactors:"), @"
    error: `2/3` is not a fraction of a design
     --> labs/x.yaml:9:11
      |
    9 | fraction: 2/3
      |           ^^^
      |
      = help: write `1/2`, `1/4` or `1/8`
    ");
    assert_snapshot!(refused("factors:", "fraction: 1/2\nfactors:"), @"
    error: a fraction 1/2 of 2 factors leaves no effect apart
     --> labs/x.yaml:9:11
      |
    9 | fraction: 1/2
      |           ^^^
      |
      = help: remove `fraction`
    ");
    let found = parse_with(
        Path::new("labs/x.yaml"),
        &Folder::with_lab(LAB),
        &[("log".to_owned(), "on".to_owned())],
    );
    assert_snapshot!(found.unwrap_err().render(false), @"
    error: `log` is a factor of the lab
      --> --with:1:1
       |
     1 | log=on
       | ^^^^^^
       |
      ::: labs/x.yaml:10:3
       |
    10 |   log: [off, on]
       |   --- the factor
       |
       = help: each variant has one of its two levels. Change the levels in the lab
    ");
}

/// The mistakes of a lab with this number of factors.
fn many(factors: usize, fraction: &str) -> String {
    let settings: Vec<String> = (1..=factors).map(|it| format!("f{it}: off")).collect();
    let used: Vec<String> = (1..=factors).map(|it| format!("{{{{f{it}}}}}")).collect();
    let levels: String = (1..=factors)
        .map(|it| format!("  f{it}: [off, on]\n"))
        .collect();
    let text = LAB
        .replace(
            "settings: {log: off}",
            &format!("settings: {{{}}}", settings.join(", ")),
        )
        .replace("--log {{log}}", &used.join(" "))
        .replace("  log: [off, on]\n  server.tls: [off, on]\n", &levels);
    Folder::with_lab(format!("{text}{fraction}")).mistakes()
}

#[test]
fn too_many_combinations_are_refused_with_the_fraction_that_fits() {
    assert_snapshot!(many(6, ""), @"
    error: the factors have 64 combinations, and a lab has at most 32
     --> labs/x.yaml:9:1
      |
    9 | factors:
      | ^^^^^^^
      |
      = help: write `fraction: 1/2`, which fits
    ");
    assert_eq!(many(6, "fraction: 1/2\n"), "no mistake");
    assert_eq!(many(5, ""), "no mistake");
    assert_snapshot!(many(8, "fraction: 1/4\n"), @"
    error: a fraction 1/4 has 64 combinations, and a lab has at most 32
      --> labs/x.yaml:18:11
       |
    18 | fraction: 1/4
       |           ^^^
       |
       = help: write `fraction: 1/8`, which fits
    ");
    assert_eq!(many(8, "fraction: 1/8\n"), "no mistake");
    assert_snapshot!(many(4, "fraction: 1/4\n"), @"
    error: a fraction 1/4 of 4 factors would not keep the factors apart
      --> labs/x.yaml:14:11
       |
    14 | fraction: 1/4
       |           ^^^
       |
       = help: write 1/2
    ");
    assert_snapshot!(many(12, "fraction: 1/128\n"), @"
    error: 12 factors are too many
      --> labs/x.yaml:22:11
       |
    22 | fraction: 1/128
       |           ^^^^^
       |
       = help: a design has at most 11 factors. Remove some of them
    ");
    assert_eq!(many(11, "fraction: 1/64\n"), "no mistake");
    let said = many(3, "fraction: 1/16\n");
    let message = "a fraction 1/16 of 3 factors would not keep the factors apart";
    assert!(said.contains(message), "{said}");
}

#[test]
fn an_included_file_has_no_factors() {
    let text = LAB.replace("factors:\n  log: [off, on]\n  server.tls: [off, on]\n", "");
    let text = format!("include: more.yaml\n{text}baseline: {{name: a}}\n");
    let folder = Folder::with_lab(text).file("labs/more.yaml", "factors: {log: [off, on]}\n");
    let said = folder.mistakes().to_string();
    assert!(
        said.contains("an included file cannot have `factors`"),
        "{said}"
    );
}
