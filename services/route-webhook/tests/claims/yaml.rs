//! The manifests of deploy/kubernetes/route-webhook as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/route-webhook")
}

/// Every document of a file.
pub(crate) fn documents(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join(name)).unwrap();
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
    documents.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The single document of a file, or its document of this kind.
pub(crate) fn document(name: &str, kind: &str) -> Value {
    let mut documents = documents(name).into_iter();
    let found = documents.find(|document| document["kind"] == kind);
    found.unwrap_or_else(|| panic!("{name} has no {kind}"))
}
