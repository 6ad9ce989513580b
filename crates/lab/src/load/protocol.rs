//! The protocol of the target: the keys for HTTP/2 and HTTP/3, and the keys about certificates.

use std::sync::Arc;

use grpc_schema::CallSchema;
use model::{GrpcCall, Load, Resumption, Version};
use yaml_with_places::{At, Finding, Place};

use crate::experiment::{ClientFiles, LabTrust, Protocol, RequestTemplate, Setup};
use crate::reading::Reading;
use crate::requests::files;
use crate::variants::Draft;
use crate::wire::{ClientFile, LoadFile, SentFile, Switch, default};

/// Checks the keys of `load` about the protocol.
pub(super) fn check(file: &LoadFile, reading: &mut Reading<'_>) -> Protocol {
    let is_trusting = is_on(file.insecure.as_ref());
    let streams = file.streams.as_ref();
    if let Some(streams) = streams.filter(|it| it.value > 1)
        && file.keep_alive == Some(Switch::Off)
    {
        report(
            reading,
            streams.place,
            "`streams` cannot be used with `keep-alive: off`",
            "a connection for one request has one stream. Remove one of the two",
        );
    }
    if let Some(authorities) = file.ca.as_ref().filter(|_| is_trusting) {
        report(
            reading,
            authorities.place,
            "`ca` cannot be used with `insecure: on`",
            "`insecure` accepts any certificate, so authorities have no effect. Remove one of the two",
        );
    }
    let authorities = file.ca.as_ref();
    let authorities = authorities.map(|path| reading.resolve(&path.value, path.place));
    Protocol {
        version: version(file, None),
        trust: match authorities {
            // A lab with both keys was reported. The result is not used.
            _ if is_trusting => LabTrust::SkipVerification,
            Some(authorities) => LabTrust::Authorities(authorities),
            None => LabTrust::System,
        },
        client: file.tls.as_ref().and_then(|tls| client(tls, reading)),
    }
}

/// Returns the files of a client. `None` if one is missing, which is reported.
fn client(file: &At<ClientFile>, reading: &mut Reading<'_>) -> Option<ClientFiles> {
    let resolve = |path: &Option<At<String>>| {
        let At { place, value } = path.as_ref()?;
        Some(reading.resolve(value, *place))
    };
    Some(ClientFiles {
        certificate: resolve(&file.value.certificate)?,
        key: resolve(&file.value.key)?,
    })
}

/// Returns the version of HTTP of a variant. `own` are its own keys.
pub(crate) fn version(file: &LoadFile, own: Option<&SentFile>) -> Version {
    let streams = file.streams.as_ref();
    let streams = streams.map_or(default::STREAMS, |streams| streams.value);
    let own = own.map_or((None, None), |own| (own.http2.as_ref(), own.http3.as_ref()));
    let of_load = (file.http2.as_ref(), file.http3.as_ref());
    // A variant that selects a version replaces the version of the load.
    let selects = is_on(own.0) || is_on(own.1);
    let (http2, http3) = match selects {
        true => own,
        false => (own.0.or(of_load.0), own.1.or(of_load.1)),
    };
    match (is_on(http2), is_on(http3)) {
        (_, true) => Version::Http3 { streams },
        (true, false) => Version::Http2 { streams },
        (false, false) => Version::Http1,
    }
}

/// Returns the use of tickets of a variant. `own` are its own keys.
pub(crate) fn resumption(file: &LoadFile, own: Option<&SentFile>) -> Resumption {
    let own = own.and_then(|own| own.resumption.as_ref());
    let entry = own.or(file.resumption.as_ref());
    entry.map_or(Resumption::Off, |entry| entry.value.meaning())
}

/// Returns the switches of a variant.
fn switches<'a>(variant: &'a Draft<'_>) -> impl Iterator<Item = (&'static str, &'a At<Switch>)> {
    let own = variant.sent;
    let http2 = own.and_then(|own| own.http2.as_ref());
    let http3 = own.and_then(|own| own.http3.as_ref());
    let http2 = http2.map(|it| ("http2", it));
    http2.into_iter().chain(http3.map(|it| ("http3", it)))
}

