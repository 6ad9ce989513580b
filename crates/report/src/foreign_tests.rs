//! Tests that texts of foreign recordings stay plain text in every report format.

use std::sync::LazyLock;

use analysis::gate::Undecided;
use analysis::summary::Summary;
use recording::Recording;
use recording::sample::SampleRun;
use serde_json::Value;

/// Characters with a special meaning in terminals, spreadsheets, Markdown, HTML and XML.
const EVIL: &str = "=1+1\u{1b}]0;x\u{7}\u{9b}2J\u{202e}|<script>\"'&\u{fffe} --->\r\n```\n| # @all";
/// Special characters with backticks, which mark code.
const MARKED: &str = "@b `c|<script>\u{1b}\n` d`";

/// Recordings that all tests share.
static RECORDINGS: LazyLock<(Recording, Vec<Recording>)> = LazyLock::new(recordings);

/// A recording without foreign texts, and several recordings with one in every place that may contain any
/// text.
fn recordings() -> (Recording, Vec<Recording>) {
    let plain = SampleRun::open()
        .rounds(6)
        .variant("baseline", 680.0)
        .variant("rhai", 750.0)
        .build();
    let tree: Value = serde_json::from_str(&plain.to_json()).unwrap();
    let mut old = Vec::new();
    texts(&tree, &mut old);
    let evil = [EVIL, MARKED].into_iter().flat_map(|more| {
        let changes = [
            |more: &str, old: &str| format!("{more}{old}"),
            |more: &str, old: &str| format!("{old}{more}"),
        ];
        changes.map(|change| changed(&tree, &old, |old| change(more, old)))
    });
    (plain, evil.collect())
}

/// A recording with changed texts, except texts that are keywords of the format.
fn changed(tree: &Value, texts: &[String], change: impl Fn(&str) -> String) -> Recording {
    let mut tree = tree.clone();
    let mut count = 0;
    for old in texts {
        let mut next = tree.clone();
        replace(&mut next, old, &change(old));
        if Recording::from_json(&next.to_string()).is_ok() {
            tree = next;
            count += 1;
        }
    }
    assert!(count > 20, "{count} texts");
    Recording::from_json(&tree.to_string()).unwrap()
}

/// Collects all distinct texts.
fn texts(tree: &Value, found: &mut Vec<String>) {
    match tree {
        Value::String(text) if !found.contains(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

/// Replaces every occurrence of a text, because a variant is named in several places.
fn replace(tree: &mut Value, old: &str, new: &str) {
    match tree {
        Value::String(text) if text == old => new.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, old, new)),
        Value::Object(members) => members.values_mut().for_each(|it| replace(it, old, new)),
        _ => {}
    }
}

fn rendered(recording: &Recording, render: fn(&Recording, &Summary) -> String) -> String {
    let gates = ["p99 overhead < 1ms".parse().unwrap()];
    let summary = Summary::of(recording).judged(&gates, Undecided::Fails);
    render(recording, &summary)
}

/// A character that a terminal obeys instead of showing it.
fn obeyed(text: &str) -> Option<char> {
    let is_turning = |it: char| matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_obeyed = |it: &char| it.is_control() && !matches!(it, '\n' | '\t') || is_turning(*it);
    text.chars().find(is_obeyed)
}

/// Checks a rule on every recording with a foreign text.
fn each(
    render: fn(&Recording, &Summary) -> String,
    check: impl Fn(&str, &str) -> Result<(), String>,
) {
    let (plain, evil) = &*RECORDINGS;
    let plain = rendered(plain, render);
    for recording in evil {
        let out = rendered(recording, render);
        let checked = check(&out, &plain);
        checked.unwrap_or_else(|wrong| panic!("{wrong} in\n{out}"));
    }
}

fn claim(holds: bool, wrong: &str) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| wrong.to_owned())
}

/// Checks that lines of Markdown keep their meaning. Tables keep their columns, and code stays code.
fn is_text_in_markdown(out: &str, plain: &str) -> Result<(), String> {
    claim(obeyed(out).is_none(), "a control character")?;
    let fences = |text: &str| text.lines().filter(|line| line.starts_with("```")).count();
    claim(fences(out) == fences(plain), "a fence")?;
    let mut comments = out.lines().filter(|line| line.starts_with("<!--"));
    let ends_once = |line: &str| line.ends_with("-->") && line.matches("--").count() == 2;
    claim(comments.all(ends_once), "the end of a comment")?;
    let (mut columns, mut is_code) = (None, false);
    // Text in an HTML comment is not an element.
    for line in out.lines().filter(|line| !line.starts_with("<!--")) {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        let outside: String = line.split('`').step_by(2).collect();
        claim(!outside.contains("<script"), "an element")?;
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let found = line.replace("\\|", "").matches('|').count();
        claim(*columns.get_or_insert(found) == found, "a column")?;
    }
    Ok(())
}

#[test]
fn markdown_holds_texts_of_others_as_text() {
    each(crate::markdown, is_text_in_markdown);
}

#[test]
fn comments_hold_texts_of_others_as_text() {
    each(crate::comment, is_text_in_markdown);
}

#[test]
fn spreadsheets_get_no_formula() {
    each(crate::csv, |out, plain| {
        claim(
            obeyed(&out.replace("\r\n", "\n")).is_none(),
            "a control character",
        )?;
        let mut reader = csv::ReaderBuilder::new().from_reader(out.as_bytes());
        let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
        claim(lines.len() == plain.lines().count() - 1, "another line")?;
        let mut fields = lines.iter().flatten();
        let is_formula = |field: &str| field.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let is_number = |field: &str| field.parse::<f64>().is_ok();
        claim(
            fields.all(|it| !is_formula(it) || is_number(it)),
            "a formula",
        )
    });
}

#[test]
fn pages_hold_texts_of_others_as_text() {
    each(crate::html, |out, plain| {
        claim(obeyed(out).is_none(), "a control character")?;
        let scripts = |text: &str| text.matches("<script").count();
        claim(scripts(out) == scripts(plain), "an element")
    });
}

#[test]
fn junit_stays_a_document() {
    each(crate::junit, |out, _| {
        claim(obeyed(out).is_none(), "a control character")?;
        let parsed = roxmltree::Document::parse(out);
        parsed.map(|_| ()).map_err(|error| error.to_string())
    });
}
