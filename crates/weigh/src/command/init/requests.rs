//! Requests from a file of another tool in the form of a lab, and notes about omitted parts.

mod check;
mod left_out;
mod text;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use experiment::secrets::{is_secret, named};
use serde_json::Value;

use super::tree::json_text;
use super::values::{with_raw, without_notation};
use check::{check, has_only, secret_in};
use left_out::Omissions;
pub(super) use text::Rows;
pub(super) use wire::{Call, Content, Conversation, Message, PROTO, Wire};

/// Maximum number of requests of a lab. All are proved before each load, one after the other.
const REQUESTS_MAX: usize = 100;

/// Maximum weight of a request, as in labs.
const WEIGHT_MAX: u32 = 1000;

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
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// The line of the request in its file, counted from 1, if the importer has it.
    pub(super) line: Option<usize>,
    /// The name of the request in its file. Empty for a name made of method and path.
    pub(super) name: String,
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    /// A body in JSON with placeholders of the lab, instead of `body`. The lab contains it, because labs fill
    /// in numbers without quotes only there.
    pub(super) json: Option<Value>,
    /// The statuses of a right response, as in labs: `404` or `2xx`. Empty for every status from 200 to 299.
    pub(super) status: Vec<String>,
    /// Notes about its omitted parts.
    pub(super) notes: Vec<String>,
    /// The content of the placeholders that belong to the lab, as in `{{token}}`: names of captured values,
    /// names of columns, `index` or `random:1..9`. Any other `{{` in the request is refused.
    pub(super) places: Vec<String>,
    /// Values of the answer for later steps.
    pub(super) captures: Vec<Captured>,
    /// The think time before the step of a scenario.
    pub(super) pause: Duration,
    /// Its kind.
    pub(super) wire: Wire,
}

/// A value of an answer that later steps use as `{{name}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Captured {
    pub(super) name: String,
    pub(super) from: CapturedFrom,
    /// A regular expression that selects a part of the value.
    pub(super) regex: Option<String>,
}

/// The place of a captured value in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CapturedFrom {
    /// A JSON pointer, such as `/data/id`.
    Json(String),
    Header(String),
    /// Anywhere in the body. It needs a regular expression.
    Body,
}

/// A request of the lab.
#[derive(Clone, Debug, PartialEq)]
struct Request {
    name: String,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    json: Option<Value>,
    status: Vec<String>,
    notes: Vec<String>,
    captures: Vec<Captured>,
    pause: Duration,
    wire: Wire,
    weight: u32,
}

impl Request {
    /// True if both send the same bytes.
    fn sends_the_same(&self, other: &Request) -> bool {
        (&self.method, &self.path, &self.headers) == (&other.method, &other.path, &other.headers)
            && (&self.body, &self.json, &self.wire) == (&other.body, &other.json, &other.wire)
    }

    /// Accepts the statuses of an equal request as well.
    fn accept(&mut self, other: &[String]) {
        if self.status == other {
            return;
        }
        let usual = || vec!["2xx".to_owned()];
        if self.status.is_empty() {
            self.status = usual();
        }
        let other = match other.is_empty() {
            true => usual(),
            false => other.to_vec(),
        };
        for status in other {
            if !self.status.contains(&status) {
                self.status.push(status);
            }
        }
    }
}

/// All imported parts of a file.
#[derive(Debug)]
pub(super) struct Requests {
    /// The name of the file.
    source: String,
    sent: Vec<Request>,
    /// True if the requests are the steps of a scenario.
    is_scenario: bool,
    /// Rows of values for placeholders.
    data: Option<Rows>,
    /// Number of requests of the file that the lab sends. Equal requests count separately.
    taken: usize,
    /// Headers and parameters with names of credentials.
    secrets: Vec<String>,
    left_out: Omissions,
    /// Remarks about all requests, one line each.
    remarks: Vec<String>,
    /// Limits of the file that a lab can judge, as gates.
    gates: Vec<String>,
    /// Files next to the lab that its requests need.
    extra: Vec<(PathBuf, Vec<u8>)>,
}

