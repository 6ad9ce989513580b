//! The proof: evidence that a variant did its work. Without it the variant gets no number.

use lab::{Lab, RequestTemplate, Variant};
use load::{
    Answer, BodyRule, Bounds, Data, Expectation, Job, Measurement, Request, StatusRule, Step,
    WalkError, walk,
};
use model::{GrpcCall, GrpcDescriptors, InvalidKind};
use recording::{Header, Proof, ProofAnswer, ProofSeen};

use crate::digest::sha256;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::record;
use crate::sending;
use crate::stop::StopSignal;
use crate::systems::RunningSystems;

mod answer;
mod batch;
mod by_instance;
mod compression;
mod distinct;
mod observation;
mod status;

pub(crate) use by_instance::by_instance;
pub(crate) use observation::{Observed, Observer, let_earlier_arrive};

/// The proven responses of a variant.
#[derive(Clone)]
pub(crate) struct Proven {
    /// The requests of the variant, each with its expectation under load.
    pub(crate) requests: Vec<Request>,
    /// The steps of a scenario, one for each request. Empty without a scenario.
    pub(crate) steps: Vec<Step>,
    /// The values of the placeholders in requests.
    pub(crate) data: Data,
    /// The proof as the recording contains it.
    pub(crate) proof: Proof,
    answers: Vec<Answer>,
}

/// The proof of a variant by another generator, one value for each request.
pub(crate) struct ToldProof {
    /// The repeated bodies.
    pub(crate) bodies: Vec<Option<Vec<u8>>>,
    /// The descriptors that the server gave.
    pub(crate) descriptors: Vec<Option<Vec<u8>>>,
}

/// The limits of a proof by counting: a counter must lie between the two. They differ by the failed requests,
/// because these may or may not have arrived.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct RequestCounts {
    pub(crate) answered: u64,
    pub(crate) sent: u64,
}

impl RequestCounts {
    /// Adds the counts of another generator.
    pub(crate) fn plus(self, other: RequestCounts) -> RequestCounts {
        RequestCounts {
            answered: self.answered + other.answered,
            sent: self.sent + other.sent,
        }
    }

    /// The counts of the generator.
    pub(crate) fn of(measurement: &Measurement) -> RequestCounts {
        // Discarded requests were sent and answered too.
        let discarded = &measurement.discarded;
        let answered = measurement.outcomes.completed() + discarded.completed();
        let sent = measurement.sent + discarded.total() - discarded.failed.connect;
        assert!(
            answered <= sent,
            "{answered} answers to {sent} requests: every answer is to a request that was sent"
        );
        RequestCounts { answered, sent }
    }
}

/// A variant with its running systems.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) variant: &'a Variant,
    pub(crate) systems: &'a RunningSystems,
    pub(crate) stop: &'a StopSignal,
}

/// Sends the preparing requests of a variant. They are sent once after each start, before all other requests.
///
/// # Errors
///
/// The first response that differs from the lab's expectation.
pub(crate) fn prepare(subject: Subject<'_>) -> Result<(), Invalid> {
    let Subject { lab, variant, .. } = subject;
    let target = subject.systems.target();
    for asked in &variant.prepare {
        tracing::debug!(variant = variant.name, request = asked.name, "preparing");
        let called = format!("preparing with request `{}`", asked.name);
        let request = sending::resolved(asked, &variant.expect, &target, lab.timeout)?;
        let answer = load::exchange(&target, &request, lab.timeout)
            .map_err(|failure| not_proven(&called, format!("no answer: {failure}")))?;
        load::check(&request.expect, &answer).map_err(|mismatch| not_proven(&called, mismatch))?;
    }
    Ok(())
}

