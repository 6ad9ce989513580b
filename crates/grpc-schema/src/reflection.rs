//! Questions to a server with reflection, and its answers (`grpc.reflection.v1`, and `v1alpha` with the same
//! messages).

use std::collections::BTreeSet;

use crate::wire::{Content, fields, put};

pub mod echo;

/// The methods of reflection, newest first. Older servers only have the second.
pub const METHODS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// The largest number of files of one service.
pub const FILES_MAX: usize = 2_000;

/// A question to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The file that defines a service, by its full name.
    FileOfService(String),
    /// A file by its name.
    File(String),
    /// The names of all services.
    Services,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectionAnswer {
    /// Files as descriptors, each as bytes.
    Files(Vec<Vec<u8>>),
    /// Names of services.
    Services(Vec<String>),
    /// The server cannot answer. The text is its reason.
    Error(String),
}

/// Returns a question as a message.
#[must_use]
pub fn encode(question: &Question) -> Vec<u8> {
    let mut message = Vec::new();
    match question {
        Question::File(name) => put(3, name.as_bytes(), &mut message),
        Question::FileOfService(name) => put(4, name.as_bytes(), &mut message),
        Question::Services => put(7, b"*", &mut message),
    }
    message
}

/// Reads an answer.
///
/// # Errors
/// If the message is no answer of reflection.
pub fn decode(message: &[u8]) -> Result<ReflectionAnswer, String> {
    for (number, content) in fields(message) {
        let Content::Bytes(inner) = content else {
            continue;
        };
        match number {
            4 => return Ok(ReflectionAnswer::Files(all_of(inner, 1))),
            6 => {
                let services = all_of(inner, 1);
                let name = |service: &Vec<u8>| all_of(service, 1).pop().map(|name| text(&name));
                return Ok(ReflectionAnswer::Services(
                    services.iter().filter_map(name).collect(),
                ));
            }
            7 => {
                let message = all_of(inner, 2).pop().unwrap_or_default();
                return Ok(ReflectionAnswer::Error(text(&message)));
            }
            _ => {}
        }
    }
    Err("expected an answer of reflection, found another message".to_owned())
}

/// Returns the bytes of a field each time that it occurs.
fn all_of(message: &[u8], wanted: u64) -> Vec<Vec<u8>> {
    let bytes = fields(message).filter_map(|(number, content)| match content {
        Content::Bytes(bytes) if number == wanted => Some(bytes.to_vec()),
        _ => None,
    });
    bytes.collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The files that a server has sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    names: BTreeSet<String>,
    imports: BTreeSet<String>,
    files: Vec<Vec<u8>>,
}

impl Files {
    /// Adds a file. A file that is already there is left out.
    pub fn add(&mut self, file: Vec<u8>) {
        let name = all_of(&file, 1).pop().map(|name| text(&name));
        if let Some(name) = name
            && self.names.insert(name)
        {
            let imports = all_of(&file, 3);
            self.imports.extend(imports.iter().map(|name| text(name)));
            self.files.push(file);
        }
    }

    /// Number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True without a file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the names of imported files that are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.imports.difference(&self.names).cloned().collect()
    }

    /// Returns the files as one set of descriptors, in the order of their names.
    #[must_use]
    pub fn into_set(mut self) -> Vec<u8> {
        // Sorted, so that equal files have an equal digest whatever their order was.
        self.files.sort();
        let mut set = Vec::new();
        for file in &self.files {
            put(1, file, &mut set);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_have_the_numbers_of_the_protocol() {
        let question = encode(&Question::FileOfService("a.B".to_owned()));
        assert_eq!(question, b"\x22\x03a.B");
        assert_eq!(encode(&Question::File("a".to_owned())), b"\x1a\x01a");
        let mut files = Vec::new();
        put(1, b"one", &mut files);
        put(1, b"two", &mut files);
        let mut answer = Vec::new();
        put(4, &files, &mut answer);
        let found = decode(&answer).unwrap();
        assert_eq!(
            found,
            ReflectionAnswer::Files(vec![b"one".to_vec(), b"two".to_vec()])
        );
        let mut error = vec![0x08, 5];
        put(2, b"not found", &mut error);
        let mut answer = Vec::new();
        put(7, &error, &mut answer);
        assert_eq!(
            decode(&answer),
            Ok(ReflectionAnswer::Error("not found".to_owned()))
        );
        assert!(decode(b"\x08\x01").is_err());
    }

    #[test]
    fn imports_that_are_missing_are_named() {
        let file = |name: &str, imports: &[&str]| {
            let mut file = Vec::new();
            put(1, name.as_bytes(), &mut file);
            for import in imports {
                put(3, import.as_bytes(), &mut file);
            }
            file
        };
        let mut files = Files::default();
        files.add(file("a.proto", &["b.proto", "c.proto"]));
        files.add(file("b.proto", &[]));
        files.add(file("b.proto", &[]));
        assert_eq!(files.len(), 2);
        assert_eq!(files.missing(), ["c.proto"]);
    }
}
