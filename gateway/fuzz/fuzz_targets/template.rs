//! Checks that any template with any input makes JSON or an error, within its work limit.
//!
//! The input is the template, a zero byte, and the JSON value of `$body`.
#![no_main]

use gateway_template::{Json, Scope, Template, Work};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

/// The work limit of the templates, in bytes.
const MOST: usize = 100_000;

fuzz_target!(|text: &str| {
    let (template, body) = text.split_once('\0').unwrap_or((text, "{}"));
    let Ok(body) = Json::parse(body.as_bytes()) else {
        return;
    };
    let work = Work::of(MOST);
    let scope = Scope::new(&work).with("$body", &body);
    // A control character becomes six bytes. Values that are passed through whole cost no work.
    let most = 6 * (MOST + text.len());
    let templates = [Template::json(template), Template::text(template)];
    for template in templates.into_iter().flatten() {
        if let Ok(value) = template.render(&scope) {
            let made = value.to_bytes();
            // Not parsed into values, because a number can exceed the range of floats.
            serde_json::from_slice::<IgnoredAny>(&made).expect("JSON");
            assert!(made.len() <= most, "{} bytes", made.len());
        }
        if let Ok(Some(made)) = template.render_text(&scope) {
            assert!(made.len() <= most, "{} bytes", made.len());
        }
    }
});