/// Sends every request of the variant twice, as the first slot of a load would, and checks the responses. If
/// the lab requires it, the responses must also match the baseline. Then checks the other proofs of the
/// variant.
///
/// # Errors
///
/// The first response that differs from the lab's expectation, or the first missing proof.
pub(crate) fn prove(
    subject: Subject<'_>,
    seed: u64,
    baseline: Option<&Proven>,
) -> Result<Proven, Invalid> {
    let Subject {
        lab,
        variant,
        systems,
        stop,
    } = subject;
    let usual = &variant.expect;
    let asked = &variant.requests;
    let target = systems.target();
    let resolve = |it: &RequestTemplate| sending::resolved(it, usual, &target, lab.timeout);
    let mut proven = Proven {
        requests: asked.iter().map(resolve).collect::<Result<_, _>>()?,
        steps: lab.steps.clone(),
        data: sending::data(lab.data.as_ref(), seed),
        proof: Proof::default(),
        answers: Vec::new(),
    };
    // Created before the first request, so that earlier counts of the systems are excluded.
    let_earlier_arrive(std::iter::once(variant), stop)?;
    let observer = Observer::begin(variant, systems)?;
    // The second response shows the parts that vary, such as a time or an id. Under load, only parts that
    // repeat can be compared.
    let first = proven.walk(subject)?;
    let second = proven.walk(subject)?;
    for (index, (asked, answer)) in asked.iter().zip(&first).enumerate() {
        let expect = asked.expect.as_ref().unwrap_or(usual);
        let ignore = batch::ignored(asked, expect);
        let again = &second[index];
        let content = compression::content(&asked.name, answer)?;
        // A response that cannot be decoded is wrong, even if its body is not compared.
        compression::content(&asked.name, again)?;
        let known = BodyRule::known(&content, &ignore);
        let is_stable = again.status == answer.status && is_right(&known, again);
        let mut record = ProofAnswer {
            descriptors_sha256: given_descriptors(asked, &proven.requests[index]),
            ..proof_of(&asked.name, answer, &content, again)
        };
        if expect.same_as_baseline {
            let expected = batch::expected(subject, baseline, index)?;
            let theirs = expected.as_ref().map_or(answer.status, |it| it.status);
            record.not_compared = status::not_compared([answer.status, again.status], theirs);
            if record.not_compared.is_none() {
                must_repeat(is_stable, &asked.name)?;
                if let Some(expected) = expected.map(|it| it.body)
                    && !is_right(&batch::rule(asked, &expected, ignore), answer)
                {
                    compare(&asked.name, &expected, &content)?;
                }
            }
        }
        // A request that differs from slot to slot gets different responses under load.
        if is_stable && !has_places(asked) {
            let expect = &mut proven.requests[index].expect;
            expect.body = known;
            expect.encoded = compression::encoded(answer);
            let is_one_of_several = matches!(expect.status, StatusRule::Among(_));
            expect.body_of = is_one_of_several.then_some(answer.status);
        }
        proven.proof.answers.push(record);
    }
    proven.answers = first;
    proven.proof.seen = seen_by(observer, asked.len(), stop)?;
    let answers = named(variant, &proven.answers);
    let seen = answer::check(variant, &answers, &target, lab.timeout)?;
    proven.proof.seen.extend(seen);
    // Sent after the observer has ended. This request is not part of the lab and must not be counted.
    let coded = compression::if_asked(asked, &proven.answers, &target, lab.timeout);
    if let Some((index, coding)) = coded {
        proven.proof.answers[index].coding_if_asked = Some(coding);
    }
    assert_eq!(
        proven.requests.len(),
        proven.answers.len(),
        "each request of a proven variant has its answer"
    );
    Ok(proven)
}

/// Returns the proofs of an observer of two walks over this number of requests. Both walks received all
/// responses.
fn seen_by(
    observer: Observer<'_>,
    requests: usize,
    stop: &StopSignal,
) -> Result<Vec<ProofSeen>, Invalid> {
    let sent = 2 * requests as u64;
    let counts = RequestCounts {
        answered: sent,
        sent,
    };
    let observed = observer.end(counts, instant(), stop);
    let Observed { seen, failed } = observed.ok_or_else(Invalid::interrupted)?;
    failed.map_or(Ok(seen), Err)
}

