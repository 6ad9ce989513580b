//! Requests from a file of another tool in the form of a lab, and notes about omitted parts.

use std::fmt::Write as _;
use std::path::PathBuf;

use experiment::secrets::{is_secret, named};
use serde_json::Value;

use crate::yaml_text::quoted;

/// Maximum number of requests of a lab. All are proved before each load, one after the other.
const REQUESTS_MAX: usize = 100;

/// Maximum weight of a request, as in labs.
const WEIGHT_MAX: u32 = 1000;

/// Maximum length of a comment, in characters.
const COMMENT_MAX: usize = 160;

/// Headers that the generator or the connection sets.
const OF_THE_CONNECTION: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
];

/// A request from a file, including credentials.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    /// The status of a right response, if it is not in the range 200 to 299.
    pub(super) status: Option<u16>,
    /// Notes about its omitted parts.
    pub(super) notes: Vec<String>,
}

/// A request of the lab.
#[derive(Debug, PartialEq)]
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    status: Option<u16>,
    notes: Vec<String>,
    weight: u32,
}

/// All imported parts of a file.
#[derive(Debug)]
pub(super) struct Requests {
    /// The name of the file.
    source: String,
    sent: Vec<Request>,
    /// Headers and parameters with names of credentials.
    secrets: Vec<String>,
    /// Omitted parts, one line each.
    left_out: Vec<String>,
    /// Limits of the file that a lab can judge, as gates.
    gates: Vec<String>,
}

impl Requests {
    pub(super) fn of(source: &str) -> Requests {
        Requests {
            source: source.to_owned(),
            sent: Vec::new(),
            secrets: Vec::new(),
            left_out: Vec::new(),
            gates: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The first reason why no request is left.
    pub(super) fn first_reason(&self) -> &str {
        self.left_out
            .first()
            .map_or("the file contains no requests", String::as_str)
    }

    pub(super) fn leave_out(&mut self, what: &str, why: &str) {
        // Query parameters may be secret.
        let what = what.split('?').next().unwrap_or_default();
        self.left_out.push(format!("{what}: {why}"));
    }

    /// Adds a limit as a gate.
    pub(super) fn add_gate(&mut self, gate: String) {
        if !self.gates.contains(&gate) {
            self.gates.push(gate);
        }
    }

    /// The lines of `gates` in a lab. Empty without a gate.
    pub(super) fn gates(&self) -> String {
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

    /// Records that a header or parameter was left out, because its name is the name of a credential.
    pub(super) fn hide(&mut self, name: &str) {
        let is_known = |known: &String| known.eq_ignore_ascii_case(name);
        if !self.secrets.iter().any(is_known) {
            self.secrets.push(name.to_owned());
        }
    }

    /// Adds a request, or records the reason for leaving it out. An equal request gets a larger weight.
    pub(super) fn add(&mut self, given: Given) {
        self.add_times(given, 1);
    }

    /// Adds a request with a weight of at least 1.
    pub(super) fn add_times(&mut self, given: Given, times: u32) {
        let times = times.clamp(1, WEIGHT_MAX);
        let what = format!("{} {}", given.method, given.path);
        if let Err(why) = check(&given) {
            return self.leave_out(&what, &why);
        }
        let path = self.open_path(&given.path);
        let (headers, mut notes) = self.open_headers(given.headers);
        if let Some(name) = given.body.as_deref().and_then(secret_in) {
            notes.push(format!("its body contains `{name}` from {}", self.source));
        }
        notes.extend(given.notes);
        let request = Request {
            method: given.method,
            path,
            headers,
            body: given.body,
            status: given.status,
            notes,
            weight: times,
        };
        let is_same = |known: &Request| {
            (&known.method, &known.path, &known.headers, &known.body)
                == (
                    &request.method,
                    &request.path,
                    &request.headers,
                    &request.body,
                )
        };
        match self.sent.iter().position(is_same) {
            Some(index) => {
                let known = &mut self.sent[index];
                known.weight = (known.weight + times).min(WEIGHT_MAX);
            }
            None if self.sent.len() == REQUESTS_MAX => {
                self.leave_out(
                    &what,
                    &format!("it comes after {REQUESTS_MAX} other requests"),
                );
            }
            None => self.sent.push(request),
        }
    }

    /// The path without parameters that are credentials.
    fn open_path(&mut self, path: &str) -> String {
        let Some((path, query)) = path.split_once('?') else {
            return path.to_owned();
        };
        let mut open = Vec::new();
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                Some((name, _)) if is_secret(name) => self.hide(&format!("?{name}=")),
                _ => open.push(parameter),
            }
        }
        match open.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", open.join("&")),
        }
    }

