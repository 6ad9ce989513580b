//! The lines of objects in JSON, by their JSON pointers (RFC 6901).

use std::collections::HashMap;

/// A list or an object around the current place.
struct Level {
    /// The length of its pointer.
    length: usize,
    /// The index of the current item. `None` for an object.
    index: Option<usize>,
}

/// The line of each object by its JSON pointer, counted from 1. Objects within more than `depth_max` others
/// are left out. The text is JSON without mistakes.
pub(super) fn lines(text: &str, depth_max: usize) -> HashMap<String, usize> {
    let mut lines = HashMap::new();
    let mut levels: Vec<Level> = Vec::new();
    let mut pointer = String::new();
    // The key, if a colon follows.
    let mut last = "";
    let (mut line, mut at) = (1, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let mut length = 1;
        match byte {
            b'\n' => line += 1,
            b'"' => {
                length = string_length(&text[at..]);
                last = &text[at..at + length];
            }
            b':' => {
                pointer.truncate(levels.last().map_or(0, |level| level.length));
                let key: String = serde_json::from_str(last).unwrap_or_default();
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            b'{' => {
                if levels.len() <= depth_max {
                    lines.insert(pointer.clone(), line);
                }
                levels.push(Level {
                    length: pointer.len(),
                    index: None,
                });
            }
            b'[' => {
                levels.push(Level {
                    length: pointer.len(),
                    index: Some(0),
                });
                pointer.push_str("/0");
            }
            b',' => {
                if let Some(level) = levels.last_mut()
                    && let Some(index) = &mut level.index
                {
                    *index += 1;
                    pointer.truncate(level.length);
                    pointer.push_str(&format!("/{index}"));
                }
            }
            b'}' | b']' => {
                let level = levels.pop();
                pointer.truncate(level.map_or(0, |level| level.length));
            }
            _ => {}
        }
        at += length;
    }
    lines
}

/// The length of a text of JSON with its quotes.
pub(super) fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_the_line_of_its_brace() {
        let text = "{\n \"a\": [\n  {\"b\": [], \"x\": 1},\n  [1, {\n}], {\"c\": \"{,[\\\"\"}\n ],\n \"d/~\":\n {\"é\": {}}}";
        let found = lines(text, 9);
        let expected = [
            ("", 1),
            ("/a/0", 3),
            ("/a/1/1", 4),
            ("/a/2", 5),
            ("/d~1~0", 8),
            ("/d~1~0/é", 8),
        ];
        assert_eq!(
            found,
            expected
                .map(|(pointer, line)| (pointer.to_owned(), line))
                .into()
        );
        let mut short: Vec<String> = lines(text, 1).into_keys().collect();
        short.sort();
        assert_eq!(short, ["", "/d~1~0"]);
    }
}
