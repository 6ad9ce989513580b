//! Templates: text with `{{references}}` to settings and addresses, and commands made of them.
//!
//! A reference is `word` or `system.word`. The module `systems` decides the meaning of a word from its place.
//! There is no logic and no escape, because a lab is data.

use crate::command_line_hints;
use crate::formats::{FileName, Format, Misspelling, is_name};

/// Words of templates that no setting may have as its name.
pub(crate) const RESERVED: [&str; 7] = ["addr", "port", "url", "socket", "name", "instance", FILES];

/// The word for the folder of a system's configuration files.
pub(crate) const FILES: &str = "files";
/// The word before the dot for one of these files. No system may have this name.
pub(crate) const FILE: &str = "file";

/// The word for the system that receives the load, before the dot, outside of systems.
pub(crate) const TARGET: &str = "target";
/// The word for the path of the running program.
pub(crate) const PROGRAM: &str = "weigh";
/// The words for the folder of the lab: `{{lab.folder}}`.
pub(crate) const LAB: &str = "lab";
pub(crate) const FOLDER: &str = "folder";

/// Text with references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Plain(String),
    Reference(Reference),
}

/// The content between `{{` and `}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The system before the dot, or [`FILE`].
    pub(crate) system: Option<String>,
    /// The setting, or `addr`, `port`, `url`, `name`. After [`FILE`], the name of a file.
    pub(crate) word: String,
    /// Index of the reference within its value, from 0, for its place in messages.
    pub(crate) index: usize,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.system {
            Some(system) => write!(f, "{{{{{system}.{}}}}}", self.word),
            None => write!(f, "{{{{{}}}}}", self.word),
        }
    }
}

impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in &self.parts {
            match part {
                Part::Plain(plain) => f.write_str(plain)?,
                Part::Reference(reference) => reference.fmt(f)?,
            }
        }
        Ok(())
    }
}

/// A mistake in a text of many lines.
pub(crate) struct FileMistake {
    /// Place of the opening braces, in bytes from the beginning of the text.
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// The reason why a text is no template.
enum Mistake {
    /// The braces at this byte are not closed.
    Open(usize),
    /// The content of the braces at this byte is no reference.
    Reference(usize, Misspelling),
}

impl Template {
    /// Reads a text of many lines.
    pub(crate) fn of_file(text: &str) -> Result<Template, FileMistake> {
        Template::parse(text, 0).map_err(|mistake| match mistake {
            Mistake::Open(at) => FileMistake {
                at,
                message: "this template is not closed".to_owned(),
            },
            Mistake::Reference(at, misspelling) => FileMistake {
                at,
                message: misspelling.message,
            },
        })
    }

    /// Reads a text. Its first reference has the number `index` within its value.
    fn from_index(text: &str, index: usize) -> Result<Template, Misspelling> {
        Template::parse(text, index).map_err(|mistake| match mistake {
            Mistake::Open(_) => Misspelling::new(
                format!("a template in `{text}` is not closed"),
                "write `{{name}}`, with two braces on each side",
            ),
            Mistake::Reference(_, misspelling) => misspelling,
        })
    }

    fn parse(text: &str, mut index: usize) -> Result<Template, Mistake> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            let at = text.len() - rest.len() + open;
            let inside = &rest[open + 2..];
            let close = inside.find("}}").ok_or(Mistake::Open(at))?;
            if open > 0 {
                parts.push(Part::Plain(rest[..open].to_owned()));
            }
            let reference = reference(&inside[..close], index)
                .map_err(|misspelling| Mistake::Reference(at, misspelling))?;
            parts.push(Part::Reference(reference));
            index += 1;
            rest = &inside[close + 2..];
        }
        if !rest.is_empty() {
            parts.push(Part::Plain(rest.to_owned()));
        }
        Ok(Template { parts })
    }

    /// Returns the template with `{{word}}` replaced by a value.
    pub(crate) fn fill(&self, word: &str, value: &str) -> Template {
        let fill = |part: &Part| match part {
            Part::Reference(reference) if reference.system.is_none() && reference.word == word => {
                Part::Plain(value.to_owned())
            }
            other => other.clone(),
        };
        Template {
            parts: self.parts.iter().map(fill).collect(),
        }
    }

    /// Returns a template that is only one reference.
    pub(crate) fn of_reference(system: Option<&str>, word: &str) -> Template {
        Template {
            parts: vec![Part::Reference(Reference {
                system: system.map(str::to_owned),
                word: word.to_owned(),
                index: 0,
            })],
        }
    }

    /// Iterates over the references in order.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            Part::Plain(_) => None,
            Part::Reference(reference) => Some(reference),
        })
    }
}

