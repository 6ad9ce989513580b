//! The proof: what a variant must be seen to do before it gets a number.

use lab::{Lab, RequestTemplate, Variant};
use load::{
    Answer, BodyRule, Bounds, Data, Expectation, Job, Measurement, Request, StatusRule, Step,
    WalkError, walk,
};
use model::InvalidKind;
use report::recording::{Header, Proof, ProofAnswer};

use crate::digest::sha256;
use crate::invalid::Invalid;
use crate::sending;
use crate::systems::RunningSystems;

mod answer;
mod batch;
mod by_instance;
mod compression;
mod distinct;
mod observation;
mod status;

pub(crate) use by_instance::by_instance;
pub(crate) use observation::{Observed, Observer};

/// What a variant was seen to answer.
#[derive(Clone)]
pub(crate) struct Proven {
    /// The requests of the variant, each with the expectation that holds under load.
    pub(crate) requests: Vec<Request>,
    /// Of a scenario, one for each request.
    pub(crate) steps: Vec<Step>,
    /// What places in requests stand for.
    pub(crate) data: Data,
    /// For the recording.
    pub(crate) proof: Proof,
    answers: Vec<Answer>,
}

/// How many requests a proof by counting is held against: a count must lie between the two. They
/// differ by the requests that failed, of which it is not known whether they arrived.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct RequestCounts {
    pub(crate) answered: u64,
    pub(crate) sent: u64,
}

impl RequestCounts {
    /// With those of another generator.
    pub(crate) fn plus(self, other: RequestCounts) -> RequestCounts {
        RequestCounts {
            answered: self.answered + other.answered,
            sent: self.sent + other.sent,
        }
    }

