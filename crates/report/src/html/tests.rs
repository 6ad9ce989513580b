use super::*;
use crate::recording::{InvalidKind, VariantStatus};
use crate::sample::Sample;

fn page(recording: &Recording) -> String {
    html(recording, &Summary::of(recording))
}

#[test]
fn the_page_loads_nothing() {
    let out = page(&Sample::graphql_server());
    for word in [
        "http://", "https://", "<script", "<img", "@import", "url(", "src=",
    ] {
        let hits = out.matches(word).count();
        assert_eq!(hits, 0, "`{word}` in the page");
    }
}

#[test]
fn what_the_user_wrote_is_text_and_never_markup() {
    let evil = "<script>alert(1)</script>\"'&";
    let mut recording = Sample::closed()
        .variant("a", 700.0)
        .variant(evil, 800.0)
        .build();
    let lab = recording.lab.as_mut().unwrap();
    lab.name = evil.to_owned();
    lab.question = evil.to_owned();
    lab.files[0].path = evil.to_owned();
    lab.files[0].text = Some(evil.to_owned());
    recording.command.push(evil.to_owned());
    recording.environment.cpu_model = Some(evil.to_owned());
    recording.variants[1].systems[0].version = Some(evil.to_owned());
    recording.variants[0].status = VariantStatus::Invalid {
        kind: InvalidKind::Crashed,
        reason: evil.to_owned(),
    };
    let out = page(&recording);
    assert!(!out.contains("<script>"));
    assert!(out.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
}

#[test]
fn every_opened_element_is_closed() {
    let mut recording = Sample::graphql_server();
    recording.variants[2].proof = None;
    let out = page(&recording);
    let open_only = ["meta", "link", "line", "circle", "!doctype"];
    let mut stack: Vec<&str> = Vec::new();
    let style_end = out.find("</style>").unwrap();
    for piece in out[style_end + 8..].split('<').skip(1) {
        let tag = piece.split('>').next().unwrap();
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        if tag.starts_with('/') {
            let opened = stack.pop();
            if !["head", "html"].contains(&name) {
                assert_eq!(opened, Some(name), "</{name}>");
            }
        } else if !open_only.contains(&name) && !tag.ends_with('/') {
            stack.push(name);
        }
    }
    assert!(stack.is_empty(), "{stack:?}");
}

#[test]
fn a_row_without_a_number_shows_why() {
    let mut recording = Sample::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording.rounds.retain(|round| round.variant == "a");
    recording.variants[1].status = VariantStatus::Invalid {
        kind: InvalidKind::NotReady,
        reason: "`server` did not answer within 10 s".to_owned(),
    };
    let out = page(&recording);
    let row = out
        .lines()
        .find(|line| line.starts_with("<tr class=\"invalid\">"))
        .unwrap();
    assert!(row.contains("invalid: <code>server</code> did not answer within 10 s"));
    assert!(!row.contains(|character: char| character.is_ascii_digit()
        && character != '1'
        && character != '0'));
    assert!(!out.contains("<svg"));
}

#[test]
fn an_interrupted_run_is_said_at_the_top() {
    let mut recording = Sample::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording.interrupted = true;
    recording.rounds.truncate(8);
    let out = page(&recording);
    let alarm = out
        .find("INTERRUPTED: 4 of 8 rounds were measured")
        .unwrap();
    assert!(alarm < out.find("<table").unwrap());
}

#[test]
fn the_picture_says_its_figures_as_text() {
    let summary = Summary::of(
        &Sample::open()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build(),
    );
    let svg = forest::forest(&summary, Metric::Mean).unwrap();
    let figure = cell::difference(&summary.variants[1], Metric::Mean).unwrap();
    assert_eq!(
        svg.matches(&figure).count(),
        2,
        "in <desc> and beside the line"
    );
    assert!(svg.contains("class=\"worse\""));
}

#[test]
fn too_few_rounds_for_an_interval_give_no_picture() {
    let sample = Sample::open()
        .rounds(5)
        .variant("a", 700.0)
        .variant("b", 800.0);
    let summary = Summary::of(&sample.build());
    assert_eq!(forest::forest(&summary, Metric::Mean), None);
}