fn reference(inside: &str, index: usize) -> Result<Reference, Misspelling> {
    let words = inside.trim();
    let (system, word) = match words.split_once('.') {
        Some((system, word)) => (Some(system), word),
        None => (None, words),
    };
    let is_file = system == Some(FILE) && FileName::read(word).is_ok();
    if !is_file && (!is_name(word) || !system.is_none_or(is_name)) {
        return Err(Misspelling::new(
            format!("`{{{{{inside}}}}}` is not a template"),
            "write `{{setting}}` or `{{system.setting}}`",
        ));
    }
    Ok(Reference {
        system: system.map(str::to_owned),
        word: word.to_owned(),
        index,
    })
}

impl Format for Template {
    const NAME: &'static str = "template";
    const EXAMPLE: Option<&'static str> = None;

    fn read(text: &str) -> Result<Self, Misspelling> {
        // Arguments and variables of processes end at a null byte, so the rest would be lost.
        if text.contains('\0') {
            return Err(Misspelling::new(
                "the text contains a null byte",
                "remove it",
            ));
        }
        Template::from_index(text, 0)
    }
}

/// A command line, split into program and arguments before its references are filled in. A value with spaces
/// therefore stays one argument. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command(pub(crate) Vec<Template>);

impl Format for Command {
    const NAME: &'static str = "command";
    const EXAMPLE: Option<&'static str> = None;

    fn read(text: &str) -> Result<Self, Misspelling> {
        // Spaces within braces would split, so references are written again without them.
        let tight = Template::read(text)?.to_string();
        // There is no shell. Its own start would be measured, too, and its signals would not reach the
        // system.
        let Some(words) = shlex::split(&tight) else {
            return Err(Misspelling::new(
                format!("a quote in `{text}` is not closed"),
                "`weigh` splits commands like a shell, but runs them without one. Close the quote",
            ));
        };
        if words.first().is_none_or(String::is_empty) {
            return Err(Misspelling::new(
                "the command is empty",
                "write a program and its arguments",
            ));
        }
        if let Some((mistake, hint)) = command_line_hints::for_shell(text, &words) {
            return Err(Misspelling::new(mistake, hint));
        }
        let mut index = 0;
        let mut arguments = Vec::new();
        for word in words {
            let argument = Template::from_index(&word, index)?;
            // References are numbered through the whole command, because the command is their value.
            index += argument.references().count();
            arguments.push(argument);
        }
        Ok(Command(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn check(command: &str) -> String {
        match Command::read(command) {
            Ok(Command(words)) => words
                .iter()
                .map(|word| format!("[{word}]"))
                .collect::<Vec<_>>()
                .join(" "),
            Err(wrong) => format!("{}; {}", wrong.message, wrong.help.unwrap()),
        }
    }

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        assert_snapshot!(check(r#"env RUSTFLAGS="-C target-cpu=native" cargo build 'a b' c\ d"#), @"[env] [RUSTFLAGS=-C target-cpu=native] [cargo] [build] [a b] [c d]");
    }

    #[test]
    fn a_template_stays_one_argument_whatever_fills_it() {
        assert_snapshot!(check("run/{{ stack }} --listen {{addr}} '{{a}} {{b.c}}'"), @"[run/{{stack}}] [--listen] [{{addr}}] [{{a}} {{b.c}}]");
    }

    #[test]
    fn what_cannot_be_split_or_filled_is_refused() {
        assert_snapshot!(check("echo 'a"), @"a quote in `echo 'a` is not closed; `weigh` splits commands like a shell, but runs them without one. Close the quote");
        assert_snapshot!(check("echo {{a"), @"a template in `echo {{a` is not closed; write `{{name}}`, with two braces on each side");
        assert_snapshot!(check("echo {{a b}}"), @"`{{a b}}` is not a template; write `{{setting}}` or `{{system.setting}}`");
        assert_snapshot!(check("   "), @"the command is empty; write a program and its arguments");
    }

    #[test]
    fn references_are_counted_across_the_words_of_a_command() {
        let Command(words) = Command::read("{{a}} x{{b}} {{c}}").unwrap();
        let indices: Vec<usize> = words
            .iter()
            .flat_map(Template::references)
            .map(|reference| reference.index)
            .collect();
        assert_eq!(indices, [0, 1, 2]);
    }
}
