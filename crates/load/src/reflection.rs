//! Asks a server with reflection for the descriptors of a method, before a load.

use std::sync::Arc;
use std::time::Duration;

use grpc_schema::reflection::{
    FILES_MAX, Files, METHODS, Question, ReflectionAnswer, decode, encode,
};
use grpc_schema::{CallSchema, frame};
use model::{Framing, GrpcDescriptors, StreamRule};

use crate::exchange::exchange;
use crate::grpc::first_message;
use crate::job::{Expectation, Request, Resumption, Target, Version};

/// The largest number of rounds. A file may import files that the server has not sent.
const ROUNDS_MAX: usize = 64;

/// Questions in one round.
const AT_ONCE_MAX: usize = 64;

/// Gives a call its descriptors by reflection, if it needs them from the server. Any other request stays
/// unchanged.
///
/// # Errors
/// If the server does not describe the method, or if the call does not fit it.
pub fn resolve(request: &mut Request, target: &Target, limit: Duration) -> Result<(), String> {
    let Some(call) = &mut request.grpc else {
        return Ok(());
    };
    if call.descriptors != GrpcDescriptors::Reflection {
        return Ok(());
    }
    let (service, _) = call.method.rsplit_once('/').ok_or_else(|| {
        let found = &call.method;
        format!("expected a method as `package.Service/Method`, found `{found}`")
    })?;
    let set = match call.protocol.needs_http2() {
        true => descriptors(target, service, limit)?,
        // Reflection itself is a call of gRPC.
        false => descriptors(&over_http2(target), service, limit).map_err(|reason| {
            format!(
                "{reason}. Reflection is a call of gRPC over HTTP/2, also for `{}`",
                call.protocol.word()
            )
        })?,
    };
    describe(request, Arc::from(set))
}

/// Returns the target for a call over HTTP/2.
fn over_http2(target: &Target) -> Target {
    let mut target = target.clone();
    target.protocol.version = Version::Http2 { streams: 1 };
    target.protocol.resumption = Resumption::Off;
    target
}

/// Gives a call the descriptors that its server has sent. Any other request stays unchanged.
///
/// # Errors
/// If the call does not fit them.
pub fn describe(request: &mut Request, set: Arc<[u8]>) -> Result<(), String> {
    let Some(call) = &mut request.grpc else {
        return Ok(());
    };
    let method = CallSchema::read(&set)
        .and_then(|schema| schema.method(&call.method))
        .map_err(|reason| format!("by reflection: {reason}"))?;
    call.descriptors = GrpcDescriptors::Set(set);
    request.expect.grpc = Some(call.rule());
    let is_stream = method.answers_several();
    match (&request.expect.stream, is_stream) {
        (Some(_), false) => Err(format!(
            "`{}` has one answer, and `stream` is for a method with a stream of answers",
            method.name()
        )),
        (None, true) => {
            request.expect.stream = Some(StreamRule::of(Framing::Grpc));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the set of descriptors of a service.
fn descriptors(target: &Target, service: &str, limit: Duration) -> Result<Vec<u8>, String> {
    let first = [Question::FileOfService(service.to_owned())];
    // Older servers only have the second method.
    let mut reasons = Vec::new();
    for method in METHODS {
        match ask(target, method, &first, limit) {
            Ok(replies) => return complete(target, method, replies, limit),
            Err(Refusal::Final(reason)) => return Err(reason),
            Err(Refusal::NoReflection(reason)) => reasons.push(reason),
        }
    }
    Err(format!(
        "the server does not describe `{service}` by reflection: {}. Give the `.proto` file or a set of descriptors",
        reasons.pop().unwrap_or_default()
    ))
}

/// Asks for imported files until all are there.
fn complete(
    target: &Target,
    method: &str,
    first: Vec<Vec<u8>>,
    limit: Duration,
) -> Result<Vec<u8>, String> {
    let mut files = Files::default();
    first.into_iter().for_each(|file| files.add(file));
    for _ in 0..ROUNDS_MAX {
        let missing = files.missing();
        if missing.is_empty() {
            return Ok(files.into_set());
        }
        let wanted = missing.into_iter().take(AT_ONCE_MAX);
        let questions: Vec<Question> = wanted.map(Question::File).collect();
        let before = files.len();
        let found = ask(target, method, &questions, limit).map_err(Refusal::reason)?;
        found.into_iter().for_each(|file| files.add(file));
        if files.len() == before {
            break;
        }
        if files.len() > FILES_MAX {
            return Err(format!(
                "expected at most {FILES_MAX} files by reflection, found more"
            ));
        }
    }
    let missing = files.missing().join("`, `");
    Err(format!(
        "the server does not send the imported files `{missing}` by reflection"
    ))
}

/// The reason that there is no file.
enum Refusal {
    /// The server does not know the method of reflection.
    NoReflection(String),
    Final(String),
}

impl Refusal {
    fn reason(self) -> String {
        match self {
            Refusal::NoReflection(reason) | Refusal::Final(reason) => reason,
        }
    }
}

/// Asks questions in one call, and returns the files of all answers.
fn ask(
    target: &Target,
    method: &str,
    questions: &[Question],
    limit: Duration,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut request = Request::get(method);
    request.method = "POST".to_owned();
    request.headers = vec![
        ("Content-Type".to_owned(), "application/grpc".to_owned()),
        ("TE".to_owned(), "trailers".to_owned()),
    ];
    for question in questions {
        frame(&encode(question), false, &mut request.body);
    }
    let answer = exchange(target, &request, limit).map_err(|failure| {
        Refusal::Final(format!("the server was asked by reflection: {failure}"))
    })?;
    let status = answer.trailers.iter().chain(&answer.headers);
    let status = status
        .filter(|(name, _)| name == "grpc-status")
        .map(|(_, value)| value.as_str())
        .next();
    if status != Some("0") {
        request.expect = Expectation {
            grpc: Some(model::GrpcRule::of_status(0)),
            ..Expectation::default()
        };
        let reason = match crate::check::check(&request.expect, &answer) {
            Err(mismatch) => mismatch.to_string(),
            Ok(()) => "expected a status".to_owned(),
        };
        return Err(Refusal::NoReflection(reason));
    }
    let mut files = Vec::new();
    let mut rest = answer.body.as_slice();
    while let Some((_, message, after)) = first_message(rest) {
        rest = after;
        match decode(message).map_err(Refusal::Final)? {
            ReflectionAnswer::Files(found) => files.extend(found),
            ReflectionAnswer::Error(reason) => {
                let words = format!("the server answered by reflection: {reason}");
                return Err(Refusal::Final(words));
            }
            ReflectionAnswer::Services(_) => {}
        }
    }
    Ok(files)
}