impl Proven {
    /// The proof by another generator for the same variant.
    ///
    /// # Errors
    ///
    /// If the other generator has no descriptors for a call that needs them.
    pub(crate) fn told(
        lab: &Lab,
        variant: &Variant,
        seed: u64,
        told: &ToldProof,
    ) -> Result<Proven, Invalid> {
        let usual = &variant.expect;
        let asked = &variant.requests;
        let mut requests: Vec<Request> =
            asked.iter().map(|it| sending::request(it, usual)).collect();
        for (index, (request, asked)) in requests.iter_mut().zip(asked).enumerate() {
            let expect = asked.expect.as_ref().unwrap_or(usual);
            let given = told.descriptors.get(index).and_then(Option::as_deref);
            sending::describe(request, &asked.name, given)?;
            if let Some(body) = told.bodies.get(index).and_then(Option::as_deref) {
                request.expect.body = BodyRule::known(body, &batch::ignored(asked, expect));
            }
        }
        Ok(Proven {
            requests,
            steps: lab.steps.clone(),
            data: sending::data(lab.data.as_ref(), seed),
            proof: Proof::default(),
            answers: Vec::new(),
        })
    }

    /// The descriptors that the server gave for each request, for the other generators.
    pub(crate) fn given_descriptors(&self, variant: &Variant) -> Vec<Option<Vec<u8>>> {
        let requests = variant.requests.iter().zip(&self.requests);
        requests
            .map(|(asked, sent)| {
                let set = sent.grpc.as_ref().and_then(GrpcCall::set);
                set.filter(|_| needs_descriptors(asked))
                    .map(|set| set.to_vec())
            })
            .collect()
    }

    /// The repeated body of each request. Every response of the load must match it.
    pub(crate) fn bodies(&self) -> Vec<Option<Vec<u8>>> {
        let bodies = self
            .requests
            .iter()
            .map(|request| match &request.expect.body {
                BodyRule::Any => None,
                BodyRule::Equals(body) | BodyRule::Alike { body, .. } => Some(body.to_vec()),
            });
        bodies.collect()
    }

    /// Repeats the proof after a restart. It checks one response to each request as under load, and the
    /// proofs about responses.
    ///
    /// # Errors
    ///
    /// The first response that differs from the first proof, or the first missing proof.
    pub(crate) fn repeat(&self, subject: Subject<'_>) -> Result<(), Invalid> {
        let answers = self.walk(subject)?;
        let Subject { lab, variant, .. } = subject;
        let answers = named(variant, &answers);
        answer::check(variant, &answers, &subject.systems.target(), lab.timeout).map(|_| ())
    }

    /// Sends the first slot of a load: every request once, in order.
    fn walk(&self, subject: Subject<'_>) -> Result<Vec<Answer>, Invalid> {
        tracing::debug!(variant = subject.variant.name, requests = self.requests.len(), timeout = ?subject.lab.timeout, "sending every request once, in order");
        let job = Job {
            target: subject.systems.target(),
            requests: self.requests.clone(),
            steps: self.steps.clone(),
            data: Some(self.data.clone()),
            load: model::Load::Closed {
                connections: 1,
                stop: model::Stop {
                    requests: Some(1),
                    duration: None,
                },
            },
            threads: 1,
            timeout: subject.lab.timeout,
            // Independent of the load's setting. The proof is about responses, and must not open a port for
            // each request.
            keep_alive: true,
            failures_kept: 0,
            spin_share: Job::SPIN_SHARE,
            realtime: false,
            bound: Bounds::default(),
            cpus: None,
            seat: None,
            keep_slots: None,
            keep_blocks: false,
            slices: Vec::new(),
            shard: model::Shard::WHOLE,
            start_at: None,
            yields: false,
        };
        walk(&job, 0).map_err(|error| walk_failure(&error, subject.variant))
    }

    /// Names of the requests with varying responses. `weigh` does not compare their bodies.
    pub(crate) fn varying<'a>(&'a self, variant: &'a Variant) -> impl Iterator<Item = &'a str> {
        variant
            .requests
            .iter()
            .zip(&self.requests)
            .filter(|(asked, request)| {
                let is_compared = request.expect.stream.is_none() && !has_places(asked);
                is_compared && request.expect.body == BodyRule::Any
            })
            .map(|(asked, _)| asked.name.as_str())
    }
}

/// True if a request differs from slot to slot.
fn has_places(request: &RequestTemplate) -> bool {
    let is_open = |text: &str| text.contains("{{");
    is_open(&request.path)
        || request.headers.iter().any(|(_, value)| is_open(value))
        || request.body.windows(2).any(|two| two == b"{{")
        || request.websocket.as_ref().is_some_and(|call| {
            let mut more = call
                .init()
                .into_iter()
                .chain(call.offers.iter().map(String::as_str));
            is_open(&call.text()) || more.any(is_open)
        })
        || request
            .grpc
            .as_ref()
            .is_some_and(|call| is_open(&call.text()))
}

