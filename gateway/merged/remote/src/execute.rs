//! Executes a route: sends the requests and assembles the response.

mod payload;

use std::cell::Cell;

use bytes::Bytes;
use futures_util::future::join_all;
use gateway_federation::{Checked, GraphqlError, OperationKind, errors_body};
use gateway_template::{Json, RenderError, Work};
use http::{HeaderValue, Method};

use crate::action::{self, TransformError};
use crate::answer::{Answer, Unreadable};
use crate::asking::Asking;
use crate::call::{Call, CallAnswer, CallError, Sources};
use crate::failure;
use crate::merged::{Prepared, Settings};
use crate::output::{Selecting, Unwritten};
use crate::route::{ActionPart, Content, Item, Part, RemotePart};
use payload::transformed_too_large;

/// A complete GraphQL response with its cookies.
#[derive(Clone, Debug)]
pub struct Executed {
    /// `{"data":…}` or `{"errors":…,"data":null}`.
    pub body: Bytes,
    /// True if the response contains errors.
    pub has_errors: bool,
    /// True if an error replaces data because of a limit.
    pub is_cut: bool,
    /// `set-cookie` values of services and handlers for the client.
    pub cookies: Vec<HeaderValue>,
}

/// The result of one part.
enum Outcome {
    /// A service's GraphQL response without errors.
    Remote(CallAnswer),
    /// The JSON of an action's member, and its cookies.
    Action(Vec<u8>, Vec<HeaderValue>),
    /// No request was sent, because conditions exclude all fields.
    Nothing,
    /// A list of errors.
    Failed(Failure),
}

enum Failure {
    /// Errors of a service, unchanged.
    Verbatim(CallAnswer),
    Own(Vec<u8>, Vec<HeaderValue>),
}

impl From<Box<GraphqlError>> for Failure {
    fn from(error: Box<GraphqlError>) -> Self {
        Failure::from(*error)
    }
}

impl From<GraphqlError> for Failure {
    fn from(error: GraphqlError) -> Self {
        let body = errors_body(&[error]);
        // Only the list inside `{"errors":…}`.
        let list = body[b"{\"errors\":".len()..body.len() - 1].to_vec();
        Failure::Own(list, Vec::new())
    }
}

impl Prepared {
    /// Executes the operation. The future stays on this thread.
    pub async fn execute<S: Sources>(&self, asking: Asking<'_>, sources: &S) -> Executed {
        let run = Run {
            prepared: self,
            checked: &self.checked,
            settings: &self.settings,
            presences: if self.checked.has_conditions() {
                self.checked.presences(asking.variables)
            } else {
                Vec::new()
            },
            asking,
            sources,
            writable: Cell::new(self.settings.bounds.response_bytes),
            receivable: Cell::new(self.settings.bounds.answers_bytes),
            asking_work: Work::of(self.settings.payload_bytes),
            answer_work: Work::of(self.settings.bounds.answers_bytes),
            is_cut: Cell::new(false),
        };
        let parts = &self.route.parts;
        if let Err(error) = run.check_payloads(parts) {
            return run.beyond(error, Vec::new());
        }
        // Before the first request: a mutation must not be executed in part.
        if let Err(error) = run.check_permissions(parts) {
            return failed(&Failure::from(error), Vec::new());
        }
        let outcomes = match parts.as_slice() {
            // One part needs no list of futures. Most operations have one part.
            [only] => vec![run.part(only).await],
            _ if self.checked.kind() == OperationKind::Query => {
                // All parts run in one task, so they share the variables and presences without a lock.
                join_all(parts.iter().map(|part| run.part(part))).await
            }
            // Mutations run one after the other. After a failure, the rest must not be executed.
            _ => {
                let mut outcomes = Vec::with_capacity(parts.len());
                for part in parts {
                    let outcome = run.part(part).await;
                    let is_over = matches!(outcome, Outcome::Failed(_));
                    outcomes.push(outcome);
                    if is_over {
                        break;
                    }
                }
                outcomes
            }
        };
        run.respond(outcomes).await
    }
}

