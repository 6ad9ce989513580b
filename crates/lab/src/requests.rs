//! The requests of a lab: files, globs and inline requests, with the defaults of the lab filled in.

use std::path::Path;

use model::{BodyRule, Data, Expectation, Framing, StatusRule, Step, StreamRule};
use yaml_with_places::{At, Finding, Json, OneOrMany, Place};

use crate::experiment::{Expect, RequestTemplate};
use crate::formats::{
    Format, HeaderName, HeaderValue, Method, RequestPath, StatusName, Title, Verbatim, Written,
};
use crate::places::{Places, Within};
use crate::reading::Reading;
use crate::scope::Scope;
use crate::steps;
use crate::streams;
use crate::websockets;
use crate::wire::{
    ExpectFile, GraphqlFile, Headers, LoadFile, RequestEntry, RequestFile, SameAsFile, SentFile,
    StepFile, StreamEntry, default,
};

mod batch;
pub(crate) mod files;
mod grpc;

pub(crate) use batch::{check, expect_arrays};
use files::{Body, bytes, check_json, graphql_body};

/// A request with its place for error messages.
type Found = (RequestTemplate, Place);

/// The requests to one variant, before places are filled in.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    requests: &'a OneOrMany<At<RequestEntry>>,
    steps: Option<&'a [At<StepFile>]>,
    /// The requests before the load, with the requests of the lab first.
    prepare: [&'a OneOrMany<At<RequestEntry>>; 2],
    method: Option<&'a Written<Method>>,
    path: Option<&'a At<Written<RequestPath>>>,
    /// Headers of all requests. A later header replaces an earlier header with the same name.
    headers: [&'a Headers; 2],
    data: Option<&'a Data>,
    /// The rule of streams of requests without a rule.
    stream: Option<&'a At<StreamEntry>>,
    /// The names of the variant.
    scope: Option<&'a Scope<'a>>,
}

const NO_REQUESTS: &OneOrMany<At<RequestEntry>> = &OneOrMany(Vec::new());
const NO_HEADERS: &Headers = &crate::fields::Table(Vec::new());

impl<'a> Sent<'a> {
    /// Returns the requests of the lab, or the requests of the variant that replace them.
    pub(crate) fn of_lab(load: &'a LoadFile, own: Option<&'a SentFile>) -> Sent<'a> {
        let own_requests = own.map(|own| &own.requests).filter(|own| !own.0.is_empty());
        let has_own = own_requests.is_some();
        let steps = load.scenario.as_ref().map(|steps| steps.value.as_slice());
        Sent {
            requests: own_requests.unwrap_or(&load.requests),
            // `check_scenario` reports a lab with both.
            steps: steps.filter(|_| !has_own),
            prepare: [&load.prepare, own.map_or(NO_REQUESTS, |own| &own.prepare)],
            method: own
                .and_then(|own| own.method.as_ref())
                .or(load.method.as_ref()),
            path: own.and_then(|own| own.path.as_ref()).or(load.path.as_ref()),
            headers: [&load.headers, own.map_or(NO_HEADERS, |own| &own.headers)],
            data: None,
            stream: load.stream.as_ref(),
            scope: None,
        }
    }

    /// Returns the requests of a scenario in a file of its own.
    pub(crate) fn of_steps(steps: &'a [At<StepFile>], headers: &'a Headers) -> Sent<'a> {
        Sent {
            requests: NO_REQUESTS,
            steps: Some(steps),
            prepare: [NO_REQUESTS; 2],
            method: None,
            path: None,
            headers: [headers, NO_HEADERS],
            data: None,
            stream: None,
            scope: None,
        }
    }

    /// Adds the values of the load.
    pub(crate) fn with_data(self, data: Option<&'a Data>) -> Sent<'a> {
        Sent { data, ..self }
    }

    /// Adds the names of a variant.
    pub(crate) fn within(self, scope: &'a Scope<'a>) -> Sent<'a> {
        Sent {
            scope: Some(scope),
            ..self
        }
    }

    fn places<'s>(&'s self, captured: &'s [String]) -> Places<'s> {
        Places {
            scope: self.scope,
            data: self.data,
            captured,
        }
    }

    /// Returns every request in the order of sending, and the steps of a scenario.
    pub(crate) fn check(
        &self,
        at: Place,
        reading: &mut Reading<'_>,
    ) -> (Vec<RequestTemplate>, Vec<Step>) {
        for headers in self.headers {
            check_headers(headers, reading);
        }
        let mut steps = Vec::new();
        let mut found: Vec<Found> = Vec::new();
        if let Some(written) = self.steps {
            let mut captured = Vec::new();
            for step in written {
                let sending = Sending {
                    sent: self,
                    places: self.places(&captured),
                };
                let request = sending.inline(&step.value.request(), step.place, reading);
                let name = request
                    .as_ref()
                    .map_or_else(String::new, |(request, _)| request.name.clone());
                websockets::check_step(&step.value, reading);
                steps.push(steps::step(name, &step.value, reading));
                found.extend(request);
                // After the step itself, because only later steps can use its captures.
                steps::add_names(&step.value, &mut captured);
            }
        }
        let sending = Sending {
            sent: self,
            places: self.places(&[]),
        };
        sending.entries(self.requests, reading, &mut found);
        // A load without requests is one `GET` of the path.
        if self.requests.0.is_empty() && self.steps.is_none() {
            let request = sending.finish(&RequestFile::default(), None, at, reading);
            found.push((request, at));
        }
        check_names(&found, reading);
        let kinds = found
            .iter()
            .map(|(it, place)| (it.websocket.is_some(), *place));
        // The steps of a scenario may be of both kinds.
        if self.steps.is_none() {
            websockets::check_kinds(kinds, reading);
        }
        let requests = found.into_iter().map(|(request, _)| request).collect();
        (requests, steps)
    }

    /// Returns the requests that are sent once after each start, before all other requests.
    pub(crate) fn prepare(&self, reading: &mut Reading<'_>) -> Vec<RequestTemplate> {
        let sending = Sending {
            sent: self,
            places: Places {
                // It is sent once, so it has no values that differ from request to request.
                data: None,
                ..self.places(&[])
            },
        };
        let mut found = Vec::new();
        for entries in self.prepare {
            sending.entries(entries, reading, &mut found);
        }
        found.into_iter().map(|(request, _)| request).collect()
    }

    /// Returns one request outside of the load.
    pub(crate) fn single(
        &self,
        request: &RequestFile,
        at: Place,
        reading: &mut Reading<'_>,
    ) -> Option<RequestTemplate> {
        let sending = Sending {
            sent: self,
            places: Places {
                // It is sent once, so it has no values that differ from request to request.
                data: None,
                ..self.places(&[])
            },
        };
        let found = sending.inline(request, at, reading);
        found.map(|(request, _)| request)
    }
}