fn named<'a>(variant: &'a Variant, answers: &'a [Answer]) -> Vec<(&'a str, &'a Answer)> {
    let names = variant.requests.iter().map(|request| request.name.as_str());
    names.zip(answers).collect()
}

/// The reason in the variant's row if a request of the walk failed.
fn walk_failure(error: &WalkError, variant: &Variant) -> Invalid {
    let name = |index: &usize| &variant.requests[*index].name;
    match error {
        WalkError::Job(error) => Invalid::new(InvalidKind::LoadFailed, error.to_string()),
        WalkError::Failed { request, failure } => Invalid::new(
            InvalidKind::NotReady,
            format!("request `{}` got no answer: {failure}", name(request)),
        ),
        WalkError::Mismatched {
            request, mismatch, ..
        } => Invalid::new(
            InvalidKind::Mismatched,
            format!("request `{}`: {mismatch}", name(request)),
        ),
    }
}

/// The reason in the row of a variant without a proof.
fn not_proven(name: &str, reason: impl std::fmt::Display) -> Invalid {
    Invalid::new(
        InvalidKind::NotProven,
        format!("did not do the work: {name}: {reason}"),
    )
}

/// Shortens a text for a row.
fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 80;
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    let cut: String = text.chars().take(SHOWN_MAX).collect();
    format!("{cut}…")
}

/// True if the body of a response is correct.
fn is_right(body: &BodyRule, answer: &Answer) -> bool {
    let expect = Expectation {
        status: StatusRule::Any,
        body: body.clone(),
        ..Expectation::default()
    };
    load::check(&expect, answer).is_ok()
}

fn must_repeat(is_stable: bool, name: &str) -> Result<(), Invalid> {
    if is_stable {
        return Ok(());
    }
    Err(Invalid::new(
        InvalidKind::Mismatched,
        format!(
            "request `{name}`: two equal requests received different bodies, so `same-as: baseline` cannot be checked. Name the varying fields in `expect.ignore`"
        ),
    ))
}

/// Reports the first difference of two bodies, with a few bytes of both.
fn compare(name: &str, expected: &[u8], found: &[u8]) -> Result<(), Invalid> {
    if expected == found {
        return Ok(());
    }
    let at = expected
        .iter()
        .zip(found)
        .take_while(|(one, other)| one == other)
        .count();
    let excerpt = |body: &[u8]| {
        // A few bytes show the difference and are short enough for a row.
        let end = body.len().min(at + 24);
        printable(&body[at.min(end)..end])
    };
    Err(Invalid::new(
        InvalidKind::Mismatched,
        format!(
            "request `{name}`: the body differs from the baseline's body at byte {at}: expected `{}`, found `{}`",
            excerpt(expected),
            excerpt(found)
        ),
    ))
}

/// Bytes as printable text. Bytes that are not text are escaped.
fn printable(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character.is_control() {
                true => shown.extend(character.escape_default()),
                false => shown.push(character),
            }
        }
        shown += &chunk.invalid().escape_ascii().to_string();
    }
    shown
}

/// The digest of the descriptors of a call, if the target gave them.
fn given_descriptors(asked: &RequestTemplate, sent: &Request) -> Option<String> {
    needs_descriptors(asked).then(|| record::descriptors(sent.grpc.as_ref()))?
}

/// True if the target gives the descriptors of a call.
fn needs_descriptors(asked: &RequestTemplate) -> bool {
    let is_given = |call: &GrpcCall| call.descriptors == GrpcDescriptors::Reflection;
    asked.grpc.as_ref().is_some_and(is_given)
}

fn proof_of(name: &str, answer: &Answer, content: &[u8], again: &Answer) -> ProofAnswer {
    ProofAnswer {
        request: name.to_owned(),
        status: answer.status,
        headers: answer
            .headers
            .iter()
            .map(|(name, value)| Header {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
        body_bytes: answer.body.len() as u64,
        body_sha256: sha256(content),
        encoding: compression::record(answer, content, again),
        coding_if_asked: None,
        not_compared: None,
        descriptors_sha256: None,
    }
}
