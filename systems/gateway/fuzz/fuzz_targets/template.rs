//! Whatever a template is and sees, it makes JSON or says why not.
//!
//! The template, a zero byte, and the JSON that it sees as `$body`.
#![no_main]

use gateway_template::{Json, Scope, Template};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

fuzz_target!(|text: &str| {
    let (template, body) = text.split_once('\0').unwrap_or((text, "{}"));
    let Ok(body) = Json::parse(body.as_bytes()) else {
        return;
    };
    let scope = Scope::default().with("$body", &body);
    let templates = [Template::json(template), Template::text(template)];
    for template in templates.into_iter().flatten() {
        if let Ok(value) = template.render(&scope) {
            let made = value.to_bytes();
            // Not into values: a number may be beyond all floats.
            serde_json::from_slice::<IgnoredAny>(&made).expect("JSON");
        }
        let _ = template.render_text(&scope);
    }
});