/// Refuses requests of a variant in a lab with a scenario. They would have no steps, and the iterations of
/// the baseline would have no counterpart.
pub(crate) fn check_scenario(load: &LoadFile, own: Option<&SentFile>, reading: &mut Reading<'_>) {
    let own = own.and_then(|own| own.requests.0.first());
    if let (Some(scenario), Some(first)) = (&load.scenario, own) {
        reading.findings.add(
            Finding::new(first.place, "a variant cannot have `requests` if the lab has a `scenario`")
                .related(scenario.place, "`scenario` is given here")
                .help("all variants follow the same steps. Use a setting in the steps, or give the lab `requests`"),
        );
    }
}

fn check_names(found: &[Found], reading: &mut Reading<'_>) {
    for (index, (request, place)) in found.iter().enumerate() {
        let first = found[..index]
            .iter()
            .find(|(it, _)| it.name == request.name);
        if let Some((_, first)) = first {
            reading.findings.add(
                Finding::new(*place, format!("two requests are named `{}`", request.name))
                    .related(*first, "the first request with this name")
                    .help(
                        "give each request its own `name`. To send one more often, give it a `weight`",
                    ),
            );
        }
    }
}

/// The context for reading the requests of a variant.
struct Sending<'s, 'a> {
    sent: &'s Sent<'a>,
    places: Places<'s>,
}

