//! Whatever a template is and sees, it makes JSON or says why not, and makes no more than it may.
//!
//! The template, a zero byte, and the JSON that it sees as `$body`.
#![no_main]

use gateway_template::{Json, Scope, Template, Work};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

/// The work that templates may do.
const MOST: usize = 100_000;

fuzz_target!(|text: &str| {
    let (template, body) = text.split_once('\0').unwrap_or((text, "{}"));
    let Ok(body) = Json::parse(body.as_bytes()) else {
        return;
    };
    let work = Work::of(MOST);
    let scope = Scope::new(&work).with("$body", &body);
    // A control character of a text becomes six; what is passed on whole costs nothing.
    let most = 6 * (MOST + text.len());
    let templates = [Template::json(template), Template::text(template)];
    for template in templates.into_iter().flatten() {
        if let Ok(value) = template.render(&scope) {
            let made = value.to_bytes();
            // Not into values: a number may be beyond all floats.
            serde_json::from_slice::<IgnoredAny>(&made).expect("JSON");
            assert!(made.len() <= most, "{} bytes", made.len());
        }
        if let Ok(Some(made)) = template.render_text(&scope) {
            assert!(made.len() <= most, "{} bytes", made.len());
        }
    }
});
