//! Writes parts as JSON, in both formats.

use crate::authorization::write_extensions;
use crate::error::{GraphqlError, PathSegment, write_errors};
use crate::response::Place;

/// The data of a part at one place.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    id: usize,
    pub(super) path: Vec<PathSegment>,
    label: Option<String>,
    /// Objects with their paths from the place. The format by path has one object, at the place itself.
    pub(super) entries: Vec<(Vec<PathSegment>, Vec<u8>)>,
    pub(super) errors: Vec<GraphqlError>,
    /// Values that the schema does not allow, if they are not errors.
    pub(super) completion: Vec<GraphqlError>,
    /// True if the whole instance is null.
    pub(super) is_null: bool,
    pub(super) is_too_large: bool,
}

impl Instance {
    pub(super) fn new(id: usize, place: &Place, label: Option<&str>) -> Self {
        Instance {
            id,
            path: place.path.clone(),
            label: label.map(str::to_owned),
            entries: Vec::new(),
            errors: Vec::new(),
            completion: Vec::new(),
            is_null: false,
            is_too_large: false,
        }
    }

    /// True if a path leads into this place. It is at least as long as the path of the place. `@` stands for
    /// any item.
    pub(super) fn holds(&self, path: &[PathSegment]) -> bool {
        let is_any = |segment: &PathSegment| matches!(segment, PathSegment::Key(key) if key == "@");
        let mut both = self.path.iter().zip(path);
        both.all(|(own, other)| own == other || is_any(other))
    }
}

const HAS_NEXT: [&[u8]; 2] = [b"\"hasNext\":false", b"\"hasNext\":true"];

/// Writes the first part. `more` is set if further parts follow, and can contain the announced places.
pub(super) fn first(
    data: &[u8],
    errors: &[GraphqlError],
    extensions: &[u8],
    more: Option<Option<&[u8]>>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + extensions.len() + 128);
    out.extend_from_slice(b"{\"data\":");
    out.extend_from_slice(data);
    if !errors.is_empty() {
        out.extend_from_slice(b",\"errors\":");
        write_errors(errors, &mut out);
    }
    out.extend_from_slice(extensions);
    if let Some(pending) = more {
        if let Some(pending) = pending {
            out.extend_from_slice(b",\"pending\":");
            out.extend_from_slice(pending);
        }
        out.push(b',');
        out.extend_from_slice(HAS_NEXT[1]);
    }
    out.push(b'}');
    out
}

/// A JSON list of announced places.
pub(super) fn pending<'p>(
    places: impl Iterator<Item = (usize, &'p Place, Option<&'p str>)>,
) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for (id, place, label) in places {
        separate(&mut out, b'[');
        out.extend_from_slice(format!("{{\"id\":\"{id}\",\"path\":").as_bytes());
        write_path(&place.path, &mut out);
        write_label(label, &mut out);
        out.push(b'}');
    }
    out.push(b']');
    out
}

/// Writes further parts in the format by path.
pub(super) fn by_path(instances: &[Instance], has_next: bool) -> Vec<u8> {
    let mut out = b"{".to_vec();
    out.extend_from_slice(HAS_NEXT[usize::from(has_next)]);
    out.extend_from_slice(b",\"incremental\":[");
    for instance in instances {
        separate(&mut out, b'[');
        out.extend_from_slice(b"{\"data\":");
        match instance.entries.first() {
            Some((_, data)) => out.extend_from_slice(data),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"path\":");
        write_path(&instance.path, &mut out);
        write_label(instance.label.as_deref(), &mut out);
        write_own_errors(instance, &mut out);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    out
}

/// Writes further parts in the format by id.
pub(super) fn by_id(instances: &[Instance], pending: &[u8], has_next: bool) -> Vec<u8> {
    let mut out = b"{".to_vec();
    out.extend_from_slice(HAS_NEXT[usize::from(has_next)]);
    if pending != b"[]" {
        out.extend_from_slice(b",\"pending\":");
        out.extend_from_slice(pending);
    }
    if instances.iter().any(|it| !it.entries.is_empty()) {
        out.extend_from_slice(b",\"incremental\":[");
        for instance in instances {
            for (index, (below, data)) in instance.entries.iter().enumerate() {
                separate(&mut out, b'[');
                out.extend_from_slice(format!("{{\"id\":\"{}\",\"data\":", instance.id).as_bytes());
                out.extend_from_slice(data);
                if !below.is_empty() {
                    out.extend_from_slice(b",\"subPath\":");
                    write_path(below, &mut out);
                }
                if index == 0 {
                    write_own_errors(instance, &mut out);
                }
                out.push(b'}');
            }
        }
        out.push(b']');
    }
    out.extend_from_slice(b",\"completed\":[");
    for instance in instances {
        separate(&mut out, b'[');
        out.extend_from_slice(format!("{{\"id\":\"{}\"", instance.id).as_bytes());
        if instance.entries.is_empty() {
            write_own_errors(instance, &mut out);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    out
}

fn separate(out: &mut Vec<u8>, opener: u8) {
    if out.last() != Some(&opener) {
        out.push(b',');
    }
}

fn write_path(path: &[PathSegment], out: &mut Vec<u8>) {
    out.push(b'[');
    for segment in path {
        separate(out, b'[');
        match segment {
            PathSegment::Key(key) => json_text::write_string(key, out),
            PathSegment::Index(index) => out.extend_from_slice(index.to_string().as_bytes()),
        }
    }
    out.push(b']');
}

fn write_label(label: Option<&str>, out: &mut Vec<u8>) {
    if let Some(label) = label {
        out.extend_from_slice(b",\"label\":");
        json_text::write_string(label, out);
    }
}

fn write_own_errors(instance: &Instance, out: &mut Vec<u8>) {
    if !instance.errors.is_empty() {
        out.extend_from_slice(b",\"errors\":");
        write_errors(&instance.errors, out);
    }
    write_extensions(&[], &instance.completion, out);
}
