//! Claims about the files of this repository: the schema, the manual and the labs.

use std::fs;
use std::path::{Path, PathBuf};

use lab::Files;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf()
}

/// A file system on disk.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| error.to_string())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
        Ok(entries.map(|entry| entry.unwrap().path()).collect())
    }
}

#[test]
fn the_committed_schema_is_the_one_that_checks() {
    generated::assert_schema("lab", &lab::schema());
    generated::assert_schema("scenario", &lab::scenario_schema());
}

#[test]
fn the_committed_manual_is_made_from_the_schema() {
    generated::assert_generated("docs/labs.md", &lab::manual());
}

/// Returns the folder and all folders below it.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let below = below.filter(|path| path.is_dir());
    let mut all: Vec<PathBuf> = below.flat_map(|path| folders(&path)).collect();
    all.push(folder.to_owned());
    all
}

#[test]
fn every_lab_of_this_repository_is_right() {
    let mut labs = 0;
    for folder in folders(&root().join("labs")) {
        for path in lab::find(&folder, &Disk).unwrap() {
            if let Err(mistakes) = lab::parse(&path, &Disk) {
                panic!("{mistakes}");
            }
            labs += 1;
        }
    }
    assert!(labs > 0, "labs/ holds no lab");
}

#[test]
fn every_lab_file_names_its_schema() {
    for folder in fs::read_dir(root().join("labs")).unwrap() {
        for file in Disk.list(&folder.unwrap().path()).unwrap_or_default() {
            if file
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                let text = fs::read_to_string(&file).unwrap();
                let first = text.lines().next().unwrap_or_default();
                assert_eq!(
                    first,
                    "# yaml-language-server: $schema=../../schemas/lab.schema.json",
                    "{}",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn every_lab_in_the_manual_is_right() {
    let manual = lab::manual();
    let mut blocks = manual.split("```yaml\n").skip(1);
    let block = blocks.next().unwrap().split("```").next().unwrap();
    let folder = crate::Folder::with_lab(block).file("labs/queries/test.json", "{}");
    if let Err(mistakes) = folder.parse() {
        panic!("{mistakes}");
    }
    // Other files are parts, which are correct within a lab that has the rest.
    let rest = [
        ("question:", " q\n"),
        ("target:", " server\n"),
        ("load:", " {connections: 1, count: 1}\n"),
        (
            "systems:",
            "\n  server: {settings: {way: a}, run: 's {{way}} {{addr}} {{origin.addr}}'}\n  origin: {run: 'o {{addr}}'}\n",
        ),
        ("baseline:", " {name: a}\n"),
        ("variants:", " [{name: b}]\n"),
    ];
    for block in blocks {
        let mut text = block.split("```").next().unwrap().to_owned();
        for (key, value) in rest {
            if !text.lines().any(|line| line.starts_with(key)) {
                text += &format!("{key}{value}");
            }
        }
        let mut folder = crate::Folder::with_lab(text).file("labs/users.csv", "user\nann\n");
        for requests in ["queries", "registered", "hashed"] {
            folder = folder.file(&format!("labs/{requests}/test.json"), "{}");
        }
        if let Err(mistakes) = folder.parse() {
            panic!("{mistakes}");
        }
    }
}
