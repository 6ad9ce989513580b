//! The live table of a lab, on a real terminal.

use e2e::{World, on_a_terminal};

use crate::null_servers::NullServers;

fn screen(flags: &[&str]) -> (String, World) {
    let world = NullServers::under("{rate: 50/s, duration: 600ms}")
        .key("order: side-by-side")
        .rounds(7)
        .world();
    let lab = world.lab().display().to_string();
    let all = [&["lab", lab.as_str()], flags].concat();
    let (text, code) = on_a_terminal(&all, world.path());
    // A busy machine may fail a check, and then the verdict is withheld.
    assert!(matches!(code, Some(0 | 7)), "{code:?}: {text}");
    (text, world)
}

#[test]
fn a_terminal_shows_the_variants_round_by_round_without_a_verdict() {
    let (text, _world) = screen(&[]);
    let table = |rounds: &str| {
        let title = format!("so far, {rounds}: ");
        text.find(&title)
            .unwrap_or_else(|| panic!("{title}: {text}"))
    };
    // From the first round on, and with an interval as soon as possible.
    let (first, last) = (table("1 round"), table("6 rounds"));
    assert!(first < last, "{text}");
    assert!(
        text[first..last].contains("(interval from 6 rounds on)"),
        "{text}"
    );
    let six = &text[last..];
    let row = six.lines().find(|line| line.contains("again ")).unwrap();
    match row.contains("no number") {
        // A check withheld it, and the live table shows that like the report.
        true => judged::not_run("others had the processors"),
        false => {
            judged::ran();
            assert!(row.contains('±') || row.contains(" to "), "{row}");
        }
    }
    assert!(text.contains("no verdict before the end"), "{text}");
}

#[test]
fn without_a_screen_a_terminal_gets_plain_lines() {
    let (text, _world) = screen(&["--no-tui"]);
    assert!(!text.contains("so far, "), "{text}");
    assert!(text.contains("round 1/7"), "{text}");
}
