//! Proofs that examine responses more closely than a load could: values of headers, members of bodies, and
//! responses to separate requests.

use std::time::Duration;

use lab::{HeaderValues, Proof, ProofWhat, Variant};
use load::{Answer, Target};
use recording::ProofSeen;
use serde_json::Value;

use super::compression::CONTENT_MAX;
use super::{distinct, not_proven, printable, shortened};
use crate::invalid::Invalid;
use crate::sending;

/// Checks a variant's proofs about responses. `answers` are the responses to the requests of the load, with
/// the requests' names.
///
/// # Errors
///
/// The first failed proof.
pub(crate) fn check(
    variant: &Variant,
    answers: &[(&str, &Answer)],
    target: &Target,
    limit: Duration,
) -> Result<Vec<ProofSeen>, Invalid> {
    let mut seen = Vec::new();
    for proof in &variant.proofs {
        let ProofWhat::Answer {
            request,
            times,
            distinct: wanted,
            ..
        } = &proof.what
        else {
            continue;
        };
        let mut own = Vec::new();
        if let Some(asked) = request {
            let request = sending::resolved(asked, &variant.expect, target, limit)?;
            for _ in 0..*times {
                let answer = load::exchange(target, &request, limit)
                    .map_err(|failure| not_proven(&proof.name, format!("no answer: {failure}")))?;
                own.push(answer);
            }
        }
        let own: Vec<(&str, &Answer)> = own.iter().map(|answer| ("", answer)).collect();
        // A proof with its own request only examines the responses to that request.
        let looked_at = if request.is_some() { &own } else { answers };
        let mut words = Vec::new();
        for (name, answer) in looked_at {
            words.push(judge(proof, answer).map_err(|reason| {
                let whose = match request {
                    None => format!("request `{name}`: "),
                    Some(_) => String::new(),
                };
                not_proven(&proof.name, format!("{whose}{reason}"))
            })?);
        }
        let together =
            distinct::count(wanted, looked_at).map_err(|reason| not_proven(&proof.name, reason))?;
        // Findings that all responses share appear once.
        words.dedup();
        words.extend(together);
        seen.extend(words.into_iter().map(|words| ProofSeen {
            proof: proof.name.clone(),
            seen: words,
        }));
    }
    Ok(seen)
}

/// The finding in words, as an error if it differs from the expectation.
fn judge(proof: &Proof, answer: &Answer) -> Result<String, String> {
    let ProofWhat::Answer {
        expect,
        values,
        members,
        ..
    } = &proof.what
    else {
        unreachable!("only proofs about answers are judged here");
    };
    load::check(&expect.answer, answer).map_err(|mismatch| mismatch.to_string())?;
    let mut seen = vec![format!("status {}", answer.status)];
    for wanted in values {
        seen.push(header_values(wanted, &answer.headers)?);
    }
    if !members.is_empty() {
        let content = answer.content(CONTENT_MAX).map_err(|it| it.to_string())?;
        let body: Value = serde_json::from_slice(&content).map_err(|_| {
            let found = shortened(&printable(&content));
            format!("expected a body in JSON, found `{found}`")
        })?;
        for (pointer, expected) in members {
            let found = body.pointer(pointer);
            // Compared as values, because spaces and the order of members do not matter.
            let is_equal =
                serde_json::from_str::<Value>(expected).is_ok_and(|it| found == Some(&it));
            let shown = found.map_or_else(|| "nothing".to_owned(), |it| format!("`{it}`"));
            if !is_equal {
                let found = shortened(&shown);
                return Err(format!(
                    "expected `{expected}` at `{pointer}` of the body, found {found}"
                ));
            }
            seen.push(format!("{} at `{pointer}`", shortened(&shown)));
        }
    }
    Ok(seen.join(", "))
}

fn header_values(wanted: &HeaderValues, headers: &[(String, String)]) -> Result<String, String> {
    let found: Vec<&str> = headers
        .iter()
        .filter(|(name, _)| is_meant(&wanted.header, name))
        .map(|(_, value)| value.as_str())
        .collect();
    let mut different = found.clone();
    // Sorted, because `dedup` compares neighbors only.
    different.sort_unstable();
    different.dedup();
    let count = found.len();
    let is_enough = match wanted.count {
        Some(expected) => count == expected as usize,
        // Without a count, one value is enough. If zero distinct values are expected, no value is needed.
        None => count > 0 || wanted.distinct == Some(0),
    };
    let is_distinct = wanted
        .distinct
        .is_none_or(|expected| different.len() == expected as usize);
    let words = format!(
        "{count} of header `{}`, {} different",
        wanted.header,
        different.len()
    );
    if is_enough && is_distinct {
        return Ok(words);
    }
    let mut expected = match wanted.count {
        Some(count) => vec![format!("{count} values")],
        None => vec!["values".to_owned()],
    };
    expected.extend(
        wanted
            .distinct
            .map(|count| format!("{count} different values")),
    );
    Err(format!("expected {}, found {words}", expected.join(", ")))
}

/// True if the header name matches, ignoring case. `guid*` matches names that begin with `guid`.
fn is_meant(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix('*') {
        None => wanted.eq_ignore_ascii_case(name),
        Some(begin) => name
            // `get` instead of an index, because a shorter name would panic.
            .get(..begin.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(begin)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_over_all_headers_that_are_meant() {
        let headers: Vec<(String, String)> = ["GUID1 a", "guid2 b", "Guid a", "other a", "gu c"]
            .iter()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let check = |header: &str, count, distinct| {
            let wanted = HeaderValues {
                header: header.to_owned(),
                count,
                distinct,
            };
            header_values(&wanted, &headers).unwrap_or_else(|wrong| wrong)
        };
        insta::assert_snapshot!(check("guid*", Some(3), Some(2)), @"3 of header `guid*`, 2 different");
        insta::assert_snapshot!(check("guid*", Some(3), Some(3)), @"expected 3 values, 3 different values, found 3 of header `guid*`, 2 different");
        insta::assert_snapshot!(check("GUID", None, None), @"1 of header `GUID`, 1 different");
        insta::assert_snapshot!(check("none", None, None), @"expected values, found 0 of header `none`, 0 different");
        insta::assert_snapshot!(check("none", Some(0), None), @"0 of header `none`, 0 different");
    }
}
