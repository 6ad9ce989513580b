//! The protocol of the target: the keys for HTTP/2, and the keys about certificates.

use model::{Load, Version};
use yaml_with_places::{At, Finding, Place};

use crate::experiment::{ClientFiles, LabTrust, Protocol, Setup};
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
    let switch = own.and_then(|own| own.http2.as_ref());
    match is_on(switch.or(file.http2.as_ref())) {
        true => Version::Http2 {
            streams: file
                .streams
                .as_ref()
                .map_or(default::STREAMS, |streams| streams.value),
        },
        false => Version::Http1,
    }
}

/// Reports `streams` without HTTP/2, and variants of a closed loop with different numbers of requests under
/// way.
pub(crate) fn check_versions(
    file: &LoadFile,
    load: &Load,
    variants: &[Draft<'_>],
    reading: &mut Reading<'_>,
) {
    let Some(streams) = &file.streams else {
        return;
    };
    let is_http2 = |own: Option<&SentFile>| version(file, own) != Version::Http1;
    let is_used = is_on(file.http2.as_ref()) || variants.iter().any(|it| is_http2(it.sent));
    if !is_used && !reading.has_gaps {
        report(
            reading,
            streams.place,
            "`streams` without `http2: on`",
            "an HTTP/1.1 connection carries one request at a time. For more requests at once, give \
             more connections",
        );
    }
    let switch = |variant: &Draft<'_>| variant.sent.and_then(|own| own.http2.clone());
    // Without streams of their own, the connections of all variants have equally many requests under way.
    if streams.value == 1 || load.is_open() || !is_used {
        return;
    }
    for own in variants.iter().filter_map(switch) {
        reading.findings.add(
            Finding::new(
                own.place,
                "a variant of a closed loop cannot have its own `http2` with `streams`",
            )
            .related(streams.place, "`streams` is given here")
            .help(format!(
                "over HTTP/2, each connection has {} requests under way, and over HTTP/1.1 one. Remove `streams`, or give the load a `rate`",
                streams.value
            )),
        );
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
