//! Batches: several requests sent as one.

use yaml_with_places::{At, Finding, Findings, OneOrMany, Place};

use super::Sending;
use super::files::{self, Body};
use crate::experiment::{Expect, RequestTemplate, Variant};
use crate::reading::Reading;
use model::BodyRule;

impl Sending<'_, '_> {
    /// Returns the array of the bodies of these files, and the names of the files as requests.
    pub(super) fn batch(
        &self,
        files: &At<OneOrMany<At<String>>>,
        reading: &mut Reading<'_>,
    ) -> Option<(Body, Vec<String>)> {
        let mut bodies = Vec::new();
        let mut names = Vec::new();
        for file in &files.value.0 {
            for path in files::named(&file.value, file.place, reading) {
                // A wrong body is reported, and the batch is lost with it.
                bodies.push(self.file_body(&path, file.place, reading)?.bytes);
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                names.push(name.into_owned());
            }
        }
        if bodies.is_empty() {
            // An empty list, or a pattern without a match, is already reported.
            return None;
        }
        let body = Body {
            bytes: array(&bodies),
            is_json: true,
        };
        Some((body, names))
    }
}

/// Returns the JSON array of these values.
fn array(values: &[Vec<u8>]) -> Vec<u8> {
    let values: Vec<&[u8]> = values.iter().map(|value| value.trim_ascii()).collect();
    let mut array = vec![b'['];
    array.extend(values.join(&b','));
    array.push(b']');
    array
}

/// Changes the expectation of batches, because their responses are arrays: an array is not an object without
/// `errors`.
pub(crate) fn expect_arrays(requests: &mut [RequestTemplate], usual: &Expect) {
    for request in requests.iter_mut().filter(|it| !it.batch.is_empty()) {
        let mut expect = request.expect.take().unwrap_or_else(|| usual.clone());
        expect.answer.graphql = false;
        request.expect = Some(expect);
    }
}

/// Reports requests with responses that cannot be compared. A request of a variant is paired with the request
/// of its baseline at the same place. The members of a batch are paired by name.
pub(crate) fn check(
    variant: &Variant,
    baseline: Option<&Variant>,
    place: Place,
    findings: &mut Findings,
) {
    let is_same = |request: &RequestTemplate| {
        let expect = request.expect.as_ref().unwrap_or(&variant.expect);
        expect.same_as_baseline
    };
    let (batches, single): (Vec<_>, Vec<_>) = variant
        .requests
        .iter()
        .enumerate()
        .partition(|(_, request)| !request.batch.is_empty());
    for (index, batch) in batches {
        match baseline.filter(|_| is_same(batch)) {
            Some(baseline) => check_members(variant, batch, index, baseline, place, findings),
            None => check_body(variant, batch, place, findings),
        }
    }
    let Some(baseline) = baseline else { return };
    let mut compared = single.iter().filter(|(_, request)| is_same(request));
    let (own, theirs) = (variant.requests.len(), baseline.requests.len());
    if own != theirs {
        if compared.next().is_some() {
            let (name, other) = (&variant.name, &baseline.name);
            findings.add(
                Finding::new(
                    place,
                    format!("`{name}` sends {own} requests and its baseline `{other}` sends {theirs}"),
                )
                .help("`same-as: baseline` compares answers in the order of requests. Give both the same number of requests"),
            );
        }
    } else if let Some((index, request)) =
        compared.find(|(index, _)| !baseline.requests[*index].batch.is_empty())
    {
        let (name, batch) = (&request.name, &baseline.requests[*index].name);
        findings.add(
            Finding::new(
                place,
                format!("`{name}` would be compared with the batch `{batch}`"),
            )
            .help("let the baseline send single requests and the variant the batch. Or give the request its own `expect` with a `body`"),
        );
    }
}

/// Checks that the baseline sends all requests of a batch. The expected response of a batch is assembled from
/// their responses.
fn check_members(
    variant: &Variant,
    batch: &RequestTemplate,
    index: usize,
    baseline: &Variant,
    place: Place,
    findings: &mut Findings,
) {
    // An equal batch is compared like any request.
    let theirs = baseline.requests.get(index);
    if theirs.is_some_and(|theirs| theirs.batch == batch.batch) {
        return;
    }
    let is_unknown = |name: &&String| {
        let mut theirs = baseline.requests.iter();
        !theirs.any(|other| other.name == **name && other.batch.is_empty())
    };
    if let Some(unknown) = batch.batch.iter().find(is_unknown) {
        let (whose, other) = (&variant.name, &baseline.name);
        findings.add(
            Finding::new(
                place,
                format!(
                    "the batch `{}` of `{whose}` contains `{unknown}`, which its baseline `{other}` does not send",
                    batch.name
                ),
            )
            .help("`same-as: baseline` compares a batch with the baseline's answers to requests of the same names. Name files that the baseline sends, or give the batch an `expect` with a `body`"),
        );
    }
}

/// Reports a batch without an expected body. The success of its operations would not be checked.
fn check_body(variant: &Variant, batch: &RequestTemplate, place: Place, findings: &mut Findings) {
    let expect = batch.expect.as_ref().unwrap_or(&variant.expect);
    if expect.answer.body == BodyRule::Any {
        findings.add(
            Finding::new(
                place,
                format!(
                    "the batch `{}` of `{}` has no expected answer",
                    batch.name, variant.name
                ),
            )
            .help("give it `expect: {body: FILE}` with the array of all answers. Or let a variant send it, with `same-as: baseline`"),
        );
    }
}
