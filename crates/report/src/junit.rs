//! The report in JUnit's XML, which every CI system shows, with a test case for each variant and each gate.

use analysis::gate::{Judgement, Ruling};
use analysis::summary::{Invalidity, Summary, VariantSummary, Verdict};
use model::InvalidKind;
use recording::{Recording, float};

use crate::gates;
use crate::words;
use crate::xml::escape;

pub(crate) struct Case {
    pub(crate) name: String,
    /// Duration of the test case.
    pub(crate) seconds: f64,
    pub(crate) outcome: Outcome,
}

/// Result of a test case.
pub(crate) enum Outcome {
    /// The test passed. The text has details.
    Passed(String),
    /// A limit was not kept. The fields are the kind and the reason.
    Failed(&'static str, String),
    /// The test could not run.
    Error(String),
    /// The test was not needed, or its result may be ignored.
    Skipped(String),
}

/// Renders a summary as JUnit's XML.
///
/// A variant without a number is an error. A variant that was not needed is skipped. A broken or undecided
/// gate is a failure.
pub fn junit(recording: &Recording, summary: &Summary) -> String {
    document(&summary.title, &cases(recording, summary), &summary.gates)
}

/// A test case for each variant.
pub(crate) fn cases(recording: &Recording, summary: &Summary) -> Vec<Case> {
    let case = |row: &VariantSummary| {
        let measured_us: u64 = recording
            .rounds_of(&row.name)
            .map(|round| round.elapsed_us)
            .sum();
        Case {
            name: row.name.clone(),
            seconds: float(measured_us) / 1e6,
            outcome: match &row.verdict {
                Verdict::Invalid {
                    kind: Invalidity::Recorded(InvalidKind::NotNeeded | InvalidKind::Absent),
                    reason,
                } => Outcome::Skipped(words::reason(reason)),
                Verdict::Invalid { reason, .. } => Outcome::Error(words::reason(reason)),
                Verdict::Withheld { .. } => Outcome::Error(words::verdict_text(row)),
                _ => Outcome::Passed(verdict(words::verdict_text(row), words::in_words(row))),
            },
        }
    };
    summary.variants.iter().map(case).collect()
}

/// A verdict and its meaning.
pub(crate) fn verdict(text: String, in_words: Option<String>) -> String {
    match in_words {
        Some(words) => format!("{text}: {words}"),
        None => text,
    }
}

/// A complete document with one suite of this name.
pub(crate) fn document(name: &str, cases: &[Case], gates: &[Judgement]) -> String {
    let judged: Vec<Case> = gates.iter().map(of_gate).collect();
    let all = || cases.iter().chain(&judged);
    let count =
        // A function pointer instead of a closure parameter allows several calls of `count` with different
        // tests.
        |is_meant: fn(&Outcome) -> bool| all().filter(|case| is_meant(&case.outcome)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\"",
        all().count(),
        count(|outcome| matches!(outcome, Outcome::Failed(..))),
        count(|outcome| matches!(outcome, Outcome::Error(_))),
        all().map(|case| case.seconds).sum::<f64>(),
    );
    // The common schema allows this count only in a suite.
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let name = escape(name);
    let suite = |class: &str, cases: &[Case]| -> String {
        cases
            .iter()
            .map(|case| element(&format!("{name}.{class}"), case))
            .collect()
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weigh\" {counts}>\n  \
         <testsuite name=\"{name}\" {counts} skipped=\"{skipped}\">\n{}{}  </testsuite>\n</testsuites>\n",
        suite("variants", cases),
        suite("gates", &judged)
    )
}

fn of_gate(judgement: &Judgement) -> Case {
    let reason = words::gate_reason(judgement);
    Case {
        // Names of test cases are shown as plain text, not as Markdown.
        name: gates::subject(judgement).replace('`', ""),
        seconds: 0.0,
        outcome: match (judgement.ruling, judgement.is_passed) {
            (Ruling::Holds, _) => Outcome::Passed(reason),
            // A gate that may stay undecided neither passed nor failed.
            (Ruling::Undecided, true) => Outcome::Skipped(reason),
            (Ruling::Undecided, false) => Outcome::Failed("undecided", reason),
            (Ruling::Broken, _) => Outcome::Failed("broken", reason),
        },
    }
}

fn element(class: &str, case: &Case) -> String {
    let body = match &case.outcome {
        Outcome::Passed(text) => format!("<system-out>{}</system-out>", escape(text)),
        Outcome::Failed(kind, reason) => {
            // Some CI systems show the attribute and some show the text.
            let reason = escape(reason);
            format!("<failure type=\"{kind}\" message=\"{reason}\">{reason}</failure>")
        }
        Outcome::Error(reason) => {
            let reason = escape(reason);
            format!("<error message=\"{reason}\">{reason}</error>")
        }
        Outcome::Skipped(reason) => format!("<skipped message=\"{}\"/>", escape(reason)),
    };
    format!(
        "    <testcase classname=\"{class}\" name=\"{}\" time=\"{:.3}\">\n      {body}\n    </testcase>\n",
        escape(&case.name),
        case.seconds
    )
}

#[cfg(test)]
mod tests {
    use analysis::gate::Undecided;
    use recording::VariantStatus;
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_variant_without_a_number_and_a_gate_that_fails_are_seen_by_ci() {
        let mut recording = SampleRun::open()
            .variant("baseline", 680.0)
            .variant("rhai", 750.0)
            .variant("c\u{1}sharp", 900.0)
            .variant("go", 900.0)
            .build();
        recording
            .rounds
            .retain(|round| round.variant.len() != 2 && round.variant.len() != 7);
        for (index, kind) in [
            (2, InvalidKind::ProgramMissing),
            (3, InvalidKind::NotNeeded),
        ] {
            recording.variants[index].status = VariantStatus::Invalid {
                kind,
                reason: "`dotnet` is <not> \"installed\" & found".to_owned(),
            };
        }
        let gates = [
            "rhai mean overhead < 1ms",
            "rhai mean overhead < 1us",
            "go mean value < 1s",
        ];
        let gates = gates.map(|text| text.parse().unwrap());
        let summary = Summary::of(&recording).judged(&gates, Undecided::Fails);
        let found = junit(&recording, &summary);
        assert!(
            found.contains("tests=\"7\" failures=\"2\" errors=\"1\" time="),
            "{found}"
        );
        keeps_the_schema(&found);
        for part in [
            "classname=\"graphql-server.variants\" name=\"baseline\" time=\"200.000\"",
            "<error message=\"`dotnet` is &lt;not&gt; &quot;installed&quot; &amp; found\">",
            "name=\"c\u{fffd}sharp\"",
            "name=\"rhai mean overhead &lt; 1us\"",
            "<failure type=\"broken\" message=\"60 to 75 us",
            "<failure type=\"undecided\" message=\"undecided: `go` has no number",
        ] {
            assert!(found.contains(part), "no {part} in\n{found}");
        }
        let lenient = Summary::of(&recording).judged(&gates, Undecided::Passes);
        let found = junit(&recording, &lenient);
        assert!(
            found.contains("failures=\"1\" errors=\"1\" time="),
            "{found}"
        );
        assert!(found.contains("skipped=\"2\""), "{found}");
        keeps_the_schema(&found);
    }

