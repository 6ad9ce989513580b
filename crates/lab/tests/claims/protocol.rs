//! Claims about the protocol of the target.

use lab::{ClientFiles, LabTrust, Protocol};
use model::{Resumption, Version};

use crate::{Folder, changed, check, lab};

const TLS: (&str, &str) = ("stack: a}", "stack: a}\n    scheme: https");

#[test]
fn nothing_said_is_http_1_in_the_clear_and_a_quarter_of_the_time_for_spinning() {
    let lab = lab(&[]);
    let expected = Protocol {
        version: Version::Http1,
        trust: LabTrust::System,
        client: None,
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
        trust: LabTrust::Authorities("labs/ca.pem".into()),
        client: None,
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
            "`streams` without `http2: on` or `http3: on`",
            "give more connections",
        ),
        (
            "http2: on\n  http3: on",
            "`http3: on` cannot be used with `http2: on`",
            "Remove one of the two",
        ),
        (
            "http3: on",
            "HTTP/3 is always encrypted, but `server` is not",
            "`scheme: https`",
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
            "tls: {certificate: a.pem, key: b.pem}",
            "`tls` needs a certificate, but `server` has none",
            "`scheme: https`",
        ),
        (
            "tls: {certificate: a.pem}",
            "`key` is missing",
            "labs/x.yaml",
        ),
        (
            "resumption: on",
            "`resumption` needs TLS, but `server` has none",
            "`scheme: https`",
        ),
        ("resumption: maybe", "found `maybe`", "`0-rtt`"),
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
fn a_variant_has_its_own_use_of_tickets_and_0_rtt_needs_http_3() {
    let chosen = |load: &str, variant: &str| {
        let lab = lab(&[
            ("connections: 10", &format!("connections: 10\n  {load}")),
            (
                "{server.stack: b}}",
                &format!("{{server.stack: b}}, load: {{{variant}}}}}"),
            ),
            TLS,
        ]);
        [&lab.baseline, &lab.variants[0]].map(|it| it.systems()[0].resumption)
    };
    let (off, on, early) = (Resumption::Off, Resumption::On, Resumption::EarlyData);
    assert_eq!(chosen("http3: on", "path: /b"), [off, off]);
    assert_eq!(chosen("resumption: on", "path: /b"), [on, on]);
    assert_eq!(chosen("resumption: on", "resumption: off"), [on, off]);
    assert_eq!(chosen("http3: on", "resumption: 0-rtt"), [off, early]);
    let keys = "connections: 10\n  http2: on\n  resumption: 0-rtt";
    let shown = Folder::with_lab(changed(&[("connections: 10", keys), TLS])).mistakes();
    let words = "`resumption: 0-rtt` needs HTTP/3, but `server` receives HTTP/2";
    assert!(shown.contains(words), "{shown}");
    assert!(shown.contains("write `http3: on`"), "{shown}");
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

#[test]
fn a_build_can_make_the_authorities() {
    let text = changed(&[
        ("connections: 10", "connections: 10\n  ca: made.pem"),
        (
            TLS.0,
            "stack: a}\n    scheme: https\n    build: ./certificates.sh",
        ),
    ]);
    let lab = Folder::with_lab(text).parse().unwrap();
    assert_eq!(
        lab.protocol.trust,
        LabTrust::Authorities("labs/made.pem".into())
    );
}

#[test]
fn the_certificate_of_the_load_is_two_paths_that_a_build_can_fill() {
    let keys = "connections: 10\n  tls: {certificate: ../made/client.pem, key: client.key}";
    let lab = Folder::with_lab(changed(&[("connections: 10", keys), TLS])).parse();
    let expected = ClientFiles {
        certificate: "made/client.pem".into(),
        key: "labs/client.key".into(),
    };
    assert_eq!(lab.unwrap().protocol.client, Some(expected));
}

#[test]
fn a_variant_can_have_its_own_version_of_http() {
    let spoken = |load: &str, variant: &str| {
        let lab = lab(&[
            ("connections: 10", load),
            (
                "{server.stack: b}}",
                &format!("{{server.stack: b}}, load: {{{variant}}}}}"),
            ),
        ]);
        [&lab.baseline, &lab.variants[0]].map(|it| it.systems()[0].http)
    };
    let http2 = |streams| Version::Http2 { streams };
    assert_eq!(
        spoken("connections: 10", "http2: on"),
        [Version::Http1, http2(1)]
    );
    assert_eq!(
        spoken("connections: 10\n  http2: on", "http2: off"),
        [http2(1), Version::Http1]
    );
    assert_eq!(
        spoken("rate: 10/s\n  streams: 4", "http2: on"),
        [Version::Http1, http2(4)]
    );
    assert_eq!(
        spoken("connections: 10\n  http2: on\n  streams: 4", "path: /b"),
        [http2(4); 2]
    );
}

#[test]
fn a_variant_that_selects_a_version_replaces_the_version_of_the_load() {
    let spoken = |load: &str, variant: &str| {
        let lab = lab(&[
            ("connections: 10", &format!("connections: 10\n  {load}")),
            (
                "{server.stack: b}}",
                &format!("{{server.stack: b}}, load: {{{variant}}}}}"),
            ),
            TLS,
        ]);
        [&lab.baseline, &lab.variants[0]].map(|it| it.systems()[0].http)
    };
    let [http2, http3] = [Version::Http2 { streams: 1 }, Version::Http3 { streams: 1 }];
    assert_eq!(spoken("http3: on", "path: /b"), [http3; 2]);
    assert_eq!(spoken("http3: on", "http2: on"), [http3, http2]);
    assert_eq!(spoken("http2: on", "http3: on"), [http2, http3]);
    assert_eq!(spoken("http3: on", "http3: off"), [http3, Version::Http1]);
    let four = Version::Http3 { streams: 4 };
    assert_eq!(spoken("http3: on\n  streams: 4", "path: /b"), [four; 2]);
    // Both versions have equally many requests under way.
    let two = Version::Http2 { streams: 4 };
    assert_eq!(spoken("http3: on\n  streams: 4", "http2: on"), [four, two]);
}

#[test]
fn what_http_3_cannot_carry_is_a_mistake_with_a_way_out() {
    for (request, words, help) in [
        (
            "requests: [{path: /, headers: {Upgrade: h2c}}]",
            "a request has the header `Upgrade`",
            "remove the header",
        ),
        (
            "requests: [{path: /, websocket: {messages: [{text: a}]}}]",
            "a conversation over WebSocket needs HTTP/1.1",
            "remove `http3: on`",
        ),
    ] {
        let keys = format!("connections: 10\n  http3: on\n  {request}");
        let shown = check(&[("connections: 10", &keys), TLS]);
        assert!(shown.contains(words), "{shown}");
        assert!(shown.contains(help), "{shown}");
    }
}

#[test]
fn a_closed_loop_has_equally_many_requests_under_way_at_all_variants() {
    let shown = check(&[
        (
            "connections: 10",
            "connections: 10\n  streams: 8\n  http2: on",
        ),
        (
            "{server.stack: b}}",
            "{server.stack: b}, load: {http2: off}}",
        ),
    ]);
    for words in [
        "a variant of a closed loop cannot have its own `http2` with `streams`",
        "each connection has 8 requests under way",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}
