//! Sentences about the requests that variants received, if they differ.

use analysis::summary::{SentSummary, Summary, requests_of};
use recording::{Recording, describe};

/// The title of the table.
pub(crate) const TITLE: &str = "Requests sent";

/// Sentences about differences between the requests. Empty if all variants received equal requests.
pub(crate) fn sentences(summary: &Summary) -> Vec<String> {
    let named = |is_meant: &dyn Fn(&SentSummary) -> bool| {
        let rows = summary.variants.iter();
        let meant = rows.filter(|row| row.sent.as_ref().is_some_and(is_meant));
        meant.map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    let mut sentences = Vec::new();
    let others = named(&|sent| sent.has_other_requests);
    if !others.is_empty() {
        sentences.push(format!(
            "{} {} sent other requests than {}. The difference contains this.",
            describe::named(&others),
            is_or_are(&others),
            summary.against()
        ));
    }
    // Variants with one protocol share a sentence.
    let mut told = Vec::new();
    let protocols = summary.variants.iter();
    for protocol in protocols.filter_map(|row| row.sent.as_ref()?.protocol) {
        if told.contains(&protocol) {
            continue;
        }
        told.push(protocol);
        let spoken = named(&|sent| sent.protocol == Some(protocol));
        sentences.push(format!(
            "{} {} measured over {}, unlike {}. The difference contains the generator's cost of the protocol.",
            describe::named(&spoken),
            is_or_are(&spoken),
            describe::protocol(&protocol),
            summary.against()
        ));
    }
    let batches = named(&|sent| sent.operations_per_request != 1.0);
    if !batches.is_empty() {
        sentences.push(format!(
            "Each request to {} contains several operations. Latency, rate and cost of a request \
             are the figures of all its operations together.",
            describe::named(&batches)
        ));
    }
    sentences
}

fn is_or_are(names: &[String]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}

/// The requests, one per line, including the requests of variants with their own.
pub(crate) fn lines(recording: &Recording) -> Vec<String> {
    let of_all = describe::requests(&recording.load.requests);
    let mut lines: Vec<String> = of_all
        .iter()
        .map(|line| format!("request {line}"))
        .collect();
    for variant in &recording.variants {
        let name = &variant.name;
        if !variant.requests.is_empty() {
            let own = describe::requests(requests_of(recording, variant));
            lines.extend(own.iter().map(|line| format!("request to `{name}` {line}")));
        }
        let prepared = describe::requests(&variant.prepared);
        lines.extend(
            prepared
                .iter()
                .map(|line| format!("once after each start of `{name}` {line}")),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;
    use recording::{HttpText, ProtocolText, TlsText};

    use super::*;
    use crate::{Terminal, full_text, html, json, markdown, text};

    /// `batch` has five operations per request, `secure` uses TLS.
    fn recording() -> Recording {
        let mut recording = SampleRun::side_by_side()
            .variant("plain", 700.0)
            .variant("batch", 900.0)
            .variant("secure", 800.0)
            .build();
        let mut batch = recording.load.requests[0].clone();
        batch.name = "five".to_owned();
        batch.operations = 5;
        batch.body_sha256 = Some("0".repeat(64));
        let mut registered = batch.clone();
        registered.name = "register".to_owned();
        registered.operations = 1;
        recording.variants[1].requests = vec![batch];
        recording.variants[1].prepared = vec![registered];
        recording.variants[2].protocol = Some(ProtocolText {
            http: HttpText::Http1,
            tls: TlsText::Verified,
            streams: 1,
            client_certificate: false,
            resumption: None,
        });
        for round in &mut recording.rounds {
            for system in &mut round.systems {
                // Each request takes 100 us, or five times as much, instead of the sample's random value.
                let each = if round.variant == "batch" { 500 } else { 100 };
                system.cpu_us = Some(each * round.outcomes.completed());
            }
        }
        recording
    }

    #[test]
    fn an_operation_of_a_batch_costs_its_share_of_the_request() {
        let recording = recording();
        let summary = Summary::of(&recording);
        let sent = |name: &str| summary.variant(name).unwrap().sent.clone().unwrap();
        assert_eq!(sent("plain").operations_per_request, 1.0);
        assert_eq!(sent("batch").operations_per_request, 5.0);
        assert_eq!(sent("plain").bytes_sent_per_request, Some(140.0));
        assert_eq!(sent("plain").bytes_received_per_request, Some(160.0));
        assert!(sent("batch").has_other_requests && !sent("secure").has_other_requests);
        assert!(sent("secure").protocol.is_some() && sent("batch").protocol.is_none());
        let cpu = sent("batch").cpu_us_per_operation.unwrap();
        assert!((cpu.value - 100.0).abs() < 1e-6, "{}", cpu.value);
        let difference = cpu.overhead.unwrap().difference;
        assert!(difference.abs() < 1e-6, "{difference}");
    }

    #[test]
    fn every_rendering_says_what_differs_in_what_was_sent() {
        let recording = recording();
        let summary = Summary::of(&recording);
        let terminal = Terminal::plain(200);
        let page = html(&recording, &summary).replace("<code>", "`");
        let page = page.replace("</code>", "`");
        for shown in [
            text(&recording, &summary, terminal),
            full_text(&recording, &summary, terminal),
            markdown(&recording, &summary),
            page,
        ] {
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in [
                "`batch` is sent other requests than `plain`. The difference contains this.",
                "`secure` is measured over HTTP/1.1 over TLS, unlike `plain`. The difference contains",
                "Each request to `batch` contains several operations",
            ] {
                assert!(flat.contains(words), "{words}\n{shown}");
            }
        }
        for shown in [
            full_text(&recording, &summary, terminal),
            markdown(&recording, &summary),
            html(&recording, &summary),
        ] {
            assert!(shown.contains(TITLE), "{shown}");
            assert!(shown.contains("140"), "{shown}");
        }
        let shown = markdown(&recording, &summary);
        for words in [
            "request to `batch` five: ",
            "5 operations",
            "once after each start of `batch` register: ",
        ] {
            assert!(shown.contains(words), "{words}\n{shown}");
        }
        let value: serde_json::Value = serde_json::from_str(&json(&recording, &summary)).unwrap();
        assert_eq!(
            value["summary"]["variants"][1]["sent"]["operations_per_request"],
            5.0
        );
    }

    #[test]
    fn nothing_is_said_where_all_are_sent_the_same() {
        let mut recording = SampleRun::side_by_side()
            .variant("plain", 700.0)
            .variant("other", 900.0)
            .build();
        // A request's name is not sent, so it makes no difference.
        let mut renamed = recording.load.requests[0].clone();
        renamed.name = "renamed".to_owned();
        recording.variants[1].requests = vec![renamed];
        let summary = Summary::of(&recording);
        assert!(crate::tables::sent::table(&summary).rows.is_empty());
        assert!(sentences(&summary).is_empty());
        assert!(!markdown(&recording, &summary).contains(TITLE));
        let text = serde_json::to_string(&recording).unwrap();
        assert!(
            !text.contains("\"operations\"") && !text.contains("\"prepared\""),
            "{text}"
        );
    }
}