    /// An element of `junit-10.xsd`, the schema that Jenkins publishes and other tools follow. The parts are
    /// its name, its allowed content, its required attributes, and its optional attributes.
    type Element = (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
        &'static [&'static str],
    );

    const SCHEMA: [Element; 7] = [
        (
            "testsuites",
            &["testsuite"],
            &[],
            &["name", "time", "tests", "failures", "errors"],
        ),
        (
            "testsuite",
            &[
                "testsuite",
                "properties",
                "testcase",
                "system-out",
                "system-err",
            ],
            &["name", "tests", "failures", "errors"],
            &[
                "group",
                "time",
                "skipped",
                "timestamp",
                "hostname",
                "id",
                "package",
                "file",
                "log",
                "url",
            ],
        ),
        (
            "testcase",
            &["skipped", "error", "failure", "system-out", "system-err"],
            &["name"],
            &["time", "classname", "group"],
        ),
        ("failure", &[], &[], &["type", "message"]),
        ("error", &[], &[], &["type", "message"]),
        ("skipped", &[], &[], &["type", "message"]),
        ("system-out", &[], &[], &[]),
    ];

    /// Checks a document against the schema, and its counts against its cases.
    fn keeps_the_schema(text: &str) {
        let document = roxmltree::Document::parse(text).unwrap();
        assert_eq!(document.root_element().tag_name().name(), "testsuites");
        for node in document
            .root_element()
            .descendants()
            .filter(roxmltree::Node::is_element)
        {
            let name = node.tag_name().name();
            let known = SCHEMA.iter().find(|element| element.0 == name);
            let (_, children, required, optional) = known.unwrap_or_else(|| panic!("<{name}>"));
            for child in node.children().filter(roxmltree::Node::is_element) {
                let child = child.tag_name().name();
                assert!(children.contains(&child), "<{child}> in <{name}>");
            }
            let attributes: Vec<&str> = node.attributes().map(|found| found.name()).collect();
            for attribute in &attributes {
                assert!(
                    required.contains(attribute) || optional.contains(attribute),
                    "{attribute} of <{name}>"
                );
            }
            for attribute in *required {
                assert!(attributes.contains(attribute), "<{name}> lacks {attribute}");
            }
            if let Some(seconds) = node.attribute("time") {
                let is_plain = |c: char| c.is_ascii_digit() || c == '.';
                assert!(seconds.chars().all(is_plain), "time {seconds}");
            }
            for (attribute, counted) in [
                ("tests", "testcase"),
                ("failures", "failure"),
                ("errors", "error"),
                ("skipped", "skipped"),
            ] {
                if let Some(count) = node.attribute(attribute) {
                    let found = node.descendants().filter(|node| node.has_tag_name(counted));
                    assert_eq!(count, found.count().to_string(), "{attribute} of <{name}>");
                }
            }
        }
    }

    #[test]
    fn a_comparison_keeps_the_schema_too() {
        let recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let side = |variant: &str| analysis::compare::Operand {
            label: "one & the same".to_owned(),
            variant: Some(variant.to_owned()),
            source: analysis::compare::OperandSource::Recording(Box::new(recording.clone())),
        };
        let found = analysis::Comparison::of(&side("a"), &side("b"), false).unwrap();
        let gates = ["p99 ratio < 1.0001".parse().unwrap()];
        let found = found.judged(&gates, Undecided::Fails);
        keeps_the_schema(&crate::comparison_junit(&found));
    }
}