impl Requests {
    pub(super) fn of(source: &str) -> Requests {
        Requests {
            source: source.to_owned(),
            sent: Vec::new(),
            is_scenario: false,
            data: None,
            taken: 0,
            secrets: Vec::new(),
            left_out: Omissions::default(),
            remarks: Vec::new(),
            gates: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// Adds a file next to the lab, by its path relative to the lab.
    pub(super) fn add_file(&mut self, path: PathBuf, content: Vec<u8>) {
        self.extra.push((path, content));
    }

    /// True if the requests are conversations over WebSocket.
    pub(super) fn is_websocket(&self) -> bool {
        let mut sent = self.sent.iter();
        sent.any(|it| matches!(it.wire, Wire::WebSocket(_)))
    }

    /// True if the requests are calls of gRPC.
    pub(super) fn is_grpc(&self) -> bool {
        let mut sent = self.sent.iter();
        sent.any(|it| matches!(it.wire, Wire::Grpc(_)))
    }

    /// The longest planned time of one request.
    pub(super) fn longest(&self) -> Duration {
        let lengths = self.sent.iter().map(|it| it.wire.length());
        lengths.max().unwrap_or_default()
    }

    /// Makes the following requests the steps of a scenario: each request starts after the answer to the previous request.
    pub(super) fn follow_each_other(&mut self) {
        self.is_scenario = true;
    }

    /// True if the requests are the steps of a scenario.
    pub(super) fn is_scenario(&self) -> bool {
        self.is_scenario
    }

    /// The pauses of one iteration.
    pub(super) fn pauses(&self) -> Duration {
        self.sent.iter().map(|step| step.pause).sum()
    }

    /// Current number of requests of the lab.
    pub(super) fn steps(&self) -> usize {
        self.sent.len()
    }

    /// Repeats the steps from a number on, so that they run `times` times in each iteration.
    pub(super) fn repeat_steps(&mut self, from: usize, times: u32) {
        let steps: Vec<Request> = self.sent.iter().skip(from).cloned().collect();
        for _ in 1..times {
            if self.sent.len().saturating_add(steps.len()) > REQUESTS_MAX {
                return;
            }
            self.sent.extend(steps.iter().cloned());
        }
    }

    /// Sets the rows of values for placeholders.
    pub(super) fn set_data(&mut self, rows: Rows) {
        self.data = Some(rows);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Number of taken requests, and number of all requests of the file.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.taken, self.taken + self.left_out.requests())
    }

    /// Records a part of the file that is no request and is not in the lab.
    pub(super) fn leave_out(&mut self, what: &str, why: &str) {
        self.left_out.add(0, None, what, why);
    }

    /// Records a request of the file that is not in the lab.
    pub(super) fn leave_out_request(&mut self, line: Option<usize>, what: &str, why: &str) {
        self.left_out.add(1, line, what, why);
    }

    /// Records several requests of the file that are not in the lab for one reason.
    pub(super) fn leave_out_requests(&mut self, count: usize, what: &str, why: &str) {
        self.left_out.add(count, None, what, why);
    }

    /// Adds a remark about all requests to the comments of the lab.
    pub(super) fn remark(&mut self, text: &str) {
        if !self.remarks.iter().any(|known| known == text) {
            self.remarks.push(text.to_owned());
        }
    }

    /// Adds a limit as a gate.
    pub(super) fn add_gate(&mut self, gate: String) {
        if !self.gates.contains(&gate) {
            self.gates.push(gate);
        }
    }

    /// Records that a header or parameter was left out, because its name is the name of a credential.
    pub(super) fn hide(&mut self, name: &str) {
        let is_known = |known: &String| known.eq_ignore_ascii_case(name);
        if !self.secrets.iter().any(is_known) {
            self.secrets.push(name.to_owned());
        }
    }

    /// Adds a request, or records the reason for leaving it out. An equal request gets a larger weight, except
    /// in a scenario.
    pub(super) fn add(&mut self, given: Given) {
        self.add_times(given, 1);
    }

    /// Adds a request with a weight of at least 1. In a scenario, the weight is its number of steps.
    pub(super) fn add_times(&mut self, mut given: Given, times: u32) {
        let times = times.clamp(1, WEIGHT_MAX);
        let what = format!("{} {}", given.method, given.path);
        let checked = check(&given).and_then(|()| self.check_places(&given));
        match checked.and_then(|()| self.raw_path(&given.path)) {
            Ok(path) => given.path = path,
            Err(why) => return self.leave_out_request(given.line, &what, &why),
        }
        let places = given.places.clone();
        let request = self.open(given, times);
        if self.is_scenario {
            return self.add_steps(&request, &places);
        }
        match self.sent.iter().position(|it| it.sends_the_same(&request)) {
            Some(index) => {
                let known = &mut self.sent[index];
                known.weight = (known.weight + times).min(WEIGHT_MAX);
                known.accept(&request.status);
            }
            None if self.sent.len() == REQUESTS_MAX => return self.left_out.beyond(REQUESTS_MAX),
            None => self.sent.push(request),
        }
        self.taken += 1;
    }

    /// Checks that the lab has a value for each placeholder of the request.
    fn check_places(&self, given: &Given) -> Result<(), String> {
        let is_captured = |place: &str| {
            let mut captures = self.sent.iter().flat_map(|step| &step.captures);
            self.is_scenario && captures.any(|captured| captured.name == place)
        };
        let columns = || self.data.iter().flat_map(|rows| &rows.columns);
        let is_known = |place: &str| {
            let place = without_notation(place);
            place == "index"
                || place.starts_with("random:")
                || columns().any(|column| column == place)
                || is_captured(place)
        };
        match given.places.iter().find(|place| !is_known(place)) {
            None => Ok(()),
            Some(place) => Err(format!(
                "no request before it in the lab captures `{place}` from its answer"
            )),
        }
    }

    /// The path with the notation of each value. Other tools encode only characters that a URL cannot contain.
    fn raw_path(&mut self, path: &str) -> Result<String, String> {
        let captures = self.sent.iter().flat_map(|step| &step.captures);
        let mut raw: Vec<String> = captures.map(|captured| captured.name.clone()).collect();
        let mut path = path.to_owned();
        if let Some(data) = &mut self.data {
            for index in 0..data.columns.len() {
                let column = data.columns[index].clone();
                let place = format!("{{{{{column}}}}}");
                if !path.contains(&place) {
                    continue;
                }
                let mut rows = data.rows.iter().map(|row| &row[index]);
                if let Some(value) = rows.find(|value| !value.starts_with('/'))
                    && path.starts_with(&place)
                {
                    return Err(format!(
                        "its path begins with `{column}`, and the value `{value}` does not begin with `/`"
                    ));
                }
                match data.is_raw_in_path(index) {
                    Some(true) => raw.push(column),
                    Some(false) => {}
                    None => {
                        let encoded = data.encoded_column(index)?;
                        path = path.replace(&place, &format!("{{{{{encoded}}}}}"));
                        raw.push(encoded);
                    }
                }
            }
        }
        Ok(with_raw(&path, |name| raw.iter().any(|raw| raw == name)))
    }

    /// Adds a request to the scenario. Its weight is its number of steps.
    fn add_steps(&mut self, request: &Request, places: &[String]) {
        let count = usize::try_from(request.weight).unwrap_or(usize::MAX);
        if self.sent.len().saturating_add(count) > REQUESTS_MAX {
            return self.left_out.beyond(REQUESTS_MAX);
        }
        let step = || Request {
            weight: 1,
            ..request.clone()
        };
        self.sent.extend((0..count).map(|_| step()));
        self.taken += 1;
        if places.iter().any(|place| place.starts_with("random:")) {
            self.remark("Each step draws random numbers of its own, also within one iteration.");
        }
    }

    /// The request of the lab, without credentials.
    fn open(&mut self, given: Given, weight: u32) -> Request {
        let path = self.open_path(&given.path, &given.places);
        let (headers, mut notes) = self.open_headers(given.headers, &given.places);
        let body = given.body.clone();
        let body = body.or_else(|| Some(json_text(given.json.as_ref()?).into_bytes()));
        if let Some(name) = body.as_deref().and_then(secret_in) {
            notes.push(format!("its body contains `{name}` from {}", self.source));
        }
        notes.extend(given.notes);
        Request {
            name: given.name,
            method: given.method,
            path,
            headers,
            body: given.body,
            json: given.json,
            status: given.status,
            notes,
            captures: given.captures,
            pause: given.pause,
            wire: given.wire,
            weight,
        }
    }

    /// The path without parameters that are credentials.
    fn open_path(&mut self, path: &str, places: &[String]) -> String {
        let Some((path, query)) = path.split_once('?') else {
            return path.to_owned();
        };
        let mut open = Vec::new();
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                // A value of the lab is no credential of the file.
                Some((name, value)) if is_secret(name) && !is_place(value, places) => {
                    self.hide(&format!("?{name}="));
                }
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
        places: &[String],
    ) -> (Vec<(String, String)>, Vec<String>) {
        let (mut open, mut notes) = (Vec::<(String, String)>::new(), Vec::new());
        for (name, value) in given {
            let lower = name.to_ascii_lowercase();
            // Pseudo-header fields of HTTP/2, which begin with a colon, repeat method and path.
            if name.starts_with(':') || OF_THE_CONNECTION.contains(&lower.as_str()) {
                continue;
            }
            // The URL of a `Referer` may also contain a credential.
            if named(&name, &value) != value && !is_place(&value, places) {
                self.hide(&name);
            } else if http::HeaderName::try_from(&name).is_err()
                || !has_only(&value, places)
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

    /// The files next to the lab, relative to its folder: bodies and rows of values.
    pub(super) fn files(&self) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
        let bodies = self.sent.iter().enumerate().filter_map(|(index, request)| {
            let body = request.body.clone()?;
            Some((PathBuf::from(text::body_file(index, request)), body))
        });
        let messages = self.sent.iter().enumerate();
        let messages = messages.flat_map(|(index, request)| request.wire.files(index + 1));
        let extra = self.extra.iter().cloned();
        bodies
            .chain(self.data.iter().map(Rows::file))
            .chain(messages)
            .chain(extra)
    }

    /// The contents of the files as text.
    #[cfg(test)]
    pub(super) fn texts(&self) -> Vec<String> {
        let text =
            |(_, content): (PathBuf, Vec<u8>)| String::from_utf8_lossy(&content).into_owned();
        self.files().map(text).collect()
    }
}

/// True if a value is one placeholder of the lab, after a word such as `Bearer`.
fn is_place(value: &str, places: &[String]) -> bool {
    let last = value.rsplit(' ').next().unwrap_or_default();
    let word = last
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"));
    // Another word before it may be a credential, except the name of a scheme.
    value.split(' ').count() <= 2
        && word.is_some_and(|word| {
            let word = without_notation(word.trim());
            places.iter().any(|place| without_notation(place) == word)
        })
}

#[cfg(test)]
mod tests;