impl Sending<'_, '_> {
    /// Returns the requests of a list of entries.
    fn entries(
        &self,
        entries: &OneOrMany<At<RequestEntry>>,
        reading: &mut Reading<'_>,
        found: &mut Vec<Found>,
    ) {
        for entry in &entries.0 {
            match &entry.value {
                RequestEntry::Text(pattern) => self.files(pattern, entry.place, reading, found),
                RequestEntry::Mapping(request) => {
                    found.extend(self.inline(request, entry.place, reading));
                }
            }
        }
    }

    /// Returns the requests of the files that match a pattern, sorted by name.
    fn files(
        &self,
        pattern: &str,
        place: Place,
        reading: &mut Reading<'_>,
        found: &mut Vec<Found>,
    ) {
        for path in files::named(pattern, place, reading) {
            if let Some(body) = self.file_body(&path, place, reading) {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let name = At {
                    place,
                    value: Verbatim(Title(name.into_owned())),
                };
                let request = RequestFile {
                    name: Some(name),
                    ..RequestFile::default()
                };
                found.push((self.finish(&request, Some(body), place, reading), place));
            }
        }
    }

    /// Returns the body of a request file.
    fn file_body(&self, path: &Path, place: Place, reading: &mut Reading<'_>) -> Option<Body> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if !matches!(extension.as_ref(), "json" | "graphql") {
            reading.findings.add(
                Finding::new(place, format!("`{}` is not a request", path.display())).help(
                    "request files are `.json` (a body) or `.graphql` (a query). For any other body \
                     write `{body: file, headers: {Content-Type: …}}`",
                ),
            );
            return None;
        }
        let text = match reading.text(path) {
            Ok(text) => text,
            Err(why) => {
                reading.findings.add(
                    Finding::new(place, why)
                        .help("paths are relative to the file that contains them"),
                );
                return None;
            }
        };
        let filled = self.places.fill(&text, Within::Quoted, place, reading);
        let bytes = if extension == "graphql" {
            graphql_body(&filled, None)
        } else {
            // The text is unchanged, so that a mistake has its line in the file.
            check_json(path, &text, place, reading)?;
            filled.into_bytes()
        };
        Some(Body {
            bytes,
            is_json: true,
        })
    }

    /// Reads an inline request of the lab.
    fn inline(&self, request: &RequestFile, at: Place, reading: &mut Reading<'_>) -> Option<Found> {
        check_headers(&request.headers, reading);
        websockets::check_request(request, reading);
        check_one_body(request, reading)?;
        let call = match &request.grpc {
            Some(file) if grpc::check_keys(request, reading) => {
                Some(grpc::call(file, self.places, reading)?)
            }
            Some(_) => return None,
            None => None,
        };
        let fill = |text: &At<String>, within: Within, reading: &mut Reading<'_>| {
            self.places.fill(&text.value, within, text.place, reading)
        };
        let json = |json: &At<Json>, reading: &mut Reading<'_>| {
            let text = &json.value.0;
            self.places.fill(text, Within::Json, json.place, reading)
        };
        let mut batch = Vec::new();
        let body = if let Some(file) = &request.body {
            let path = reading.resolve(&file.value, file.place);
            let bytes = bytes(&path, file.place, reading)?;
            Some(Body {
                is_json: path.extension().is_some_and(|it| it == "json"),
                bytes: match String::from_utf8(bytes) {
                    Ok(text) => {
                        let filled = self.places.fill(&text, Within::Text, file.place, reading);
                        filled.into_bytes()
                    }
                    // Binary bytes have no places.
                    Err(binary) => binary.into_bytes(),
                },
            })
        } else if let Some(files) = &request.batch {
            let (of_all, names) = self.batch(files, reading)?;
            batch = names;
            Some(of_all)
        } else if let Some(written) = &request.json {
            Some(Body {
                bytes: json(written, reading).into_bytes(),
                is_json: true,
            })
        } else if let Some(query) = &request.query {
            let query = fill(query, Within::Quoted, reading);
            let variables = request.variables.as_ref().map(|it| json(it, reading));
            Some(Body {
                bytes: graphql_body(&query, variables.as_deref()),
                is_json: true,
            })
        } else {
            None
        };
        // The place of its name, because the only mistake that can still be found is a duplicate name.
        let place = request.name.as_ref().map_or(at, |name| name.place);
        let finished = self.finish(request, body, at, reading);
        let finished = RequestTemplate { batch, ..finished };
        let finished = match call {
            None => finished,
            Some(call) => with_call(finished, call, request, reading),
        };
        Some((finished, place))
    }

    /// Fills in the defaults of the lab.
    fn finish(
        &self,
        request: &RequestFile,
        body: Option<Body>,
        at: Place,
        reading: &mut Reading<'_>,
    ) -> RequestTemplate {
        // The same choice as `curl` makes.
        let usual_method = if body.is_some() { "POST" } else { "GET" };
        let method = request.method.as_ref().or(self.sent.method);
        let path = request.path.as_ref().or(self.sent.path);
        let written = path.map_or(default::PATH, |path| &path.value.0.0);
        let path_at = path.map_or(at, |path| path.place);
        let mut headers = Vec::new();
        // From general to specific: later headers replace earlier headers.
        for more in self.sent.headers.into_iter().chain([&request.headers]) {
            self.add_headers(more, &mut headers, reading);
        }
        let has_type = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if body.as_ref().is_some_and(|body| body.is_json) && !has_type {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let own = request.expect.as_ref();
        let stream = request.stream.as_ref().or(self.sent.stream);
        let socket = request.websocket.as_ref().map(|it| it.place);
        if let (Some(stream), Some(own)) = (stream.map(|it| it.place).or(socket), own) {
            streams::check_expect(own, stream, at, reading);
        }
        RequestTemplate {
            name: request
                .name
                .as_ref()
                .map_or(written, |At { value, .. }| &value.0.0)
                .to_owned(),
            method: method
                .map_or(usual_method, |Written(Method(method))| method)
                .to_owned(),
            path: self.path(written, path_at, reading),
            headers,
            body: body.map(|body| body.bytes).unwrap_or_default(),
            batch: Vec::new(),
            weight: request.weight.unwrap_or(default::WEIGHT),
            expect: own.map(|file| expect(file, self.places, reading)),
            stream: stream.map(|entry| streams::rule(entry, request, reading)),
            websocket: websockets::call(request, self.places, reading),
            grpc: None,
        }
    }

    fn path(&self, written: &str, place: Place, reading: &mut Reading<'_>) -> String {
        let filled = self.places.fill(written, Within::Path, place, reading);
        // The text of the file is already checked. Only filled-in values are new.
        if filled != written
            && let Err(wrong) = RequestPath::read(&filled)
        {
            let finding = Finding::new(place, wrong.message).help_if(wrong.help);
            reading.findings.add(finding);
        }
        filled
    }

    /// Adds header lines. A later line replaces an earlier line with the same name.
    fn add_headers(
        &self,
        headers: &Headers,
        lines: &mut Vec<(String, String)>,
        reading: &mut Reading<'_>,
    ) {
        add_headers(headers, self.places, lines, reading);
    }
}

