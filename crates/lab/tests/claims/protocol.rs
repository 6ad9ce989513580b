//! Claims about the protocol of the target.

use lab::Protocol;
use model::{Trust, Version};

use crate::{Folder, changed, lab};

const TLS: (&str, &str) = ("stack: a}", "stack: a}\n    scheme: https");

#[test]
fn nothing_said_is_http_1_in_the_clear_and_a_quarter_of_the_time_for_spinning() {
    let lab = lab(&[]);
    let expected = Protocol {
        version: Version::Http1,
        trust: Trust::System,
    };
    assert_eq!(lab.protocol, expected);
    assert_eq!(lab.spin_percent, 25);
    assert!(!lab.baseline.systems()[0].is_encrypted);
}

#[test]
fn what_is_said_about_the_protocol_is_kept() {
    let keys = "rate: 10/s\n  http2: on\n  streams: 8\n  ca: ca.pem\n  spin: 0";
    let text = changed(&[("connections: 10", keys), TLS]);
    let folder = Folder::with_lab(text).file("labs/ca.pem", "who vouches");
    let lab = folder.parse().unwrap();
    let expected = Protocol {
        version: Version::Http2 { streams: 8 },
        trust: Trust::Authorities(b"who vouches".to_vec()),
    };
    assert_eq!(lab.protocol, expected);
    assert_eq!(lab.spin_percent, 0);
    assert!(lab.baseline.systems()[0].is_encrypted);
}

#[test]
fn a_url_begins_with_the_scheme_of_its_system() {
    let lab = lab(&[(
        "stack: a}",
        "stack: a}\n    scheme: https\n    env: {ME: '{{url}}'}",
    )]);
    let (_, me) = &lab.baseline.systems()[0].env[0];
    let address = |_: &str| Some(std::net::SocketAddr::from(([127, 0, 0, 1], 4000)).into());
    assert_eq!(me.render(&address).as_deref(), Ok("https://127.0.0.1:4000"));
}

#[test]
fn keys_that_do_not_go_together_are_mistakes_with_a_way_out() {
    for (keys, words, help) in [
        (
            "streams: 4",
            "`streams` without `http2: on`",
            "give more connections",
        ),
        (
            "http2: on\n  streams: 4\n  keep-alive: off",
            "`streams` cannot be used with `keep-alive: off`",
            "Remove one of the two",
        ),
        (
            "insecure: on",
            "`insecure` needs a certificate, but `server` has none",
            "`scheme: https`",
        ),
        (
            "ca: ca.pem",
            "`ca` needs a certificate, but `server` has none",
            "`scheme: https`",
        ),
        (
            "spin: 5",
            "`spin` cannot be used with `connections`",
            "no due times",
        ),
        ("spin: 101", "found `101`", "at most 100"),
    ] {
        let text = changed(&[("connections: 10", &format!("connections: 10\n  {keys}"))]);
        let folder = Folder::with_lab(text).file("labs/ca.pem", "");
        let shown = folder.mistakes();
        for expected in [words, help, "labs/x.yaml:"] {
            assert!(shown.contains(expected), "{expected}\n{shown}");
        }
    }
}

#[test]
fn an_authority_is_read_and_is_no_company_for_trust_in_anybody() {
    let text = changed(&[("connections: 10", "connections: 10\n  ca: no.pem"), TLS]);
    let shown = Folder::with_lab(text).mistakes();
    assert!(shown.contains("cannot read `labs/no.pem`"), "{shown}");
    let keys = "connections: 10\n  ca: ca.pem\n  insecure: on";
    let text = changed(&[("connections: 10", keys), TLS]);
    let shown = Folder::with_lab(text).file("labs/ca.pem", "").mistakes();
    assert!(
        shown.contains("`ca` cannot be used with `insecure: on`"),
        "{shown}"
    );
}
