use super::*;
use crate::mistake::Source;
use insta::assert_snapshot;

/// The tree with the marked text of each value, or the mistakes.
fn check(text: &str) -> String {
    let mut findings = Findings::default();
    let root = read(0, text, "write one file for each", &mut findings);
    let sources = vec![Source {
        path: "x.yaml".into(),
        text: text.to_owned(),
    }];
    if let Err(mistakes) = findings.settle(sources) {
        return mistakes.render(false);
    }
    let mut lines = String::new();
    match root {
        Document::Tree(root) => show(&root, text, 0, &mut lines),
        other => lines = format!("{other:?}"),
    }
    lines
}

fn show(node: &Node, text: &str, depth: usize, lines: &mut String) {
    let marked = &text[node.place.start..node.place.end];
    let indent = "  ".repeat(depth);
    match &node.value {
        Value::Scalar { text, plain } => {
            let kind = if *plain { "plain" } else { "quoted" };
            *lines += &format!("{indent}{kind} {text:?} from `{marked}`\n");
        }
        Value::List(items) => {
            *lines += &format!("{indent}list from `{marked}`\n");
            for item in items {
                show(item, text, depth + 1, lines);
            }
        }
        Value::Map(entries) => {
            *lines += &format!("{indent}map from `{marked}`\n");
            for entry in entries {
                let key = &text[entry.key_place.start..entry.key_place.end];
                *lines += &format!("{indent}  key `{key}`\n");
                show(&entry.node, text, depth + 2, lines);
            }
        }
        Value::Reported => *lines += &format!("{indent}reported\n"),
    }
}

#[test]
fn every_value_keeps_its_text_and_its_place() {
    assert_snapshot!(check("a: 1.10\nb: {c: \"x y\", d: [1, on]}\ne:\n  - ü: |\n      two\n      lines\n  - \n"), @r#"
    map from `a`
      key `a`
        plain "1.10" from `1.10`
      key `b`
        map from `{c: "x y", d: [1, on]}`
          key `c`
            quoted "x y" from `"x y"`
          key `d`
            list from `[1, on]`
              plain "1" from `1`
              plain "on" from `on`
      key `e`
        list from `-`
          map from `ü`
            key `ü`
              quoted "two\nlines\n" from `two
          lines
      `
          plain "~" from ``
    "#);
}

#[test]
fn an_alias_is_the_value_it_stands_for() {
    assert_snapshot!(check("a: &x {b: 1}\nc: *x\n"), @r#"
    map from `a`
      key `a`
        map from `{b: 1}`
          key `b`
            plain "1" from `1`
      key `c`
        map from `{b: 1}`
          key `b`
            plain "1" from `1`
    "#);
}

#[test]
fn a_key_given_twice_points_at_both() {
    assert_snapshot!(check("a: 1\nb: 2\na: 3\n"), @"
    error: the key `a` is here twice
     --> x.yaml:3:1
      |
    1 | a: 1
      | - first here
    2 | b: 2
    3 | a: 3
      | ^ and again here
      |
      = help: keep one of the two
    ");
}

#[test]
fn broken_yaml_is_reported_with_its_line() {
    assert_snapshot!(check("a: 1\nb: [1, 2\nc: 3\n"), @"
    error: this is not YAML: illegal placement of ':' indicator
     --> x.yaml:3:2
      |
    3 | c: 3
      |  ^
    ");
}

#[test]
fn the_end_of_the_file_is_reported_at_the_last_thing_written() {
    assert_snapshot!(check("a: 1\nb: {c: 2\n\n\n"), @"
    error: this is not YAML: unclosed bracket '{'
     --> x.yaml:2:4
      |
    2 | b: {c: 2
      |    ^
    ");
}

#[test]
fn a_tab_is_told_to_be_spaces_and_not_to_get_quotes() {
    assert_snapshot!(check("a:\n\trun: \"x {{addr}}\"\n"), @r#"
    error: this is not YAML: tabs disallowed within this context (block indentation)
     --> x.yaml:2:2
      |
    2 |     run: "x {{addr}}"
      |     ^
      |
      = help: YAML is indented by spaces. Replace the tab
    "#);
}

#[test]
fn a_template_without_quotes_is_told_to_get_them() {
    assert_snapshot!(check("with: {size: {{name}}}\n"), @r#"
    error: a key must be a word, not a collection
     --> x.yaml:1:15
      |
    1 | with: {size: {{name}}}
      |               ^^^^^^
      |
      = help: text with `{{` needs quotes at the beginning of a value and within `[…]` or `{…}`: "{{name}}"
    "#);
    assert_snapshot!(check("run: {{stack}}/bin --listen\n"), @r#"
    error: a key must be a word, not a collection
     --> x.yaml:1:7
      |
    1 | run: {{stack}}/bin --listen
      |       ^^^^^^^
      |
      = help: text with `{{` needs quotes at the beginning of a value and within `[…]` or `{…}`: "{{name}}"
    "#);
}

#[test]
fn a_file_without_a_value_is_empty() {
    for text in ["", "# nothing yet\n", "~", "null\n", "---\n"] {
        assert_eq!(check(text), "Empty", "{text}");
    }
}

#[test]
fn aliases_cannot_blow_up() {
    let mut text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        text += &format!("a{level}: &a{level} [{below}]\n");
    }
    assert!(
        check(&text).contains("more than 100000 values"),
        "{}",
        check(&text)
    );
}

#[test]
fn an_alias_within_its_own_anchor_is_refused() {
    assert_snapshot!(check("a: &x [1, *x]\n"), @"
    error: this alias is inside its own anchor
     --> x.yaml:1:11
      |
    1 | a: &x [1, *x]
      |           ^^
    ");
}

#[test]
fn a_second_document_is_refused() {
    assert_snapshot!(check("a: 1\n---\nb: 1\n"), @"
    error: a second document begins here
     --> x.yaml:2:1
      |
    2 | ---
      | ^^^
      |
      = help: write one file for each
    ");
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    assert!(check(&"[".repeat(100_000)).starts_with("error"));
    assert!(check(&"- ".repeat(100_000)).starts_with("error"));
    assert!(check(&"a: {".repeat(100_000)).starts_with("error"));
    let deepest = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    assert!(check(&deepest).starts_with("list"));
    let deeper = format!("[{deepest}]");
    assert!(check(&deeper).contains("values are nested more than 128 deep"));
}

#[test]
fn a_tag_of_ones_own_is_refused() {
    assert_snapshot!(check("a: !secret b\nc: !!str 1\n"), @"
    error: the tag `!secret` has no meaning here
     --> x.yaml:1:4
      |
    1 | a: !secret b
      |    ^^^^^^^
      |
      = help: remove it
    ");
}

#[test]
fn the_largest_number_of_values_can_be_set() {
    let text = "[1, 2, 3, 4]";
    let read = |values| {
        let mut findings = Findings::default();
        read_at_most(values, 0, text, "", &mut findings);
        findings.count()
    };
    // The list counts as well.
    assert_eq!((read(5), read(4)), (0, 1));
}
