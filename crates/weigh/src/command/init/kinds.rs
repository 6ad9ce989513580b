//! Kinds of files of other tools, for advice about a file that this flag does not read.

/// A kind of file: its name, the flag that reads it, and words in it.
struct Kind {
    name: &'static str,
    flag: &'static str,
    /// All of these words are in the file.
    words: &'static [&'static str],
}

/// The kinds that a flag reads.
const READ: [Kind; 6] = [
    Kind {
        name: "a Postman collection",
        flag: "--postman",
        words: &["schema.getpostman.com", "\"item\""],
    },
    Kind {
        name: "a HAR file",
        flag: "--har",
        words: &["\"log\"", "\"entries\"", "\"request\""],
    },
    Kind {
        name: "a script of k6",
        flag: "--k6",
        words: &["k6/http"],
    },
    Kind {
        name: "an OpenAPI description",
        flag: "--openapi",
        words: &["openapi", "paths"],
    },
    Kind {
        name: "a Swagger description",
        flag: "--openapi",
        words: &["swagger", "paths"],
    },
    Kind {
        name: "a test of Artillery",
        flag: "--artillery",
        words: &["scenarios:", "flow:"],
    },
];

/// The kinds that no flag reads: the name, words of the file, and the advice.
const OTHERS: [(&str, &str, &str); 6] = [
    (
        "a test plan of JMeter",
        "<jmeterTestPlan",
        "Record its requests as HAR with a proxy such as mitmproxy and use --har, or write them \
         as an .http file for --http",
    ),
    (
        "a script of Locust",
        "from locust",
        "Record its requests as HAR with a proxy such as mitmproxy and use --har, or write them \
         as an .http file for --http",
    ),
    (
        "a script of Gatling",
        "io.gatling",
        "Record its requests as HAR, which its recorder reads too, and use --har",
    ),
    (
        "an export of Insomnia",
        "\"__export_format\"",
        "Export it as HAR and use --har",
    ),
    (
        "an export of Insomnia",
        "type: collection.insomnia.rest",
        "Export it as HAR and use --har",
    ),
    (
        "a request of Bruno",
        "meta {",
        "Export the collection for Postman and use --postman",
    ),
];

/// The advice for a file of a kind that no flag reads.
pub(super) fn unsupported(text: &str) -> Option<String> {
    let head = beginning(text);
    let found = OTHERS.iter().find(|(_, word, _)| match *word {
        "meta {" => head.trim_start().starts_with(word),
        word => head.contains(word),
    });
    found.map(|(name, _, advice)| format!("{name} is not read. {advice}"))
}

/// The advice for a file that another flag than the given one reads.
pub(super) fn other_flag(text: &str, flag: &str) -> Option<String> {
    let head = beginning(text);
    let is_there = |kind: &&Kind| kind.words.iter().all(|word| head.contains(word));
    let kind = READ
        .iter()
        .find(is_there)
        .filter(|kind| kind.flag != flag)?;
    Some(format!("It looks like {}: use {}", kind.name, kind.flag))
}

/// The beginning of a file, which is enough to know its kind.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(100_000);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kinds_are_named_with_what_to_do() {
        for (text, words) in [
            (
                "<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">",
                "JMeter",
            ),
            ("import time\nfrom locust import HttpUser, task\n", "Locust"),
            ("import io.gatling.javaapi.core.*;", "Gatling"),
            ("{\"__export_format\": 4}", "Insomnia"),
            ("meta {\n  name: a\n}", "Bruno"),
        ] {
            let advice = unsupported(text).expect("advice");
            assert!(
                advice.contains(words) && advice.contains("is not read"),
                "{advice}"
            );
        }
        assert_eq!(unsupported("openapi: 3.0.0\n# meta { }"), None);
    }

    #[test]
    fn a_file_for_another_flag_is_known() {
        let har = "{\"log\": {\"entries\": [{\"request\": {}}]}}";
        let advice = other_flag(har, "--openapi").expect("advice");
        assert_eq!(advice, "It looks like a HAR file: use --har");
        assert_eq!(other_flag(har, "--har"), None);
        assert_eq!(other_flag("a: b", "--har"), None);
        let test = "config: {}\nscenarios:\n  - flow: []\n";
        assert!(
            other_flag(test, "--k6")
                .expect("advice")
                .ends_with("use --artillery")
        );
    }
}
