//! Checks that any text is either a valid configuration or a list of errors that can be displayed. A valid
//! configuration can be served. Covers YAML with positions, header rules, templates, paths of claims and
//! stored operations.
#![no_main]

use std::path::Path;

use gateway_config::{Surroundings, read};
use gateway_extensions::Rules;
use gateway_federation::OperationOptions;
use gateway_remote::{Merged, RestEndpoints};
use libfuzzer_sys::fuzz_target;

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

fuzz_target!(|text: &str| {
    match read(Path::new("router.yaml"), text, &Nothing, false) {
        Ok(reading) => {
            let config = reading.config;
            let _ = Rules::of_subgraph(&config.headers, "one");
            let _ = RestEndpoints::new(&config);
            let none = vec![None; config.remote_schemas.len()];
            let _ = Merged::new(&config, &none, OperationOptions::default(), false);
        }
        Err(mistakes) => assert!(!mistakes.to_string().is_empty()),
    }
});