/// The execution of one operation for one request.
struct Run<'a, S> {
    prepared: &'a Prepared,
    checked: &'a Checked,
    settings: &'a Settings,
    presences: Vec<bool>,
    asking: Asking<'a>,
    sources: &'a S,
    /// Bytes of the response that actions and introspection may still write.
    writable: Cell<usize>,
    /// Bytes of service responses that may still be kept.
    receivable: Cell<usize>,
    /// Output bytes that the request templates of all actions may still produce.
    asking_work: Work,
    /// Output bytes that the response templates of all actions may still produce.
    answer_work: Work,
    /// True if an error replaces data because of a limit.
    is_cut: Cell<bool>,
}

impl<S: Sources> Run<'_, S> {
    fn is_there(&self, presence: Option<usize>) -> bool {
        presence.is_none_or(|index| self.presences.get(index).is_some_and(|it| *it))
    }

    fn check_permissions(&self, parts: &[Part]) -> Result<(), GraphqlError> {
        for part in parts {
            if let Part::Action(part) = part
                && self.is_there(part.presence)
            {
                self.settings.actions[part.action].permit(self.asking.session)?;
            }
        }
        Ok(())
    }

    async fn part(&self, part: &Part) -> Outcome {
        match part {
            Part::Remote(part) => {
                let is_wanted = self.is_there(part.namespace_presence)
                    && part.keys.iter().any(|(_, it)| self.is_there(*it));
                if !is_wanted {
                    return Outcome::Nothing;
                }
                self.remote(part).await
            }
            Part::Action(part) if self.is_there(part.presence) => match self.action(part).await {
                Ok((json, cookies)) => Outcome::Action(json, cookies),
                Err(error) => Outcome::Failed(Failure::from(*error)),
            },
            Part::Action(_) => Outcome::Nothing,
        }
    }

    async fn remote(&self, part: &RemotePart) -> Outcome {
        let remote = &self.settings.remotes[part.remote];
        let call = Call {
            source: part.remote,
            method: Method::POST,
            url: None,
            headers: remote.headers.of(self.asking.client, self.asking.session),
            body: self.remote_body(part),
            is_idempotent: part.is_idempotent,
        };
        let path = failure::root_path(&part.field);
        let failed = |message: String| failure::error(message, &path, "remote-schema-error");
        let answer = match self.sources.call(call).await {
            Ok(answer) => answer,
            Err(CallError(reason)) => {
                // Names the service only. Its address goes to the log of the caller.
                let message = format!(
                    "HTTP exception occurred while sending the request to `{}`",
                    remote.name
                );
                let error = self.with_internal(failed(message), &reason);
                return Outcome::Failed(error.into());
            }
        };
        if let Err(error) = self.receive(&answer) {
            return Outcome::Failed(error.into());
        }
        let problem = match Answer::read(&answer.body) {
            Err(Unreadable::Json) => "Received invalid JSON value from remote".to_owned(),
            Err(Unreadable::Object) => {
                "Received invalid JSON value from remote: expecting a GraphQL response".to_owned()
            }
            // The client receives a service's errors unchanged. The whole response is kept, because `errors`
            // is a slice of it.
            Ok(read) if read.errors.is_some() => {
                return Outcome::Failed(Failure::Verbatim(answer));
            }
            Ok(read) => {
                let missing = part
                    .keys
                    // A missing member would leave a gap in the response. Replacing it with null could
                    // violate the schema.
                    .iter()
                    .find(|(key, presence)| self.is_there(*presence) && read.member(key).is_none());
                match missing {
                    Some((key, _)) => format!("expecting key \"{key}\" in the answer of remote"),
                    None => return Outcome::Remote(answer),
                }
            }
        };
        let status = answer.status.as_u16();
        let error = self.with_internal(failed(problem), &format!("status {status}"));
        Outcome::Failed(error.into())
    }

    /// Adds the internal reason, if internal errors are enabled. Only developers should see it.
    fn with_internal(&self, error: GraphqlError, reason: &str) -> GraphqlError {
        if self.settings.shows_internal {
            error.with("internal", reason)
        } else {
            error
        }
    }

    fn remote_body(&self, part: &RemotePart) -> Bytes {
        let mut body = Vec::with_capacity(part.prefix.len() + 128);
        body.extend_from_slice(&part.prefix);
        let mut separator: &[u8] = b",\"variables\":{";
        for (index, opener) in &part.variables {
            if let Some(json) = self.asking.variables.json(*index) {
                body.extend_from_slice(std::mem::replace(&mut separator, b","));
                body.extend_from_slice(opener);
                body.extend_from_slice(json);
            }
        }
        // An unused first separator means that no variable was given. `variables` is then left out.
        body.extend_from_slice(if separator == b"," { b"}}" } else { b"}" });
        body.into()
    }

    async fn action(
        &self,
        part: &ActionPart,
    ) -> Result<(Vec<u8>, Vec<HeaderValue>), Box<GraphqlError>> {
        let action = &self.settings.actions[part.action];
        let path = failure::root_path(&action.name);
        let source = self.settings.remotes.len() + part.action;
        // Created even if the request transformation replaces it, because templates read the payload as
        // `$body`.
        let payload = self.payload(&action.name, part);
        let hide = |error: GraphqlError| Box::new(self.hidden(error));
        let call = action.call(source, payload, self.asking, &self.asking_work);
        let call = call.map_err(|reason| match reason {
            TransformError::Template {
                source: RenderError::TooMuch(most),
                ..
            } => self.cut(transformed_too_large(most)),
            reason => {
                let error = failure::error("Request Transformation Failed", &path, "unexpected");
                hide(error.with("internal", reason.to_string()))
            }
        })?;
        let answer = self.sources.call(call).await.map_err(|CallError(reason)| {
            let message = "http exception when calling webhook";
            let error = failure::error(message, &path, "unexpected");
            Box::new(self.with_internal(error, &reason))
        })?;
        self.receive(&answer)?;
        let body = Json::parse(&answer.body);
        let status = action::response_variable(answer.status);
        let transformed = body
            .as_ref()
            .ok()
            .and_then(|body| action.transformed(body, &status, &self.answer_work));
        if let Some(Err(RenderError::TooMuch(_))) = transformed {
            return Err(self.cut(self.settings.bounds.answers_too_large()));
        }
        let value = action
            .judge(&answer, &body, transformed.as_ref())
            .map_err(hide)?;
        let mut out = Vec::with_capacity(answer.body.len());
        let selecting = Selecting {
            checked: self.checked,
            presences: &self.presences,
            left: &self.writable,
        };
        if let Some(member) = self.checked.root_members().nth(part.member) {
            let written = selecting.write(member, value, &mut out);
            written.map_err(|reason| match reason {
                Unwritten::Wrong(message) => Box::new(failure::error(message, &path, "unexpected")),
                Unwritten::TooLarge => self.cut(self.settings.bounds.response_too_large()),
            })?;
        }
        Ok((out, answer.cookies))
    }

    /// Counts a response that is kept until all responses have arrived.
    fn receive(&self, answer: &CallAnswer) -> Result<(), Box<GraphqlError>> {
        let left = self.receivable.get().checked_sub(answer.body.len());
        let left = left.ok_or_else(|| self.cut(self.settings.bounds.answers_too_large()))?;
        self.receivable.set(left);
        Ok(())
    }

    /// Creates the error that replaces data beyond a limit.
    fn cut(&self, error: GraphqlError) -> Box<GraphqlError> {
        self.is_cut.set(true);
        Box::new(error.with("path", "$"))
    }

    fn hidden(&self, mut error: GraphqlError) -> GraphqlError {
        if !self.settings.shows_internal {
            error.extensions.remove("internal");
        }
        error
    }

    async fn respond(&self, mut outcomes: Vec<Outcome>) -> Executed {
        // Cookies come first, because the client receives them even if a part has failed.
        let cookies = cookies(&mut outcomes);
        if let Some(failure) = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        }) {
            return Executed {
                is_cut: self.is_cut.get(),
                ..failed(failure, cookies)
            };
        }
        let route = &self.prepared.route;
        // The body is shared, not copied: the client receives the service's body unchanged.
        if route.passes_through
            && let [Outcome::Remote(answer)] = outcomes.as_slice()
        {
            return Executed {
                body: answer.body.clone(),
                has_errors: false,
                is_cut: false,
                cookies,
            };
        }
        // Read a second time: an `Answer` borrows its body, so `Outcome` cannot hold both. Only operations
        // over several services reach this code.
        let answers: Vec<Option<Answer<'_>>> = outcomes
            .iter()
            .map(|outcome| match outcome {
                Outcome::Remote(answer) => Answer::read(&answer.body).ok(),
                _ => None,
            })
            .collect();
        let mut introspected = Vec::new();
        if let Err(error) = self.introspect(&route.items, &mut introspected).await {
            return self.beyond(error, cookies);
        }
        let pieces = Pieces {
            outcomes: &outcomes,
            answers: &answers,
            introspected: &introspected,
        };
        let mut out = b"{\"data\":".to_vec();
        self.write_items(&route.items, &pieces, &mut out);
        out.push(b'}');
        Executed {
            body: out.into(),
            has_errors: false,
            is_cut: false,
            cookies,
        }
    }

    /// The response to a request that exceeds a limit.
    fn beyond(&self, error: GraphqlError, cookies: Vec<HeaderValue>) -> Executed {
        let failure = Failure::from(error.with("path", "$"));
        Executed {
            is_cut: true,
            ..failed(&failure, cookies)
        }
    }

    /// Appends the results of `__schema` and `__type` with their positions. Their total size is limited.
    async fn introspect(
        &self,
        items: &[Item],
        told: &mut Vec<(usize, Vec<u8>)>,
    ) -> Result<(), GraphqlError> {
        for item in items.iter().filter(|item| self.is_there(item.presence)) {
            // Both are root fields, never fields of a namespace.
            let Content::Introspection(position) = &item.content else {
                continue;
            };
            let variables = self.asking.variables;
            let give_way = async || self.sources.give_way().await;
            let left = self.writable.get();
            let written = self
                .checked
                .write_introspection(*position, variables, Vec::new(), left, give_way)
                .await;
            let json = written.map_err(|_| self.settings.bounds.response_too_large())?;
            self.writable.set(left - json.len());
            told.push((*position, json));
        }
        Ok(())
    }

    fn write_items(&self, items: &[Item], pieces: &Pieces<'_>, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut is_first = true;
        for item in items.iter().filter(|item| self.is_there(item.presence)) {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(&item.opener);
            match &item.content {
                Content::Text(text) => out.extend_from_slice(text),
                Content::Introspection(position) => {
                    let mut told = pieces.introspected.iter();
                    let told = told.find(|(known, _)| known == position);
                    out.extend_from_slice(told.map_or(b"null", |(_, json)| json));
                }
                Content::Namespace(items) => self.write_items(items, pieces, out),
                Content::Action(part) => match pieces.outcomes.get(*part) {
                    Some(Outcome::Action(json, _)) => out.extend_from_slice(json),
                    _ => out.extend_from_slice(b"null"),
                },
                Content::Member { part, key } => {
                    let answer = pieces.answers.get(*part).and_then(Option::as_ref);
                    let raw = answer.and_then(|answer| answer.member(key));
                    self.write_member(*part, key, raw.unwrap_or("null"), out);
                }
            }
        }
        out.push(b'}');
    }

    fn write_member(&self, part: usize, key: &str, raw: &str, out: &mut Vec<u8>) {
        match self.prepared.route.parts.get(part) {
            Some(Part::Remote(RemotePart {
                type_names: Some(type_names),
                remote,
                ..
            })) => type_names.write(key, raw, &self.prepared.merged.names[*remote], out),
            _ => out.extend_from_slice(raw.as_bytes()),
        }
    }
}

