//! Settings with named choices, and settings of the command line.

use std::path::Path;

use lab::{Lab, Mistakes, parse_quick, parse_with};

use super::Folder;

const LAB: &str = "\
question: What does b cost?
load:
  connections: 10
  duration: 1s
target: server
settings:
  store: {file: 'file:{{size}}', redis: 'redis://{{redis.addr}}'}
  size: 1
systems:
  server:
    settings: {mode: {plain: '-p', fast: '-f'}}
    run: serve {{mode}} {{store}} --listen {{addr}}
  redis:
    run: redis-server --port {{port}}
baseline: {name: a}
variants:
  - {name: b, with: {store: redis, server.mode: fast}}
";

fn pairs(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    settings.iter().map(owned).collect()
}

fn parse(lab: &str, with: &[(&str, &str)]) -> Result<Lab, Mistakes> {
    let folder = Folder::with_lab(lab).file("labs/fast.yaml", "settings: {size: 7}\n");
    parse_with(Path::new("labs/x.yaml"), &folder, &pairs(with))
}

/// Returns the command of the server in a variant, and the systems of the variant.
fn server(lab: &Lab, index: usize) -> (String, Vec<String>) {
    let variant = lab.all().nth(index).unwrap();
    let stack = variant.systems();
    let systems = stack.iter().map(|setup| setup.system.clone()).collect();
    let server = stack.iter().find(|setup| setup.system == "server").unwrap();
    let words: Vec<String> = server.command().iter().map(ToString::to_string).collect();
    (words.join(" "), systems)
}

#[test]
fn the_first_choice_holds_and_a_variant_names_another() {
    let lab = parse(LAB, &[]).unwrap();
    let (command, systems) = server(&lab, 0);
    assert!(command.starts_with("serve -p file:1"), "{command}");
    assert_eq!(systems, ["server"]);
    let (command, systems) = server(&lab, 1);
    assert!(command.starts_with("serve -f redis://"), "{command}");
    // The system that a choice refers to is started.
    assert!(systems.contains(&"redis".to_owned()), "{systems:?}");
}

#[test]
fn the_command_line_chooses_and_a_variant_keeps_what_it_says() {
    let lab = parse(
        LAB,
        &[("store", "redis"), ("server.mode", "fast"), ("size", "9")],
    )
    .unwrap();
    let (command, systems) = server(&lab, 0);
    assert!(command.starts_with("serve -f redis://"), "{command}");
    assert!(systems.contains(&"redis".to_owned()), "{systems:?}");
    let keeps = LAB.replace("store: redis,", "store: file,");
    let (command, _) = server(
        &parse(&keeps, &[("store", "redis"), ("size", "9")]).unwrap(),
        1,
    );
    assert!(command.starts_with("serve -f file:9"), "{command}");
}

#[test]
fn what_is_no_name_is_a_value() {
    let lab = parse(LAB, &[("store", "memory")]).unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -p memory "));
}

#[test]
fn an_including_lab_chooses_too() {
    let lab = format!(
        "include: shared.yaml\n{}",
        LAB.replace(
            "store: {file: 'file:{{size}}', redis: 'redis://{{redis.addr}}'}",
            "store: redis"
        )
    );
    let shared = "settings:\n  store: {file: 'file:1', redis: 'redis://{{redis.addr}}'}\n";
    let folder = Folder::with_lab(lab).file("labs/shared.yaml", shared);
    let lab = folder.parse().unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -p redis://"));
}

#[test]
fn a_setting_that_is_not_there_is_a_mistake_and_so_is_a_bad_value() {
    let found = parse(LAB, &[("stor", "redis")]).unwrap_err();
    let said = found.render(false).to_string();
    assert!(said.contains("the lab has no setting `stor`"), "{said}");
    assert!(said.contains("did you mean `store`?"), "{said}");
    let found = parse(LAB, &[("server.store", "redis")]).unwrap_err();
    assert!(found.render(false).to_string().contains("server.store"));
    assert!(parse(LAB, &[("size", "{{")]).is_err());
}

