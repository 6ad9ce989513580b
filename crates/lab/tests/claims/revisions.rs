//! Claims about one lab in two revisions of the measured program.

use std::path::{Path, PathBuf};

use lab::{Lab, Variant};

use crate::{Folder, LAB, changed, lab};

/// The lab in the folder of a revision.
fn in_folder(folder: &str, text: &str) -> Lab {
    let path = format!("{folder}/labs/x.yaml");
    let files = Folder::default().file(&path, text);
    lab::parse(Path::new(&path), &files).unwrap()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn folders(variant: &Variant) -> Vec<PathBuf> {
    let folders = variant.systems().iter().map(|setup| setup.folder.clone());
    folders.collect()
}

#[test]
fn each_revision_starts_its_own_systems_and_gets_the_load_of_the_newer() {
    let base = in_folder("/base", LAB);
    let mut head = in_folder("/head", LAB);
    head.baseline.requests[0].path = "/new".to_owned();
    let both = Lab::of_revisions(Ok(&base), head, &names(&["a"]));
    assert_eq!(both.names(), ["base", "head"]);
    assert_eq!(both.variants[0].against.as_deref(), Some("base"));
    for (variant, folder) in both.all().zip(["/base/labs", "/head/labs"]) {
        assert_eq!(variant.requests[0].path, "/new");
        assert!(
            folders(variant).iter().all(|it| it.starts_with(folder)),
            "{variant:?}"
        );
        assert_eq!(variant.absent, None);
    }
    assert_eq!(both.requests[0].path, "/new");
}

#[test]
fn several_variants_are_compared_each_with_itself() {
    let all = names(&["a", "b"]);
    let both = Lab::of_revisions(Ok(&in_folder("/base", LAB)), in_folder("/head", LAB), &all);
    assert_eq!(both.names(), ["a, base", "a, head", "b, base", "b, head"]);
    let against: Vec<_> = both.all().map(|it| it.against.as_deref()).collect();
    assert_eq!(against, [None, Some("a, base"), None, Some("b, base")]);
}

#[test]
fn what_the_older_revision_lacks_is_absent_there() {
    let head = || in_folder("/head", LAB);
    let new = Lab::of_revisions(Err("the lab is new"), head(), &names(&["a"]));
    assert_eq!(new.baseline.absent.as_deref(), Some("the lab is new"));
    assert_eq!(new.variants[0].absent, None);
    let older = in_folder("/base", &changed(&[("{name: b,", "{name: c,")]));
    let both = Lab::of_revisions(Ok(&older), head(), &names(&["b"]));
    let reason = both.baseline.absent.as_deref();
    assert_eq!(
        reason,
        Some("the lab of the older revision has no variant `b`")
    );
}

#[test]
fn a_lab_for_revisions_needs_no_variants() {
    let found = lab(&[("variants:\n  - {name: b, with: {server.stack: b}}\n", "")]);
    assert!(found.variants.is_empty());
    let shown = in_folder("/somewhere/head", LAB).seen_from(Path::new("/somewhere/head"));
    assert_eq!(shown.path, Path::new("labs/x.yaml"));
    assert_eq!(shown.sources[0].path, Path::new("labs/x.yaml"));
}
