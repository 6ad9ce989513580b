//! The text of imported requests in a lab, and the summary for the terminal.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::{Captured, CapturedFrom, Request, Requests, Wire};
use crate::command::init::tree::json_text;
use crate::command::init::values::{is_raw_in_path, url_text};
use crate::yaml_text::quoted;

/// Maximum length of a comment, in characters.
const COMMENT_MAX: usize = 160;

/// The file of the rows, next to the lab.
const DATA_FILE: &str = "data.csv";

/// Rows of values for placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Rows {
    /// The names of the columns. They are words of labs: letters, digits, `-` and `_`.
    pub(in super::super) columns: Vec<String>,
    /// Rows with a value for each column.
    pub(in super::super) rows: Vec<Vec<String>>,
    /// True if a row is drawn for each request or iteration. Otherwise one follows another.
    pub(in super::super) is_random: bool,
}

impl Rows {
    /// The file of the rows: its path relative to the lab, and CSV.
    pub(super) fn file(&self) -> (PathBuf, Vec<u8>) {
        let lines = std::iter::once(&self.columns).chain(&self.rows);
        let line = |values: &Vec<String>| {
            let values: Vec<String> = values.iter().map(|it| csv_value(it)).collect();
            values.join(",") + "\n"
        };
        let text: String = lines.map(line).collect();
        (PathBuf::from(DATA_FILE), text.into_bytes())
    }

    /// True if the values of a column stay unchanged in a path, see [`is_raw_in_path`].
    pub(super) fn is_raw_in_path(&self, index: usize) -> Option<bool> {
        let values: Vec<&str> = self.rows.iter().map(|row| row[index].as_str()).collect();
        is_raw_in_path(&values)
    }

    /// The name of a column with the values of another column as URLs contain them.
    pub(super) fn encoded_column(&mut self, index: usize) -> Result<String, String> {
        let column = &self.columns[index];
        if self.rows.iter().any(|row| row[index].contains('#')) {
            return Err(format!("a value of `{column}` in its path contains `#`"));
        }
        let name = format!("{column}-in-path");
        if !self.columns.contains(&name) {
            self.columns.push(name.clone());
            for row in &mut self.rows {
                let value = url_text(&row[index]);
                row.push(value);
            }
        }
        Ok(name)
    }

    fn line(&self) -> String {
        match self.is_random {
            true => format!("  data: {{file: {DATA_FILE}, order: random}}\n"),
            false => format!("  data: {DATA_FILE}\n"),
        }
    }
}

/// A value of CSV. A single empty value needs quotes, or its row would be an empty line.
fn csv_value(value: &str) -> String {
    match value.is_empty() || value.contains([',', '"', '\n', '\r']) || value.trim() != value {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    }
}

impl Requests {
    /// The lines of `gates` in a lab. Empty without a gate.
    pub(in super::super) fn gates(&self) -> String {
        if self.gates.is_empty() {
            return String::new();
        }
        let mut text = comment(
            0,
            &format!(
                "Limits of {}, for every row except the baseline.",
                self.source
            ),
        );
        text += "gates:\n";
        for gate in &self.gates {
            let _ = writeln!(text, "  - {}", quoted(gate));
        }
        text
    }

