//! The folders of the coprocessor languages are uniform, and `runners.yaml` is their only list.

use std::path::Path;

use super::{read, tracked};

const HOME: &str = "services/coprocessors";

/// The fields of an entry of `runners.yaml` that concern files.
struct Language {
    name: String,
    /// The file that pins every library.
    lock: String,
    /// Files of the language, relative to its folder.
    files: Vec<String>,
}

fn languages() -> Vec<Language> {
    let list = read(&format!("{HOME}/runners.yaml"));
    let mut languages: Vec<Language> = Vec::new();
    for line in list.lines() {
        let is_name = !line.starts_with([' ', '#']);
        if let (true, Some(name)) = (is_name, line.strip_suffix(':')) {
            let folder = format!("{HOME}/{name}/");
            languages.push(Language {
                name: name.to_owned(),
                lock: String::new(),
                files: tracked(&folder)
                    .iter()
                    .map(|file| file.replacen(&folder, "", 1))
                    .collect(),
            });
        } else if let Some(lock) = line.strip_prefix("  lock: ") {
            let last = languages.last_mut().expect("a name stands above its keys");
            lock.clone_into(&mut last.lock);
        }
    }
    languages
}

#[test]
fn every_folder_of_a_language_is_in_the_list_and_the_other_way_round() {
    let mut listed: Vec<String> = languages().into_iter().map(|it| it.name).collect();
    listed.sort();
    let mut folders: Vec<String> = tracked(HOME)
        .iter()
        .filter_map(|file| file.strip_prefix(HOME)?.strip_prefix('/')?.split_once('/'))
        .map(|(folder, _)| folder.to_owned())
        .filter(|folder| folder != "cases")
        .collect();
    folders.sort();
    folders.dedup();
    assert_eq!(
        listed, folders,
        "{HOME}/runners.yaml (left) and the folders beside it (right) differ"
    );
}

#[test]
fn every_language_has_a_manual_an_image_and_pinned_libraries() {
    for language in languages() {
        for file in ["README.md", "Dockerfile", &language.lock] {
            assert!(
                language.files.iter().any(|found| found == file),
                "{HOME}/{}: `{file}` is missing{}",
                language.name,
                if file.is_empty() {
                    "; runners.yaml names no `lock`"
                } else {
                    ""
                }
            );
        }
        let built = language
            .files
            .iter()
            .find(|file| file.starts_with("build/"));
        assert_eq!(
            built, None,
            "{HOME}/{}: what is built stays out of git",
            language.name
        );
    }
}

#[test]
fn every_manual_answers_the_same_questions() {
    const QUESTIONS: [&str; 5] = [
        "## What it is",
        "## Version",
        "## Choices",
        "## Known differences",
        "## How to run by hand",
    ];
    for language in languages() {
        let file = format!("{HOME}/{}/README.md", language.name);
        let manual = read(&file);
        let found: Vec<&str> = manual
            .lines()
            .filter(|line| line.starts_with("## "))
            .collect();
        assert_eq!(
            found, QUESTIONS,
            "{file}: other headings than in the other languages"
        );
    }
}

#[test]
fn every_language_has_the_same_parts() {
    for language in languages() {
        let place = format!("{HOME}/{}", language.name);
        let part = |name: &str| {
            let is_it = |file: &&String| {
                let stem = Path::new(file.as_str()).file_stem();
                stem.is_some_and(|stem| stem.to_string_lossy().to_lowercase().starts_with(name))
            };
            let found = language.files.iter().find(is_it);
            found.unwrap_or_else(|| panic!("{place}: no file is called `{name}`, as in the others"))
        };
        for name in ["main", "serv", "token"] {
            let _ = part(name);
        }
        let decide = format!("{place}/{}", part("decide"));
        let text = read(&decide).to_lowercase().replace('_', "");
        for function in ["decide", "addsource", "addids", "identifyclient"] {
            assert!(
                text.contains(function),
                "{decide}: no function `{function}`, as in the others"
            );
        }
    }
}