/// The inputs of a response.
struct Pieces<'a> {
    outcomes: &'a [Outcome],
    /// The outcomes that are service responses.
    answers: &'a [Option<Answer<'a>>],
    /// Results of introspection, by the position of the member.
    introspected: &'a [(usize, Vec<u8>)],
}

fn cookies(outcomes: &mut [Outcome]) -> Vec<HeaderValue> {
    let mut cookies = Vec::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Remote(answer) | Outcome::Failed(Failure::Verbatim(answer)) => {
                cookies.append(&mut answer.cookies);
            }
            Outcome::Action(_, own) | Outcome::Failed(Failure::Own(_, own)) => {
                cookies.append(own);
            }
            Outcome::Nothing => {}
        }
    }
    cookies
}

fn failed(failure: &Failure, cookies: Vec<HeaderValue>) -> Executed {
    let mut body = b"{\"errors\":".to_vec();
    match failure {
        Failure::Own(list, _) => body.extend_from_slice(list),
        Failure::Verbatim(answer) => {
            let read = Answer::read(&answer.body).expect("it was read before, when it arrived");
            let errors = read.errors.expect("`Verbatim` is an answer with errors");
            body.extend_from_slice(errors.as_bytes());
        }
    }
    body.extend_from_slice(b",\"data\":null}");
    Executed {
        body: body.into(),
        has_errors: true,
        is_cut: false,
        cookies,
    }
}