/// Turns a request into a call. Its metadata replaces headers of the lab.
fn with_call(
    request: RequestTemplate,
    found: grpc::Call,
    file: &RequestFile,
    reading: &mut Reading<'_>,
) -> RequestTemplate {
    let several = found.answers_several();
    let stream = match (request.stream, several) {
        (Some(_), Some(false)) => {
            let finding = Finding::new(found.place, "`stream` is for a stream of answers");
            let help = "the method has one answer. Remove `stream`";
            reading.findings.add(finding.help(help));
            None
        }
        (None, Some(true)) => Some(StreamRule::of(Framing::Grpc)),
        (stream, _) => stream,
    };
    if let (Some(own), Some(true)) = (&file.expect, several) {
        streams::check_expect(own, found.place, found.place, reading);
    }
    let grpc::Call { call, metadata, .. } = found;
    let is_own = |name: &str| {
        let mut own = metadata.iter();
        own.any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    let mut headers = request.headers;
    // Headers of the lab may also be for requests of HTTP.
    headers.retain(|(name, _)| !is_own(name) && !grpc_schema::is_own_header(name));
    headers.extend(metadata);
    RequestTemplate {
        name: match request.name.as_str() {
            default::PATH => call.method.clone(),
            _ => request.name,
        },
        method: "POST".to_owned(),
        path: call.path(),
        headers,
        stream,
        grpc: Some(call),
        ..request
    }
}

fn check_one_body(request: &RequestFile, reading: &mut Reading<'_>) -> Option<()> {
    let mut given = request.bodies();
    let first = given.next();
    if let (Some((first, first_place)), Some((second, place))) = (first, given.next()) {
        reading.findings.add(
            Finding::new(
                place,
                format!("`{first}` and `{second}` exclude each other"),
            )
            .related(first_place, format!("`{first}` is given here"))
            .help("a request has one body. Remove one of the two"),
        );
        return None;
    }
    if let (Some(variables), None) = (&request.variables, &request.query) {
        reading.findings.add(
            Finding::new(variables.place, "`variables` without `query`")
                .help("`variables` belong to a `query`. For another body write `json`"),
        );
    }
    Some(())
}

/// Adds header lines. A later line replaces an earlier line with the same name.
fn add_headers(
    headers: &Headers,
    places: Places<'_>,
    lines: &mut Vec<(String, String)>,
    reading: &mut Reading<'_>,
) {
    for (At { value: name, .. }, At { value, place }) in &headers.0 {
        let (HeaderName(name), Verbatim(HeaderValue(value))) = (name, value);
        let filled = places.fill(value, Within::Text, *place, reading);
        if let Err(wrong) = HeaderValue::read(&filled) {
            let finding = Finding::new(*place, wrong.message).help_if(wrong.help);
            reading.findings.add(finding);
        }
        // Replaced, not added, because a header with two lines would be a different request.
        lines.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        lines.push((name.clone(), filled));
    }
}

fn check_headers(headers: &Headers, reading: &mut Reading<'_>) {
    for (name, _) in headers.0.iter().filter(|(name, _)| name.value.is_own()) {
        reading.findings.add(
            Finding::new(
                name.place,
                format!("the generator itself writes `{}`", name.value.0),
            )
            .help("remove it. For a new connection per request write `keep-alive: off`"),
        );
    }
}

/// Returns the checks of every response.
pub(crate) fn expect(file: &ExpectFile, places: Places<'_>, reading: &mut Reading<'_>) -> Expect {
    // A response is compared with values that exist before the load.
    let known = Places {
        data: None,
        captured: &[],
        ..places
    };
    let mut headers = Vec::new();
    add_headers(&file.headers, known, &mut headers, reading);
    let body = file.body.as_ref().and_then(|body| {
        let path = reading.resolve(&body.value, body.place);
        bytes(&path, body.place, reading)
    });
    let ignore: Vec<String> = file.ignore.0.iter().map(|it| it.0.0.clone()).collect();
    Expect {
        answer: Expectation {
            status: status(file, reading),
            graphql: file.graphql == Some(GraphqlFile::NoErrors),
            body: body.map_or(BodyRule::Any, |body| BodyRule::known(&body, &ignore)),
            headers,
            ..Expectation::default()
        },
        same_as_baseline: file.same_as == Some(SameAsFile::Baseline),
        ignore,
    }
}

/// Returns the rule for the status.
fn status(file: &ExpectFile, reading: &mut Reading<'_>) -> StatusRule {
    let Some(written) = &file.status else {
        return StatusRule::Success;
    };
    let parts = written
        .value
        .0
        .iter()
        .map(|Verbatim(StatusName(part))| *part);
    match StatusRule::of(&parts.collect::<Vec<_>>()) {
        Ok(rule) => rule,
        Err(wrong) => {
            let finding = Finding::new(written.place, wrong);
            let help = "write one status, a class or a list: `200`, `2xx`, `[200, 429]`";
            reading.findings.add(finding.help(help));
            StatusRule::Success
        }
    }
}
