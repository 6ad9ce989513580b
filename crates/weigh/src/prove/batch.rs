//! What the answer to a request must be where the baseline's answers are the measure: of a batch, those
//! to all that it holds.

use std::sync::Arc;

use lab::{Expect, RequestTemplate};
use load::BodyRule;

use super::{Proven, Subject};

/// The body that the baseline's answers make for the request at this place; none where it has no
/// counterpart there.
pub(super) fn expected(subject: Subject<'_>, baseline: &Proven, index: usize) -> Option<Vec<u8>> {
    let Subject { lab, variant, .. } = subject;
    let asked = &variant.requests[index];
    let theirs = lab
        .all()
        .find(|it| variant.against.as_ref() == Some(&it.name))?;
    let body = |index: usize| Some(baseline.answers.get(index)?.body.clone());
    let at_same_place = theirs.requests.get(index);
    let is_same = at_same_place.is_some_and(|theirs| theirs.batch == asked.batch);
    if asked.batch.is_empty() || is_same {
        return body(index);
    }
    let of_name = |name: &String| {
        let mut named = theirs.requests.iter();
        body(named.position(|it| it.name == *name && it.batch.is_empty())?)
    };
    let bodies: Vec<Vec<u8>> = asked.batch.iter().map(of_name).collect::<Option<_>>()?;
    Some([&b"["[..], &bodies.join(&b','), b"]"].concat())
}

/// What a body must be to be this one. How an array is set out is the server's choice.
pub(super) fn rule(asked: &RequestTemplate, expected: &[u8], ignore: Vec<String>) -> BodyRule {
    if asked.batch.is_empty() {
        return BodyRule::known(expected, &ignore);
    }
    BodyRule::Alike {
        body: Arc::from(expected),
        ignore,
    }
}

/// What comparisons of bodies leave out; of a batch, of each of its answers.
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