/// Reports two versions at once, `streams` without HTTP/2 or HTTP/3, and variants of a closed loop with
/// different numbers of requests under way.
pub(crate) fn check_versions(
    file: &LoadFile,
    load: &Load,
    variants: &[Draft<'_>],
    reading: &mut Reading<'_>,
) {
    check_one_version(file, variants, reading);
    let Some(streams) = &file.streams else {
        return;
    };
    let own_version = |variant: &Draft<'_>| version(file, variant.sent);
    let of_load = version(file, None);
    let is_used =
        of_load != Version::Http1 || variants.iter().any(|it| own_version(it) != Version::Http1);
    if !is_used && !reading.has_gaps {
        report(
            reading,
            streams.place,
            "`streams` without `http2: on` or `http3: on`",
            "an HTTP/1.1 connection carries one request at a time. For more requests at once, give \
             more connections",
        );
    }
    // Without streams of their own, the connections of all variants have equally many requests under way.
    if streams.value == 1 || load.is_open() || !is_used {
        return;
    }
    for variant in variants {
        let own = own_version(variant);
        let Some((key, switch)) = switches(variant).last() else {
            continue;
        };
        if own.streams() == of_load.streams() {
            continue;
        }
        reading.findings.add(
            Finding::new(
                switch.place,
                format!("a variant of a closed loop cannot have its own `{key}` with `streams`"),
            )
            .related(streams.place, "`streams` is given here")
            .help(format!(
                "over HTTP/2 and HTTP/3, each connection has {} requests under way, and over HTTP/1.1 one. Remove `streams`, or give the load a `rate`",
                streams.value
            )),
        );
    }
}

/// Reports places with two versions at once.
fn check_one_version(file: &LoadFile, variants: &[Draft<'_>], reading: &mut Reading<'_>) {
    let own = variants.iter().filter_map(|variant| variant.sent);
    let own = own.map(|own| (own.http2.as_ref(), own.http3.as_ref()));
    let all = own.chain([(file.http2.as_ref(), file.http3.as_ref())]);
    let both = all.filter(|(http2, http3)| is_on(*http2) && is_on(*http3));
    let places: Vec<Place> = both.filter_map(|(_, http3)| Some(http3?.place)).collect();
    for place in places {
        report(
            reading,
            place,
            "`http3: on` cannot be used with `http2: on`",
            "a load has one version of HTTP. Remove one of the two. To compare versions, give each \
             variant its own",
        );
    }
}

/// Reports what a variant cannot send over the version of HTTP of its target.
pub(crate) fn check_carried(
    target: &Setup,
    requests: &[RequestTemplate],
    place: Place,
    reading: &mut Reading<'_>,
) {
    let needs_http2 = |call: &GrpcCall| call.protocol.needs_http2();
    let is_call = |request: &RequestTemplate| request.grpc.as_ref().is_some_and(needs_http2);
    check_calls(target, requests, place, reading);
    let mut conversations = requests
        .iter()
        .filter(|request| request.websocket.is_some());
    if matches!(target.http, Version::Http2 { .. }) && conversations.next().is_some() {
        let help = match requests.iter().any(is_call) {
            true => "a load has one version of HTTP, and gRPC needs HTTP/2. Write two labs",
            false => "remove `http2: on`",
        };
        let message = "a conversation over WebSocket needs HTTP/1.1";
        report(reading, place, message, help);
    }
    check_resumption(target, place, reading);
    if !target.http.is_http3() {
        return;
    }
    let is_upgrade = |(name, _): &(String, _)| name.eq_ignore_ascii_case("upgrade");
    let upgrades = |request: &RequestTemplate| request.headers.iter().any(is_upgrade);
    let name = &target.system;
    for (is_wrong, message, help) in [
        (
            !target.is_encrypted,
            format!("HTTP/3 is always encrypted, but `{name}` is not"),
            "write `scheme: https` in the system, or remove `http3: on`",
        ),
        (
            target.is_on_socket(),
            format!("HTTP/3 has no Unix sockets, but `{name}` listens on one"),
            "give the system a port, or remove `http3: on`",
        ),
        (
            requests.iter().any(|request| request.websocket.is_some()),
            "a conversation over WebSocket needs HTTP/1.1".to_owned(),
            "remove `http3: on`",
        ),
        (
            requests.iter().any(upgrades),
            "there is no other protocol after HTTP/3, but a request has the header `Upgrade`"
                .to_owned(),
            "remove the header, or remove `http3: on`",
        ),
    ] {
        if is_wrong {
            report(reading, place, &message, help);
        }
    }
}

/// Reports calls that only HTTP/2 can carry.
fn check_calls(
    target: &Setup,
    requests: &[RequestTemplate],
    place: Place,
    reading: &mut Reading<'_>,
) {
    if matches!(target.http, Version::Http2 { .. }) {
        return;
    }
    let help = match target.http {
        Version::Http3 { .. } => "write `http2: on` instead of `http3: on`",
        _ => "write `http2: on` below `load`",
    };
    let calls = requests.iter().filter_map(|request| request.grpc.as_ref());
    let needs_http2 = |call: &&GrpcCall| call.protocol.needs_http2();
    if calls.clone().any(|call| needs_http2(&call)) {
        report(reading, place, "a gRPC call needs HTTP/2", help);
    }
    for call in calls.filter(|call| !needs_http2(call)) {
        let (name, word) = (&call.method, call.protocol.word());
        if target.http == Version::Http1 && has_two_streams(call) {
            let wrong = format!(
                "`{name}` has a stream of messages and a stream of answers, and `{word}` needs HTTP/2 for both"
            );
            report(reading, place, &wrong, help);
        } else if call.is_spaced() {
            let wrong = format!("messages of `{word}` with times or replies need HTTP/2");
            report(reading, place, &wrong, help);
        }
    }
}

/// True if a method has a stream in both directions. Without descriptors, only the load can refuse it.
fn has_two_streams(call: &GrpcCall) -> bool {
    let read = |set: &Arc<[u8]>| CallSchema::read(set).and_then(|it| it.method(&call.method));
    let method = call.set().and_then(|set| read(set).ok());
    method.is_some_and(|method| method.takes_several() && method.answers_several())
}

/// Reports tickets without TLS, and 0-RTT without HTTP/3.
fn check_resumption(target: &Setup, place: Place, reading: &mut Reading<'_>) {
    let name = &target.system;
    if target.resumption != Resumption::Off && !target.is_encrypted {
        let message = format!("`resumption` needs TLS, but `{name}` has none");
        let help = "write `scheme: https` in the system, or remove `resumption`";
        report(reading, place, &message, help);
    } else if target.resumption == Resumption::EarlyData && !target.http.is_http3() {
        let message = format!(
            "`resumption: 0-rtt` needs HTTP/3, but `{name}` receives {}",
            target.http.name()
        );
        let help = "write `http3: on`, or `resumption: on` without 0-RTT";
        report(reading, place, &message, help);
    }
}

/// True if a variant's connections are used for more than one request.
pub(crate) fn keeps_connections(
    file: &LoadFile,
    variant: &Draft<'_>,
    reading: &mut Reading<'_>,
) -> bool {
    let own = variant.sent.and_then(|sent| sent.keep_alive);
    let streams = file.streams.as_ref().filter(|it| it.value > 1);
    if let (Some(Switch::Off), Some(streams)) = (own, streams) {
        reading.findings.add(
            Finding::new(
                variant.place,
                "`keep-alive: off` cannot be used with `streams`",
            )
            .related(streams.place, "`streams` is given here")
            .help("a connection for one request has one stream. Remove one of the two"),
        );
    }
    // On by default, as in HTTP/1.1.
    own.or(file.keep_alive) != Some(Switch::Off)
}

/// Reports a file of authorities that does not exist, if no build of a system can make it.
pub(crate) fn check_authorities<'a>(
    file: &LoadFile,
    mut setups: impl Iterator<Item = &'a Setup>,
    reading: &mut Reading<'_>,
) {
    let Some(authorities) = &file.ca else {
        return;
    };
    if !setups.any(|setup| !setup.build.is_empty()) {
        let path = reading.resolve(&authorities.value, authorities.place);
        files::bytes(&path, authorities.place, reading);
    }
}

/// Reports keys about the certificate of a target without TLS.
pub(crate) fn check_certificate(file: &LoadFile, target: &str, reading: &mut Reading<'_>) {
    let trusting = file.insecure.as_ref().map(|it| ("insecure", it.place));
    let authorities = file.ca.as_ref().map(|it| ("ca", it.place));
    let client = file.tls.as_ref().map(|it| ("tls", it.place));
    for (key, place) in trusting.into_iter().chain(authorities).chain(client) {
        let message = format!("`{key}` needs a certificate, but `{target}` has none");
        let help = "write `scheme: https` in the system, or remove this key";
        report(reading, place, &message, help);
    }
}

fn is_on(switch: Option<&At<Switch>>) -> bool {
    switch.is_some_and(|switch| switch.value == Switch::On)
}

fn report(reading: &mut Reading<'_>, place: Place, message: &str, help: &str) {
    reading
        .findings
        .add(Finding::new(place, message).help(help));
}
