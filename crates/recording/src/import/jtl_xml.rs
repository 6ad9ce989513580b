//! Reader of JMeter's results as XML, element by element, because such files are large.

use quick_xml::Reader as Xml;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

use super::samples::{Hit, Hits, TRANSACTION};
use super::tables::JMETER_FAILURES;
use super::{Document, ForeignRun, Missing, Reader, Reports};

const SHAPE: &str = "XML results of JMeter";

pub(super) const XML: Reader = Reader {
    shape: SHAPE,
    reports: Reports::Lines(&["<testResults"]),
    recognizes: |document| {
        let text = document.text.trim_start();
        let mut start = text.lines().take(20);
        text.starts_with('<') && start.any(|line| line.contains("<testResults"))
    },
    read,
};

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let mut xml = Xml::from_str(document.text);
    let mut hits = Hits::default();
    let (mut depth, mut is_complete) = (0_usize, false);
    loop {
        let event = xml.read_event().map_err(|error| {
            Missing(format!(
                "its XML is broken at byte {}: {error}",
                xml.error_position()
            ))
        })?;
        // Samples inside a sample are its parts, such as redirects. The sample contains their time.
        match event {
            Event::Start(element) => {
                if depth == 1 {
                    add(&element, &mut hits)?;
                }
                depth += 1;
            }
            Event::Empty(element) if depth == 1 => add(&element, &mut hits)?,
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                is_complete |= depth == 0;
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !is_complete {
        return Err(Missing("`testResults` has no end".to_owned()));
    }
    let mut run = hits.run(SHAPE, JMETER_FAILURES)?.closed();
    run.note("JMeter keeps latency in whole milliseconds");
    Ok(vec![run])
}

/// Adds a sample: `<httpSample t="12" ts="1700000000000" s="true" lb="GET a" rc="200"/>`.
fn add(element: &BytesStart<'_>, hits: &mut Hits) -> Result<(), Missing> {
    if !["httpSample", "sample"]
        .iter()
        .any(|name| element.name().as_ref() == *name)
    {
        return Ok(());
    }
    let (mut name, mut message) = (String::new(), String::new());
    let (mut took, mut sent, mut is_success) = (None, None, None);
    for attribute in element.attributes() {
        let attribute =
            attribute.map_err(|error| Missing(format!("a sample is broken: {error}")))?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| Missing(format!("a sample is broken: {error}")))?;
        match attribute.key.as_ref() {
            "t" => took = value.parse::<f64>().ok(),
            "ts" => sent = value.parse::<f64>().ok(),
            "s" => is_success = Some(value == "true"),
            "lb" => name = value.into_owned(),
            "rm" => message = value.into_owned(),
            _ => {}
        }
    }
    let took = took.ok_or_else(|| Missing(format!("a sample `{name}` has no time `t`")))?;
    hits.add(&Hit {
        name: &name,
        sent_us: sent.map(|ms| ms * 1e3),
        latency_us: took * 1e3,
        is_success,
        is_repeat: message.starts_with(TRANSACTION),
    });
    Ok(())
}
