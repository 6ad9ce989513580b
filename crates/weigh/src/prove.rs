//! The proof: what a variant must be seen to do before it gets a number.

use std::time::Duration;

use lab::{Expect, Lab};
use load::{Answer, BodyRule, Expectation, Request, StatusRule, Target};
use report::recording::{Header, InvalidKind, Proof, ProofAnswer};

use crate::record::sha256;
use crate::stack::Invalid;

/// What a variant was seen to answer.
#[derive(Clone)]
pub(crate) struct Proven {
    /// The requests of the lab, each with the expectation that holds under load.
    pub(crate) requests: Vec<Request>,
    /// For the recording.
    pub(crate) proof: Proof,
    answers: Vec<Answer>,
}

/// Sends every request of the lab twice and checks the answers; against those of the baseline too
/// where the lab asks for it.
///
/// # Errors
///
/// The first answer that is not what the lab expects.
pub(crate) fn prove(
    lab: &Lab,
    target: &Target,
    baseline: Option<&Proven>,
) -> Result<Proven, Invalid> {
    let mut proven = Proven {
        requests: Vec::new(),
        proof: Proof::default(),
        answers: Vec::new(),
    };
    for (index, asked) in lab.requests.iter().enumerate() {
        let mut request = Request {
            method: asked.method.clone(),
            path: asked.path.clone(),
            headers: asked.headers.clone(),
            body: asked.body.clone(),
            expect: expectation(&lab.expect),
            weight: asked.weight,
        };
        let first = ask(&request, &asked.name, target, lab.timeout)?;
        let second = ask(&request, &asked.name, target, lab.timeout)?;
        let known = BodyRule::known(&first.body, &lab.expect.ignore);
        let is_stable = is_right(&known, &second);
        if lab.expect.same_as_baseline {
            must_repeat(is_stable, &asked.name)?;
            if let Some(baseline) = baseline {
                let expected = &baseline.answers[index].body;
                if !is_right(&BodyRule::known(expected, &lab.expect.ignore), &first) {
                    compare(&asked.name, expected, &first.body)?;
                }
            }
        }
        if is_stable {
            request.expect.body = known;
        }
        proven.proof.answers.push(proof_of(&asked.name, &first));
        proven.answers.push(first);
        proven.requests.push(request);
    }
    Ok(proven)
}

impl Proven {
    /// Repeats the proof after a restart: one answer to each request, checked as under load.
    ///
    /// # Errors
    ///
    /// The first answer that is not what was proven.
    pub(crate) fn repeat(&self, lab: &Lab, target: &Target) -> Result<(), Invalid> {
        for (asked, request) in lab.requests.iter().zip(&self.requests) {
            ask(request, &asked.name, target, lab.timeout)?;
        }
        Ok(())
    }

    /// Names of the requests whose answers vary by themselves, so that bodies are not compared.
    pub(crate) fn varying<'a>(&'a self, lab: &'a Lab) -> impl Iterator<Item = &'a str> {
        lab.requests
            .iter()
            .zip(&self.requests)
            .filter(|(_, request)| request.expect.body == BodyRule::Any)
            .map(|(asked, _)| asked.name.as_str())
    }
}

fn expectation(expect: &Expect) -> Expectation {
    Expectation {
        status: expect
            .status
            .map_or(StatusRule::Success, StatusRule::Exactly),
        graphql: expect.graphql_no_errors,
        body: expect
            .body
            .as_ref()
            .map_or(BodyRule::Any, |body| BodyRule::known(body, &expect.ignore)),
        headers: expect.headers.clone(),
    }
}

fn ask(request: &Request, name: &str, target: &Target, limit: Duration) -> Result<Answer, Invalid> {
    let answer = load::exchange(target, request, limit).map_err(|failure| {
        Invalid::new(
            InvalidKind::NotReady,
            format!("request `{name}` got no answer: {failure}"),
        )
    })?;
    load::check(&request.expect, &answer).map_err(|mismatch| {
        Invalid::new(
            InvalidKind::Mismatched,
            format!("request `{name}`: {mismatch}"),
        )
    })?;
    Ok(answer)
}

/// Whether the body of an answer is the right one.
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
            "request `{name}`: the same request gave two different bodies, so `same-as: baseline` cannot be checked; name what differs by nature in `expect.ignore`"
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
        let end = body.len().min(at + 24);
        String::from_utf8_lossy(&body[at.min(end)..end]).into_owned()
    };
    Err(Invalid::new(
        InvalidKind::Mismatched,
        format!(
            "request `{name}`: another body than the baseline's from byte {at} on: expected `{}`, found `{}`",
            excerpt(expected),
            excerpt(found)
        ),
    ))
}

fn proof_of(name: &str, answer: &Answer) -> ProofAnswer {
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
        body_sha256: sha256(&answer.body),
    }
}