#[test]
fn a_setting_needs_a_choice_and_a_name_that_can_be_seen() {
    let none = LAB.replace("{plain: '-p', fast: '-f'}", "{}");
    let said = parse(&none, &[]).unwrap_err().render(false).to_string();
    assert!(said.contains("the setting `mode` has no choices"), "{said}");
    let hidden = LAB.replace(
        "{name: b, with: {store: redis,",
        "{for: [file, redis], with: {store: '{{name}}',",
    );
    let said = parse(&hidden, &[]).unwrap_err().render(false).to_string();
    assert!(said.contains("cannot name a choice of `store`"), "{said}");
}

#[test]
fn a_variant_may_be_kept_out_of_quick_runs() {
    let lab = parse(&LAB.replace("{name: b, ", "{name: b, quick: off, "), &[]).unwrap();
    assert!(lab.baseline.is_quick);
    assert!(!lab.variants[0].is_quick);
    assert!(parse(LAB, &[]).unwrap().variants[0].is_quick);
}

/// Returns the lab with these settings of a quick run, read for a quick run.
fn quick(settings: &str, with: &[(&str, &str)]) -> Result<Lab, Mistakes> {
    let lab = LAB.replace("systems:\n", &format!("quick: {settings}\nsystems:\n"));
    let folder = Folder::with_lab(&lab);
    parse_quick(Path::new("labs/x.yaml"), &folder, &pairs(with))
}

#[test]
fn a_quick_run_has_settings_of_its_own() {
    let lab = quick("{size: 3, server.mode: fast}", &[]).unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -f file:3"));
    assert_eq!(lab.asked, pairs(&[("size", "3"), ("server.mode", "fast")]));
    // A name chooses among the values of a setting, as in a variant.
    let lab = quick("{store: redis}", &[]).unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -p redis://"));
    // The command line takes precedence, and a variant that has its own value keeps it.
    let lab = quick(
        "{server.mode: fast, size: 3}",
        &[("size", "9"), ("server.mode", "plain")],
    );
    let lab = lab.unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -p file:9"));
    assert!(server(&lab, 1).0.starts_with("serve -f"));
    // Without settings of its own, a quick run has the settings of any other run.
    let lab = quick("{}", &[("size", "9")]).unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -p file:9"));
}

#[test]
fn settings_of_a_quick_run_hold_for_no_other_and_are_checked_all_the_same() {
    let lab = LAB.replace("systems:\n", "quick: {size: 3}\nsystems:\n");
    let lab = parse(&lab, &[]).unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -p file:1"));
    let wrong = LAB.replace(
        "systems:\n",
        "quick: {sise: 3, server.mod: fast}\nsystems:\n",
    );
    let mistakes = parse(&wrong, &[]).unwrap_err().render(false);
    assert!(mistakes.contains("`sise`"), "{mistakes}");
    assert!(mistakes.contains("`mod`"), "{mistakes}");
    assert!(mistakes.contains("did you mean `size`?"), "{mistakes}");
}

#[test]
fn a_choice_can_have_any_name_of_one_line() {
    let text = LAB
        .replace("{file: 'file", "{1KB: 'file")
        .replace("redis: 'redis", "ext_authz over HTTP: 'redis");
    let text = text.replace("{store: redis,", "{store: ext_authz over HTTP,");
    let lab = parse(&text, &[]).unwrap();
    assert!(server(&lab, 0).0.starts_with("serve -p file:1"));
    assert!(server(&lab, 1).0.starts_with("serve -f redis://"));
    let lab = parse(
        &text.replace("store: ext_authz over HTTP, ", ""),
        &[("store", "1KB")],
    )
    .unwrap();
    assert!(server(&lab, 1).0.starts_with("serve -f file:1"));
    for (name, words) in [
        ("'{{a}}'", "is not the name of a choice"),
        ("' a'", "is not the name of a choice"),
        ("''", "the name of a choice is empty"),
    ] {
        let wrong = LAB.replace("{file: 'file", &format!("{{{name}: 'file"));
        let shown = parse(&wrong, &[]).unwrap_err().render(false);
        assert!(shown.contains(words), "{name}: {words}\n{shown}");
    }
}
