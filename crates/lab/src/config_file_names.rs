//! Names of configuration files, before any variant.

use yaml_with_places::Finding;

use crate::formats::FileName;
use crate::reading::Reading;
use crate::wire::SystemFile;

/// Reports a name that is the folder of another file.
pub(crate) fn check(file: &SystemFile, reading: &mut Reading<'_>) {
    let names = file.files.0.iter().map(|(name, _)| name);
    for name in names.clone() {
        let FileName(own) = &name.value;
        let inside = names.clone().find(|other| {
            let rest = other.value.0.strip_prefix(own.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        });
        if let Some(inside) = inside {
            reading.findings.add(
                Finding::new(name.place, format!("`{own}` is a file and a folder"))
                    .related(inside.place, "this file is in the folder")
                    .help("rename one of the two"),
            );
        }
    }
}
