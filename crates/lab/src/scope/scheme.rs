//! The scheme of a system: decides whether a variant reaches it over TLS.

use yaml_with_places::{At, Finding};

use super::{NoAddress, Scope};
use crate::formats::Name;
use crate::reading::Reading;
use crate::url_keys;
use crate::wire::SystemFile;

/// True if `scheme`, or the `url` of a system that already runs, requests TLS.
pub(super) fn is_encrypted(
    name: &At<Name>,
    file: &SystemFile,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> bool {
    let url = file.url.as_ref();
    if url.is_some_and(|url| url_keys::is_encrypted(&url.value.0)) {
        return true;
    }
    let Some(scheme) = &file.scheme else {
        return false;
    };
    let help = "write `http`, `https`, or a setting with one of these values";
    let words = NoAddress {
        mistake: "a scheme cannot hold an address",
        help,
    };
    let text = scope.text_without_addresses(&name.value.0, scheme, &words, reading);
    match text.as_deref() {
        Some("https") => true,
        // An empty value comes from a reported mistake.
        Some("http" | "") | None => false,
        Some(other) => {
            let message = format!("`{other}` is not a scheme");
            let finding = Finding::new(scheme.place, message).help(help);
            reading.findings.add(finding);
            false
        }
    }
}
