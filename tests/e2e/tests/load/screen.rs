//! The live screen of a load, on a real terminal.

use std::path::Path;

use e2e::{Server, on_a_terminal};

/// Runs a load on a terminal, long enough for the screen to be drawn.
fn screen(flags: &[&str]) -> String {
    let server = Server::start(&[]);
    let url = format!("http://{}/graphql", server.address());
    let all = [&["load", &url, "-r", "40", "-z", "2s"], flags].concat();
    let (text, code) = on_a_terminal(&all, Path::new("."));
    // On a busy machine a check may invalidate the load. These tests do not depend on that.
    assert!(matches!(code, Some(0 | 7)), "{code:?}: {text}");
    text
}

#[test]
fn a_terminal_shows_progress_rate_and_percentiles_and_then_the_answer() {
    let text = screen(&[]);
    for words in ["of 2.0 s", "in flight", "/s so far", "(so far, to 6 %)"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The screen is redrawn in place. The cursor goes up, or to the start of a line that is cleared.
    assert!(text.contains("\u{1b}["), "{text}");
    // The screen is gone before the result is printed, and the result is the usual text.
    let (_, answer) = text.rsplit_once("(so far, to 6 %)").unwrap();
    assert!(answer.contains("Outcomes      passed 80"), "{answer}");
    // No end of the program has to restore the terminal, because it hides no cursor and opens no other
    // screen.
    for mode in ["\u{1b}[?25l", "\u{1b}[?1049h"] {
        assert!(!text.contains(mode), "{text:?}");
    }
}

#[test]
fn without_a_screen_a_terminal_gets_plain_lines() {
    let text = screen(&["--no-tui"]);
    assert!(!text.contains("so far"), "{text}");
    assert!(text.contains("Outcomes      passed 80"), "{text}");
}
