//! The small schema of the null server: `null.Echo`, and its answers to questions of reflection.

use crate::wire::{Content, fields, put};

/// The name of the file.
const FILE: &str = "null.proto";

/// The full name of the service.
const SERVICE: &str = "null.Echo";

/// Its methods, with streams of messages and of answers.
const METHODS: [(&str, bool, bool); 3] = [
    ("Say", false, false),
    ("Watch", false, true),
    ("Chat", true, true),
];

/// Returns the answer to a question.
#[must_use]
pub fn answer(question: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    for (number, content) in fields(question) {
        let Content::Bytes(wanted) = content else {
            continue;
        };
        let text = String::from_utf8_lossy(wanted);
        match number {
            3 | 4 if [FILE, SERVICE].contains(&&*text) => {
                let mut files = Vec::new();
                put(1, &file(), &mut files);
                put(4, &files, &mut message);
            }
            3 | 4 => {
                // The status NOT_FOUND.
                let mut error = vec![0x08, 5];
                put(2, format!("no `{text}`").as_bytes(), &mut error);
                put(7, &error, &mut message);
            }
            7 => {
                let (mut service, mut services) = (Vec::new(), Vec::new());
                put(1, SERVICE.as_bytes(), &mut service);
                put(1, &service, &mut services);
                put(6, &services, &mut message);
            }
            _ => {}
        }
    }
    message
}

/// Returns the set of descriptors (`google.protobuf.FileDescriptorSet`).
#[must_use]
pub fn descriptors() -> Vec<u8> {
    let mut set = Vec::new();
    put(1, &file(), &mut set);
    set
}

/// Returns the file as a descriptor (`google.protobuf.FileDescriptorProto`).
fn file() -> Vec<u8> {
    let mut field = Vec::new();
    put(1, b"text", &mut field);
    // The number 1, optional, a text.
    field.extend_from_slice(&[0x18, 1, 0x20, 1, 0x28, 9]);
    let mut message = Vec::new();
    put(1, b"Message", &mut message);
    put(2, &field, &mut message);
    let mut service = Vec::new();
    put(1, b"Echo", &mut service);
    for (name, takes_several, answers_several) in METHODS {
        let mut method = Vec::new();
        put(1, name.as_bytes(), &mut method);
        put(2, b".null.Message", &mut method);
        put(3, b".null.Message", &mut method);
        method.extend_from_slice(&[0x28, u8::from(takes_several)]);
        method.extend_from_slice(&[0x30, u8::from(answers_several)]);
        put(2, &method, &mut service);
    }
    let mut file = Vec::new();
    put(1, FILE.as_bytes(), &mut file);
    put(2, b"null", &mut file);
    put(4, &message, &mut file);
    put(6, &service, &mut file);
    put(12, b"proto3", &mut file);
    file
}

#[cfg(test)]
mod tests {
    use super::super::{Files, Question, ReflectionAnswer, decode, encode};
    use super::*;
    use crate::CallSchema;

    #[test]
    fn a_client_can_read_the_schema() {
        let asked = |question: Question| decode(&answer(&encode(&question))).unwrap();
        let services = asked(Question::Services);
        assert_eq!(
            services,
            ReflectionAnswer::Services(vec![SERVICE.to_owned()])
        );
        let ReflectionAnswer::Files(found) = asked(Question::FileOfService(SERVICE.to_owned()))
        else {
            panic!("no file");
        };
        let mut files = Files::default();
        found.into_iter().for_each(|file| files.add(file));
        assert_eq!(files.missing(), Vec::<String>::new());
        let schema = CallSchema::read(&files.into_set()).unwrap();
        let chat = schema.method("null.Echo/Chat").unwrap();
        assert!(chat.takes_several() && chat.answers_several());
        assert_eq!(chat.encode(r#"{"text":"hi"}"#), Ok(b"\x0a\x02hi".to_vec()));
        let none = asked(Question::File("other.proto".to_owned()));
        assert_eq!(none, ReflectionAnswer::Error("no `other.proto`".to_owned()));
    }
}