    /// What the generator counted.
    pub(crate) fn of(measurement: &Measurement) -> RequestCounts {
        // What does not count for figures was sent and answered all the same.
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

/// A variant with its systems up.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) variant: &'a Variant,
    pub(crate) systems: &'a RunningSystems,
}

/// Sends what a variant is sent once after each start, before everything else.
///
/// # Errors
///
/// The first answer that is not what the lab expects.
pub(crate) fn prepare(subject: Subject<'_>) -> Result<(), Invalid> {
    let Subject { lab, variant, .. } = subject;
    let target = subject.systems.target();
    for asked in &variant.prepare {
        tracing::debug!(variant = variant.name, request = asked.name, "preparing");
        let called = format!("preparing with request `{}`", asked.name);
        let request = sending::request(asked, &variant.expect);
        let answer = load::exchange(&target, &request, lab.timeout)
            .map_err(|failure| not_proven(&called, format!("no answer: {failure}")))?;
        load::check(&request.expect, &answer).map_err(|mismatch| not_proven(&called, mismatch))?;
    }
    Ok(())
}

/// Sends every request of the variant twice, as the first slot of a load would, and checks the
/// answers; against those of its baseline too where the lab asks for it. Then everything else that
/// it must be seen to do.
///
/// # Errors
///
/// The first answer that is not what the lab expects, or the first proof that is not given.
pub(crate) fn prove(
    subject: Subject<'_>,
    seed: u64,
    baseline: Option<&Proven>,
) -> Result<Proven, Invalid> {
    let Subject {
        lab,
        variant,
        systems,
    } = subject;
    let usual = &variant.expect;
    let asked = &variant.requests;
    let mut proven = Proven {
        requests: asked.iter().map(|it| sending::request(it, usual)).collect(),
        steps: lab.steps.clone(),
        data: sending::data(lab.data.as_ref(), seed),
        proof: Proof::default(),
        answers: Vec::new(),
    };
    // Before the first request, so that what systems counted before is not taken for it.
    let observer = Observer::begin(variant, systems)?;
    // The second answer shows what differs by itself, such as a time or an id: under load, only what
    // repeats can be compared.
    let first = proven.walk(subject)?;
    let second = proven.walk(subject)?;
    for (index, (asked, answer)) in asked.iter().zip(&first).enumerate() {
        let expect = asked.expect.as_ref().unwrap_or(usual);
        let ignore = batch::ignored(asked, expect);
        let again = &second[index];
        let content = compression::content(&asked.name, answer)?;
        // An answer that cannot be decoded is wrong, even if its body is not compared.
        compression::content(&asked.name, again)?;
        let known = BodyRule::known(&content, &ignore);
        let is_stable = again.status == answer.status && is_right(&known, again);
        let mut record = proof_of(&asked.name, answer, &content, again);
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
        // A request that differs from slot to slot gets other answers under load than in the proof.
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
    // Both walks were answered completely, or an error had ended the proof.
    let requests = 2 * asked.len() as u64;
    let Observed { seen, failed } = observer.end(RequestCounts {
        answered: requests,
        sent: requests,
    });
    failed.map_or(Ok(()), Err)?;
    proven.proof.seen = seen;
    let answers = named(variant, &proven.answers);
    let seen = answer::check(variant, &answers, &systems.target(), lab.timeout)?;
    proven.proof.seen.extend(seen);
    // After the observer: it is no request that was asked for, and must not be counted as one.
    let target = (&systems.target(), lab.timeout);
    if let Some((index, coding)) = compression::if_asked(&variant.requests, &proven.answers, target)
    {
        proven.proof.answers[index].coding_if_asked = Some(coding);
    }
    assert_eq!(
        proven.requests.len(),
        proven.answers.len(),
        "each request of a proven variant has its answer"
    );
    Ok(proven)
}

impl Proven {
    /// What another generator has proven of the same variant: the bodies that repeated, one for each request.
    pub(crate) fn told(
        lab: &Lab,
        variant: &Variant,
        seed: u64,
        bodies: &[Option<Vec<u8>>],
    ) -> Proven {
        let usual = &variant.expect;
        let asked = &variant.requests;
        let mut requests: Vec<Request> =
            asked.iter().map(|it| sending::request(it, usual)).collect();
        for ((request, asked), body) in requests.iter_mut().zip(asked).zip(bodies) {
            let expect = asked.expect.as_ref().unwrap_or(usual);
            if let Some(body) = body {
                request.expect.body = BodyRule::known(body, &batch::ignored(asked, expect));
            }
        }
        Proven {
            requests,
            steps: lab.steps.clone(),
            data: sending::data(lab.data.as_ref(), seed),
            proof: Proof::default(),
            answers: Vec::new(),
        }
    }

    /// For each request the body that repeated, and that every answer of the load must have.
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

    /// Repeats the proof after a restart: one answer to each request, checked as under load, and
    /// what must be seen of answers.
    ///
    /// # Errors
    ///
    /// The first answer that is not what was proven, or the first proof that is not given.
    pub(crate) fn repeat(&self, subject: Subject<'_>) -> Result<(), Invalid> {
        let answers = self.walk(subject)?;
        let Subject { lab, variant, .. } = subject;
        let answers = named(variant, &answers);
        answer::check(variant, &answers, &subject.systems.target(), lab.timeout).map(|_| ())
    }

    /// What the first slot of a load gets: every request once, in order.
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
            // Whatever the load does: the proof is about answers, and must not open a port for
            // each.
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

    /// Names of the requests whose answers vary by themselves, so that bodies are not compared.
    pub(crate) fn varying<'a>(&'a self, variant: &'a Variant) -> impl Iterator<Item = &'a str> {
        variant
            .requests
            .iter()
            .zip(&self.requests)
            .filter(|(asked, request)| request.expect.body == BodyRule::Any && !has_places(asked))
            .map(|(asked, _)| asked.name.as_str())
    }
}

/// Whether a request differs from slot to slot.
fn has_places(request: &RequestTemplate) -> bool {
    let is_open = |text: &str| text.contains("{{");
    is_open(&request.path)
        || request.headers.iter().any(|(_, value)| is_open(value))
        || request.body.windows(2).any(|two| two == b"{{")
}

fn named<'a>(variant: &'a Variant, answers: &'a [Answer]) -> Vec<(&'a str, &'a Answer)> {
    let names = variant.requests.iter().map(|request| request.name.as_str());
    names.zip(answers).collect()
}

/// Why a walk through the requests did not reach its end, as the reason of a row.
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

/// Why a variant that does not give a proof has no number.
fn not_proven(name: &str, reason: impl std::fmt::Display) -> Invalid {
    Invalid::new(
        InvalidKind::NotProven,
        format!("did not do the work: {name}: {reason}"),
    )
}

/// Text that is short enough for a row.
fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 80;
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    let cut: String = text.chars().take(SHOWN_MAX).collect();
    format!("{cut}…")
}

/// True if the body of an answer is correct.
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

/// Says where two bodies part, with a few bytes of both.
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
        // A few bytes: enough to see what differs, and short enough for a row.
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

/// Bytes as a terminal may show them: what is no text is escaped.
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
    }
}
