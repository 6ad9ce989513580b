//! The expected response of a request from the baseline's responses. For a batch, it combines the baseline's
//! responses to all its parts.

use std::sync::Arc;

use lab::{Expect, RequestTemplate};
use load::{Answer, BodyRule};

use super::compression::content;
use super::{Proven, Subject};
use crate::invalid::Invalid;

/// The expected status and body of a request, from the baseline's responses.
pub(super) struct Expected {
    pub(super) status: u16,
    /// The body without content codings.
    pub(super) body: Vec<u8>,
}

/// Returns the baseline's response to the request at this index. `None` if the baseline has no such request.
///
/// # Errors
///
/// When a body of the baseline cannot be decoded.
pub(super) fn expected(
    subject: Subject<'_>,
    baseline: Option<&Proven>,
    index: usize,
) -> Result<Option<Expected>, Invalid> {
    let found = answers_of(subject, baseline, index);
    let Some((answers, is_batch)) = found else {
        return Ok(None);
    };
    let name = &subject.variant.requests[index].name;
    let bodies = answers.iter().map(|answer| content(name, answer));
    let bodies: Vec<_> = bodies.collect::<Result<_, _>>()?;
    let status = answers.first().map_or(200, |answer| answer.status);
    Ok(Some(Expected {
        status,
        body: match is_batch {
            true => [&b"["[..], &bodies.join(&b','), b"]"].concat(),
            false => bodies.concat(),
        },
    }))
}

/// The baseline's responses for the request, and true if they must be combined into one array.
fn answers_of<'a>(
    subject: Subject<'_>,
    baseline: Option<&'a Proven>,
    index: usize,
) -> Option<(Vec<&'a Answer>, bool)> {
    let Subject { lab, variant, .. } = subject;
    let baseline = baseline?;
    let asked = &variant.requests[index];
    let theirs = lab
        .all()
        .find(|it| variant.against.as_ref() == Some(&it.name))?;
    let at_same_place = theirs.requests.get(index);
    let is_same = at_same_place.is_some_and(|theirs| theirs.batch == asked.batch);
    if asked.batch.is_empty() || is_same {
        return Some((vec![baseline.answers.get(index)?], false));
    }
    let of_name = |name: &String| {
        let mut named = theirs.requests.iter();
        let place = named.position(|it| it.name == *name && it.batch.is_empty())?;
        baseline.answers.get(place)
    };
    let answers = asked.batch.iter().map(of_name).collect::<Option<_>>()?;
    Some((answers, true))
}

/// The rule for an equal body. The server may format an array of a batch freely.
pub(super) fn rule(asked: &RequestTemplate, expected: &[u8], ignore: Vec<String>) -> BodyRule {
    if asked.batch.is_empty() {
        return BodyRule::known(expected, &ignore);
    }
    BodyRule::Alike {
        body: Arc::from(expected),
        ignore,
    }
}

/// JSON pointers that comparisons of bodies ignore. For a batch, they apply to each of its responses.
pub(super) fn ignored(asked: &RequestTemplate, expect: &Expect) -> Vec<String> {
    if asked.batch.is_empty() {
        return expect.ignore.clone();
    }
    let positions = 0..asked.batch.len();
    let of_each = |position: usize| {
        let pointers = expect.ignore.iter();
        pointers.map(move |pointer| format!("/{position}{pointer}"))
    };
    positions.flat_map(of_each).collect()
}