    /// The summary for the terminal: the numbers of requests, and the omitted parts.
    pub(in super::super) fn summary(&self) -> String {
        let (taken, all) = self.counts();
        let lines = self.left_out.first_lines();
        let mut text = match all - taken {
            _ if taken == 0 => format!("Took no request of {}", self.source),
            0 => format!("Took {} of {}", all_of(all), self.source),
            left => format!(
                "Took {taken} of {} of {}, left out {left}",
                requests(all),
                self.source
            ),
        };
        if taken == 0 && all > 0 {
            let _ = write!(text, ", left out {}", all_of(all));
        }
        text += if lines.is_empty() { ".\n" } else { ":\n" };
        for line in lines {
            let _ = writeln!(text, "  {}", one_line(&line));
        }
        if !self.secrets.is_empty() {
            let _ = writeln!(
                text,
                "Omitted because they may be secret: {}.",
                one_line(&self.secrets.join(", "))
            );
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "{}", one_line(remark));
        }
        match self.sent.iter().filter(|it| !it.notes.is_empty()).count() {
            0 => {}
            noted => {
                let _ = writeln!(text, "Comments in the lab describe {}.", requests(noted));
            }
        }
        text
    }

    /// The lines of `load` in a lab.
    pub(in super::super) fn load(&self) -> String {
        let mut text = String::new();
        if !self.secrets.is_empty() {
            text += &comment(
                2,
                &format!(
                    "Omitted because they may be secret: {}.",
                    self.secrets.join(", ")
                ),
            );
            text += SECRET;
        }
        if self.is_grpc() {
            text += "  http2: on # as calls of gRPC need it\n";
        }
        let longest = self.longest().as_millis().div_ceil(1000);
        if longest >= 4 {
            let _ = writeln!(
                text,
                "  timeout: {}s # longer than a conversation",
                longest + 5
            );
        }
        let shared = self.shared_headers();
        if !shared.is_empty() {
            text += &headers(2, &shared);
        }
        if let Some(data) = &self.data {
            text += &comment(2, &format!("The values of {}.", self.source));
            text += &data.line();
        }
        for remark in &self.remarks {
            text += &comment(2, remark);
        }
        if self.is_scenario {
            let order = "one after another. An iteration sends all of them.";
            text += &comment(2, &format!("From {}, {order}", self.source));
            text += "  scenario:\n";
        } else {
            text += &comment(2, &format!("From {}, in rotation.", self.source));
            text += "  requests:\n";
        }
        let named = self.names().into_iter().zip(&self.sent);
        for (index, (name, request)) in named.enumerate() {
            text += &self.request(index, &name, request, &shared);
        }
        let left_out = self.left_out.lines();
        if !left_out.is_empty() {
            text += &comment(4, "Left out:");
            for line in &left_out {
                text += &comment(4, &format!("- {line}"));
            }
        }
        text
    }

    fn request(
        &self,
        index: usize,
        name: &str,
        request: &Request,
        shared: &[(String, String)],
    ) -> String {
        let mut text = String::new();
        for note in &request.notes {
            text += &comment(4, note);
        }
        let _ = writeln!(text, "    - name: {}", quoted(name));
        if request.wire.has_method() {
            let _ = writeln!(text, "      method: {}", quoted(&request.method));
        }
        if !matches!(request.wire, Wire::Grpc(_)) {
            let _ = writeln!(text, "      path: {}", quoted(&request.path));
        }
        if !request.pause.is_zero() {
            let _ = match request.pause.subsec_micros() % 1000 {
                0 => writeln!(text, "      pause: {}ms", request.pause.as_millis()),
                _ => writeln!(text, "      pause: {}us", request.pause.as_micros()),
            };
        }
        let own = request
            .headers
            .iter()
            .filter(|header| !shared.contains(header));
        let own: Vec<(String, String)> = own.cloned().collect();
        if !own.is_empty() {
            text += &headers(6, &own);
        }
        if request.body.is_some() {
            let file = body_file(index, request);
            let _ = writeln!(text, "      body: {}", quoted(&file));
        }
        if let Some(json) = &request.json {
            let _ = writeln!(text, "      json: {}", json_text(json));
        }
        text += &request.wire.lines(index + 1);
        text += &self.expect(request);
        if !request.captures.is_empty() {
            text += "      capture:\n";
            for captured in &request.captures {
                text += &capture(captured);
            }
        }
        if request.weight > 1 {
            let _ = writeln!(text, "      weight: {}", request.weight);
        }
        text
    }

    /// The line of `expect`. Empty if the lab's own `expect` applies.
    fn expect(&self, request: &Request) -> String {
        let status = match request.status.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        };
        if let Some(own) = request.wire.expect(status.clone()) {
            return own;
        }
        let Some(status) = status else {
            return String::new();
        };
        match self.is_scenario {
            true => format!("      expect: {{status: {status}}}\n"),
            false => format!("      expect: {{status: {status}, same-as: baseline}}\n"),
        }
    }

    /// The unique names of the requests in reports.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for request in &self.sent {
            let own = plain_name(request);
            let numbered = (2..).map(|number| format!("{own} ({number})"));
            let mut candidates = std::iter::once(own.clone()).chain(numbered);
            let free = candidates.find(|name| !names.contains(name));
            names.push(free.unwrap_or(own));
        }
        names
    }

    /// The headers that all requests have in common.
    fn shared_headers(&self) -> Vec<(String, String)> {
        // A single request keeps its own headers.
        let (Some(first), true) = (self.sent.first(), self.sent.len() > 1) else {
            return Vec::new();
        };
        let mut shared = first.headers.clone();
        shared.retain(|header| self.sent.iter().all(|other| other.headers.contains(header)));
        shared
    }
}

/// The comment in the lab about credentials.
const SECRET: &str = "  \
  # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
  #   headers: {Authorization: \"Bearer {{token}}\"}   and   weigh lab … --with token=…
";

/// The file of a body, relative to the lab.
pub(super) fn body_file(index: usize, request: &Request) -> String {
    let is_json = request
        .headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.contains("json"));
    let extension = if is_json { "json" } else { "body" };
    format!("requests/{}.{extension}", index + 1)
}

fn headers(indent: usize, headers: &[(String, String)]) -> String {
    let mut text = format!("{:indent$}headers:\n", "");
    for (name, value) in headers {
        let _ = writeln!(text, "{:indent$}  {}: {}", "", quoted(name), quoted(value));
    }
    text
}

/// The name of a request, before it is unique.
fn plain_name(request: &Request) -> String {
    match request.name.as_str() {
        "" => format!("{} {}", request.method, request.path),
        name => one_line(name),
    }
}

/// The line of a captured value.
fn capture(captured: &Captured) -> String {
    let from = match &captured.from {
        CapturedFrom::Json(pointer) => Some(format!("json: {}", quoted(pointer))),
        CapturedFrom::Header(name) => Some(format!("header: {}", quoted(name))),
        CapturedFrom::Body => None,
    };
    let regex = captured.regex.as_deref();
    let regex = regex.map(|regex| format!("regex: {}", quoted(regex)));
    let places: Vec<String> = from.into_iter().chain(regex).collect();
    format!(
        "        {}: {{{}}}\n",
        quoted(&captured.name),
        places.join(", ")
    )
}

fn requests(count: usize) -> String {
    match count {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    }
}

fn all_of(count: usize) -> String {
    match count {
        1 => "the only request".to_owned(),
        many => format!("all {many} requests"),
    }
}

/// A comment on one line, for any text from the file.
fn comment(indent: usize, text: &str) -> String {
    format!("{:indent$}# {}\n", "", one_line(text))
}

/// Any text from the file as a short text on one line.
fn one_line(text: &str) -> String {
    let plain = |character: char| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    };
    let mut line: String = text.chars().map(plain).take(COMMENT_MAX).collect();
    if text.chars().count() > COMMENT_MAX {
        line.push('…');
    }
    line
}