    /// The headers that a lab file may contain, and notes about the omitted headers.
    fn open_headers(
        &mut self,
        given: Vec<(String, String)>,
    ) -> (Vec<(String, String)>, Vec<String>) {
        let (mut open, mut notes) = (Vec::<(String, String)>::new(), Vec::new());
        for (name, value) in given {
            let lower = name.to_ascii_lowercase();
            // Pseudo-header fields of HTTP/2, which begin with a colon, repeat method and path.
            if name.starts_with(':') || OF_THE_CONNECTION.contains(&lower.as_str()) {
                continue;
            }
            // The URL of a `Referer` may also contain a credential.
            if named(&name, &value) != value {
                self.hide(&name);
            } else if http::HeaderName::try_from(&name).is_err()
                || value.contains("{{")
                || value.chars().any(char::is_control)
            {
                notes.push(format!(
                    "without its header `{name}`, which a lab cannot contain"
                ));
            } else if let Some((_, known)) = open
                .iter_mut()
                .find(|(known, _)| known.eq_ignore_ascii_case(&name))
            {
                // Lines with one name form one list (RFC 9110, section 5.3).
                *known = format!("{known}, {value}");
            } else {
                open.push((name, value));
            }
        }
        (open, notes)
    }

    /// The lines of `load` in a lab.
    pub(super) fn load(&self) -> String {
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
        let shared = self.shared_headers();
        if !shared.is_empty() {
            text += &headers(2, &shared);
        }
        text += &comment(2, &format!("From {}, in rotation.", self.source));
        text += "  requests:\n";
        for (index, request) in self.sent.iter().enumerate() {
            text += &self.request(index, request, &shared);
        }
        if !self.left_out.is_empty() {
            text += &comment(4, "Left out:");
            for line in &self.left_out {
                text += &comment(4, &format!("- {line}"));
            }
        }
        text
    }

    fn request(&self, index: usize, request: &Request, shared: &[(String, String)]) -> String {
        let mut text = String::new();
        for note in &request.notes {
            text += &comment(4, note);
        }
        let (method, path) = (quoted(&request.method), quoted(&request.path));
        let _ = write!(
            text,
            "    - name: {}\n      method: {method}\n      path: {path}\n",
            quoted(&self.name(index))
        );
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
        if let Some(status) = request.status {
            let _ = writeln!(
                text,
                "      expect: {{status: {status}, same-as: baseline}}"
            );
        }
        if request.weight > 1 {
            let _ = writeln!(text, "      weight: {}", request.weight);
        }
        text
    }

    /// The unique name of a request in reports.
    fn name(&self, index: usize) -> String {
        let plain = |request: &Request| format!("{} {}", request.method, request.path);
        let own = plain(&self.sent[index]);
        match self.sent[..index]
            .iter()
            .filter(|other| plain(other) == own)
            .count()
        {
            0 => own,
            before => format!("{own} ({})", before + 1),
        }
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

    /// The body files, relative to the lab's folder.
    pub(super) fn files(&self) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
        self.sent.iter().enumerate().filter_map(|(index, request)| {
            let body = request.body.clone()?;
            Some((PathBuf::from(body_file(index, request)), body))
        })
    }
}

/// The comment in the lab about credentials.
const SECRET: &str = "  \
  # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
  #   headers: {Authorization: \"Bearer {{token}}\"}   and   weigh lab … --with token=…
";

/// Checks that a lab can send the request.
fn check(given: &Given) -> Result<(), String> {
    let is_of_method = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
    if given.method.is_empty() || !given.method.bytes().all(is_of_method) {
        return Err("its method does not consist of capital letters".to_owned());
    }
    if given.method == "CONNECT" {
        return Err("it asks for a tunnel".to_owned());
    }
    let is_of_path = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if !given.path.starts_with('/') || !given.path.bytes().all(is_of_path) {
        return Err("its path is not in the form of HTTP".to_owned());
    }
    let body = given.body.as_deref().unwrap_or_default();
    // Two braces begin a placeholder, and a lab has no escape for them.
    let has_braces = |bytes: &[u8]| bytes.windows(2).any(|pair| pair == b"{{");
    if has_braces(given.path.as_bytes()) || (has_braces(body) && std::str::from_utf8(body).is_ok())
    {
        return Err("`{{` in a path or a body would be a placeholder of the lab".to_owned());
    }
    Ok(())
}

/// The first name of a credential in a JSON or form body.
fn secret_in(body: &[u8]) -> Option<String> {
    if let Ok(json) = serde_json::from_slice::<Value>(body) {
        return secret_key(&json);
    }
    let text = std::str::from_utf8(body).ok()?;
    let names = text.split('&').filter_map(|pair| pair.split_once('='));
    let mut names = names.map(|(name, _)| name);
    names.find(|name| is_secret(name)).map(str::to_owned)
}

fn secret_key(json: &Value) -> Option<String> {
    match json {
        Value::Object(members) => members
            .iter()
            .find_map(|(name, value)| match is_secret(name) {
                true => Some(name.clone()),
                false => secret_key(value),
            }),
        Value::Array(items) => items.iter().find_map(secret_key),
        _ => None,
    }
}

fn body_file(index: usize, request: &Request) -> String {
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

/// A comment on one line, for any text from the file.
fn comment(indent: usize, text: &str) -> String {
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
    format!("{:indent$}# {line}\n", "")
}
