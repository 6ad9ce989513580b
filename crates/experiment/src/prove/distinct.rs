//! The number of different values at one place of several responses. Some instances must all appear, and some
//! tokens must differ.

use std::collections::BTreeMap;

use lab::DistinctValues;
use load::Answer;
use serde_json::Value;

use super::compression::CONTENT_MAX;
use super::shortened;

/// Counts the different values. Returns the findings in words.
///
/// # Errors
///
/// The first place with too few or too many values, or a response without a value there.
pub(super) fn count(
    wanted: &[DistinctValues],
    answers: &[(&str, &Answer)],
) -> Result<Vec<String>, String> {
    let bodies: Vec<Option<Value>> = match wanted {
        // Bodies are parsed only if a proof examines them.
        [] => Vec::new(),
        _ => answers
            .iter()
            .map(|(_, answer)| {
                let content = answer.content(CONTENT_MAX).ok()?;
                serde_json::from_slice(&content).ok()
            })
            .collect(),
    };
    wanted.iter().map(|one| values(one, &bodies)).collect()
}

fn values(wanted: &DistinctValues, bodies: &[Option<Value>]) -> Result<String, String> {
    let pointer = &wanted.pointer;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for body in bodies {
        let body = body.as_ref().ok_or("expected bodies in JSON")?;
        let value = body.pointer(pointer).ok_or_else(|| {
            let found = shortened(&body.to_string());
            format!("expected a value at `{pointer}` in every answer, found `{found}`")
        })?;
        // Texts are shown without quotes.
        let shown = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        *counts.entry(shown).or_default() += 1;
    }
    let each: Vec<String> = counts
        .iter()
        .map(|(value, count)| format!("{} {count}", shortened(value)))
        .collect();
    let words = format!(
        "{} different values at `{pointer}` in {} answers ({})",
        counts.len(),
        bodies.len(),
        shortened(&each.join(", "))
    );
    let (least, most) = (wanted.least as usize, wanted.most.map(|most| most as usize));
    if counts.len() >= least && most.is_none_or(|most| counts.len() <= most) {
        return Ok(words);
    }
    let expected = match most {
        Some(most) if most == least => format!("exactly {least}"),
        Some(most) => format!("{least} to {most}"),
        None => format!("at least {least}"),
    };
    Err(format!("expected {expected}, found {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(least: u32, most: Option<u32>, bodies: &[&str]) -> String {
        let answers: Vec<Answer> = bodies
            .iter()
            .map(|body| Answer {
                status: 200,
                headers: Vec::new(),
                body: body.as_bytes().to_vec(),
                messages: None,
                trailers: Vec::new(),
            })
            .collect();
        let answers: Vec<(&str, &Answer)> = answers.iter().map(|it| ("", it)).collect();
        let wanted = DistinctValues {
            pointer: "/host".to_owned(),
            least,
            most,
        };
        match count(&[wanted], &answers) {
            Ok(words) => words.concat(),
            Err(reason) => reason,
        }
    }

    #[test]
    fn values_are_counted_over_all_answers() {
        let bodies = [r#"{"host": "a"}"#, r#"{"host": 7}"#, r#"{"host":"a"}"#];
        insta::assert_snapshot!(words(2, None, &bodies), @"2 different values at `/host` in 3 answers (7 1, a 2)");
        insta::assert_snapshot!(words(2, Some(2), &bodies), @"2 different values at `/host` in 3 answers (7 1, a 2)");
        insta::assert_snapshot!(words(3, None, &bodies), @"expected at least 3, found 2 different values at `/host` in 3 answers (7 1, a 2)");
        insta::assert_snapshot!(words(1, Some(1), &bodies), @"expected exactly 1, found 2 different values at `/host` in 3 answers (7 1, a 2)");
    }

    #[test]
    fn an_answer_without_a_value_is_no_proof() {
        insta::assert_snapshot!(words(1, None, &[r#"{"host": "a"}"#, r#"{"other": 1}"#]), @r#"expected a value at `/host` in every answer, found `{"other":1}`"#);
        insta::assert_snapshot!(words(1, None, &["<html>"]), @"expected bodies in JSON");
    }
}
