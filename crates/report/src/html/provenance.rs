//! Origin of the figures: machine, systems, requests, files, and the command that repeats the run.

use recording::{Recording, RequestText, SystemRecord, VariantRecord, describe, digits, float};

use super::escape::escape;
use super::markup::{folded, grid, name, prose};
use crate::table::Column;

/// A list of labels and values.
fn facts(facts: &[(&str, String)]) -> String {
    let fact = |(label, value): &(&str, String)| {
        format!("<dt>{}</dt><dd>{}</dd>\n", escape(label), escape(value))
    };
    let facts: String = facts.iter().map(fact).collect();
    format!("<dl class=\"list\">\n{facts}</dl>\n")
}

pub(super) fn environment(recording: &Recording) -> String {
    facts(&describe::environment(recording))
}

/// The settings and the systems of each variant.
pub(super) fn variants(recording: &Recording) -> String {
    let row = |variant: &VariantRecord| {
        let with: Vec<String> = variant
            .with
            .iter()
            .map(|(key, value)| format!("<code>{}</code>", escape(&format!("{key} = {value}"))))
            .collect();
        let with = if with.is_empty() {
            "the systems as declared".to_owned()
        } else {
            with.join("<br>")
        };
        let systems: Vec<String> = variant.systems.iter().map(system).collect();
        format!(
            "<tr>{}<td class=\"words\">{with}</td><td class=\"words\">{}</td></tr>\n",
            name(&variant.name),
            systems.join("")
        )
    };
    // A single load has one target, which is in the head of the page.
    if recording.lab.is_none() {
        return String::new();
    }
    let columns = ["variant", "with", "systems"].map(Column::words);
    let rows: String = recording.variants.iter().map(row).collect();
    grid("variants and systems", "", &columns, &rows)
}

fn system(system: &SystemRecord) -> String {
    let command = describe::quoted(&system.command);
    let env: Vec<String> = system
        .env
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let env = if env.is_empty() {
        String::new()
    } else {
        format!("<br><code class=\"long\">{}</code>", escape(&env.join(" ")))
    };
    format!(
        "<div class=\"system\"><b>{}</b> {}<br><code class=\"long\">{}</code>{env}</div>",
        escape(&system.name),
        prose(&describe::system_facts(system)),
        escape(&command)
    )
}

/// The requests with their bodies.
pub(super) fn requests(recording: &Recording) -> String {
    let row = |request: &RequestText| {
        let headers: Vec<String> = request
            .headers
            .iter()
            .map(|header| format!("{}: {}", header.name, header.value))
            .collect();
        let body = match &request.body {
            Some(body) => format!("<pre tabindex=\"0\"><code>{}</code></pre>", escape(body)),
            // A recording contains no bodies that are long or not text. Their sizes remain.
            None if request.body_bytes > 0 => {
                format!("{}, not kept", digits::bytes(float(request.body_bytes)))
            }
            None => String::new(),
        };
        let content = format!(
            "<p><code>{}</code></p>\n{body}\n",
            escape(&headers.join("; "))
        );
        let mut weight = match request.operations {
            1 => String::new(),
            several => format!(", {}", describe::plural(several.into(), "operation")),
        };
        if request.weight != 1 {
            weight += &format!(", weight {}", request.weight);
        }
        // A request without its own name has its request line as name, which is shown only once.
        let line = format!("{} {}", request.method, request.path);
        let title = if request.name == line {
            format!("<code>{}</code>{weight}", escape(&line))
        } else {
            format!(
                "<b>{}</b> <code>{}</code>{weight}",
                escape(&request.name),
                escape(&line)
            )
        };
        folded(&title, &content)
    };
    let rows = |requests: &[RequestText]| requests.iter().map(row).collect::<String>();
    let mut out = rows(&recording.load.requests);
    for variant in &recording.variants {
        let name = escape(&variant.name);
        if !variant.requests.is_empty() {
            out += &format!("<h3>To {name}</h3>\n{}", rows(&variant.requests));
        }
        if !variant.prepared.is_empty() {
            let prepared = rows(&variant.prepared);
            out += &format!("<h3>Once after each start of {name}</h3>\n{prepared}");
        }
    }
    out
}

/// The command, and every file that the lab was read from.
pub(super) fn reproduced(recording: &Recording) -> String {
    let command = escape(&describe::command(recording));
    let mut out = format!("<pre class=\"command\" tabindex=\"0\"><code>{command}</code></pre>\n");
    let rows = [
        ("seed", recording.seed.to_string()),
        (
            "weigh",
            format!(
                "{}{}",
                recording.weigh.version,
                recording
                    .weigh
                    .commit
                    .as_ref()
                    .map(|commit| format!(" ({commit})"))
                    .unwrap_or_default()
            ),
        ),
    ];
    out += &facts(&rows);
    for file in recording.lab.iter().flat_map(|lab| &lab.files) {
        let text = file
            .text
            .as_deref()
            .unwrap_or("(not kept: not text, or too long)");
        let title = format!(
            "<code>{}</code> <span class=\"quiet digest\">SHA-256 {}</span>",
            escape(&file.path),
            escape(&file.sha256)
        );
        out += &folded(
            &title,
            &format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(text)),
        );
    }
    out
}
