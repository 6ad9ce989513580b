//! Labs over TLS, HTTP/2 and HTTP/3, with the same proofs, scenarios and records as over plain HTTP/1.1.

use e2e::{Run, World, modern};

/// Flags of the server, its scheme, keys of `load`, and the protocol's name in the recording.
struct Speech {
    flags: &'static str,
    scheme: &'static str,
    load: &'static str,
    said: [&'static str; 2],
}

const SPEECHES: [Speech; 6] = [
    Speech {
        flags: "--http2",
        scheme: "http",
        load: "  http2: on\n  streams: 4\n",
        said: ["2", "off"],
    },
    Speech {
        flags: "--tls .",
        scheme: "https",
        load: "  ca: certificate.pem\n",
        said: ["1.1", "verified"],
    },
    Speech {
        flags: "--tls . --http2",
        scheme: "https",
        load: "  http2: on\n  ca: certificate.pem\n",
        said: ["2", "verified"],
    },
    Speech {
        flags: "--tls .",
        scheme: "https",
        load: "  insecure: on\n",
        said: ["1.1", "unverified"],
    },
    Speech {
        flags: "--tls . --mtls",
        scheme: "https",
        load: "  ca: certificate.pem\n  tls: {certificate: certificate.pem, key: key.pem}\n",
        said: ["1.1", "verified"],
    },
    Speech {
        flags: "--tls . --http3",
        scheme: "https",
        load: "  http3: on\n  streams: 4\n  ca: certificate.pem\n",
        said: ["3", "verified"],
    },
];

const SCENARIO: &str = "  data: {ranges: {page: 1..9}}
  scenario:
    - {name: log in, path: /login/ann, capture: {token: {json: /token}}}
    - {name: look, pause: 2ms, path: '/{{token}}/{{page}}'}
";

fn lab(speech: &Speech, load: &str) -> World {
    let identity = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let identity = identity.expect("a key can be made");
    World::of_lab(&format!(
        "question: what does a second server cost?\n\
         load:\n{load}{keys}\
         rounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    scheme: {scheme}\n    folder: .\n    \
         run: {program} --listen {{{{addr}}}} {flags}\n    ready: {{path: /health}}\n\
         proof:\n  - {{name: all arrive, ask: '{{{{server.url}}}}/seen', json: /requests, exactly-per-request: 1}}\n\
         baseline: {{name: a}}\nvariants: [{{name: b}}]\n",
        keys = speech.load,
        scheme = speech.scheme,
        flags = speech.flags,
        program = modern().display(),
    ))
    .file("certificate.pem", &identity.cert.pem())
    .file("key.pem", &identity.signing_key.serialize_pem())
}

fn check(run: &Run, speech: &Speech, requests: u64) {
    let recording = run.recording();
    let protocol = &recording["load"]["protocol"];
    assert_eq!(protocol["http"], speech.said[0], "{recording:#}");
    assert_eq!(protocol["tls"], speech.said[1]);
    for round in recording["rounds"].as_array().expect("rounds") {
        assert_eq!(round["outcomes"]["passed"], requests, "{round:#}");
        let seen = format!("{requests} in {requests} requests");
        assert_eq!(round["proofs"][0]["seen"], seen.as_str());
    }
}

#[test]
fn a_lab_speaks_what_its_target_speaks_in_probes_proofs_and_load() {
    for speech in &SPEECHES {
        let run = lab(speech, "  connections: 2\n  count: 40\n").run().ran();
        check(&run, speech, 40);
    }
}

#[test]
fn a_scenario_is_the_same_over_each_protocol_and_in_both_loops() {
    for speech in &SPEECHES {
        for load in [
            "  connections: 2\n  count: 20\n",
            "  rate: 400/s\n  count: 20\n",
        ] {
            let run = lab(speech, &format!("{load}{SCENARIO}")).run().ran();
            check(&run, speech, 40);
            let recording = run.recording();
            let round = &recording["rounds"][1];
            assert_eq!(round["iterations"]["completed"], 20, "{round:#}");
            assert_eq!(round["steps"][1]["outcomes"]["passed"], 20);
        }
    }
}

#[test]
fn a_certificate_without_a_trusted_authority_gives_no_number() {
    let speech = Speech {
        load: "",
        ..SPEECHES[1]
    };
    let run = lab(&speech, "  connections: 1\n  count: 4\n").run();
    let _ = run
        .exits_with(3)
        .row("a", &["invalid peer certificate"])
        .no_number_for("a");
}

#[test]
fn a_target_that_does_not_speak_http_2_is_not_ready() {
    let speech = Speech {
        flags: "--tls .",
        ..SPEECHES[2]
    };
    let run = lab(&speech, "  connections: 1\n  count: 4\n").run();
    let _ = run.exits_with(5).row("a", &["not ready"]);
}

#[test]
fn a_variant_over_tls_is_weighed_against_a_baseline_in_the_clear() {
    let identity = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let identity = identity.expect("a key can be made");
    let program = modern().display().to_string();
    let world = World::of_lab(
        "question: what does TLS cost?\n\
         load:\n  connections: 2\n  count: 40\n  ca: certificate.pem\n\
         rounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    settings: {scheme: http, start: clear.sh}\n    scheme: '{{scheme}}'\n    folder: .\n    \
         run: sh {{start}} --listen {{addr}}\n    ready: {path: /health}\n\
         proof:\n  - {name: all arrive, ask: '{{server.url}}/seen', json: /requests, exactly-per-request: 1}\n\
         baseline: {name: clear}\n\
         variants: [{name: secret, with: {server.scheme: https, server.start: tls.sh}}]\n"
    )
    .file("clear.sh", &format!("exec '{program}' \"$@\"\n"))
    .file("tls.sh", &format!("exec '{program}' --tls . \"$@\"\n"))
    .file("certificate.pem", &identity.cert.pem())
    .file("key.pem", &identity.signing_key.serialize_pem());
    let run = world.run().ran();
    let recording = run.recording();
    assert_eq!(recording["load"]["protocol"]["tls"], "off");
    assert!(recording["variants"][0]["protocol"].is_null());
    assert_eq!(recording["variants"][1]["protocol"]["tls"], "verified");
    let rounds = recording["rounds"].as_array().expect("rounds");
    let bytes_out = |variant: &str| {
        let round = rounds.iter().find(|round| round["variant"] == variant);
        let round = round.expect("a round of each");
        assert_eq!(round["outcomes"]["passed"], 40, "{round:#}");
        assert_eq!(round["proofs"][0]["seen"], "40 in 40 requests");
        round["bytes_out"].as_u64().expect("bytes")
    };
    assert!(bytes_out("secret") > bytes_out("clear"), "{recording:#}");
}

#[test]
fn a_target_that_requires_a_certificate_of_the_client_gives_none_a_number() {
    let speech = Speech {
        load: "  ca: certificate.pem\n",
        ..SPEECHES[4]
    };
    let run = lab(&speech, "  connections: 1\n  count: 4\n").run();
    let _ = run.exits_with(5).row("a", &["not ready"]);
}

#[test]
fn a_variant_over_http_2_is_weighed_against_a_baseline_over_http_1() {
    let program = modern().display().to_string();
    let world = World::of_lab(
        "question: what does HTTP/2 cost?\n\
         load:\n  rate: 200/s\n  count: 40\n\
         rounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    settings: {start: one.sh}\n    folder: .\n    \
         run: sh {{start}} --listen {{addr}}\n    ready: {path: /health}\n\
         proof:\n  - {name: all arrive, ask: '{{server.url}}/seen', json: /requests, exactly-per-request: 1}\n\
         baseline: {name: one}\n\
         variants: [{name: two, with: {server.start: two.sh}, load: {http2: on}}]\n",
    )
    .file("one.sh", &format!("exec '{program}' \"$@\"\n"))
    .file("two.sh", &format!("exec '{program}' --http2 \"$@\"\n"));
    let run = world.run().ran();
    let recording = run.recording();
    assert_eq!(recording["load"]["protocol"]["http"], "1.1");
    assert_eq!(recording["variants"][1]["protocol"]["http"], "2");
    for round in recording["rounds"].as_array().expect("rounds") {
        assert_eq!(round["outcomes"]["passed"], 40, "{round:#}");
    }
}
