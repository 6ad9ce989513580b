//! Changes of a text at known places.

/// One change: `text` replaces the bytes from `start` to `end`.
#[derive(Debug)]
struct Edit {
    start: u32,
    end: u32,
    text: String,
    /// True for the end of a call, which comes before the begin of another call at the same byte.
    closes: bool,
}

/// The changes of a text.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<Edit>);

impl Edits {
    /// Inserts the begin of a call.
    pub(super) fn open(&mut self, at: u32, text: String) {
        self.replace(at, at, text);
    }

    /// Inserts the end of a call.
    pub(super) fn close(&mut self, at: u32) {
        self.0.push(Edit {
            start: at,
            end: at,
            text: ")".to_owned(),
            closes: true,
        });
    }

    /// Replaces a part of the text.
    pub(super) fn replace(&mut self, start: u32, end: u32, text: String) {
        self.0.push(Edit {
            start,
            end,
            text,
            closes: false,
        });
    }

    /// The changed text.
    pub(super) fn applied(mut self, text: &str) -> String {
        self.0.sort_by_key(|edit| (edit.start, !edit.closes));
        let mut changed = String::with_capacity(text.len() + self.0.len() * 24);
        let mut done = 0;
        for edit in &self.0 {
            let (start, end) = (place(edit.start), place(edit.end));
            changed.push_str(text.get(done..start).unwrap_or_default());
            changed.push_str(&edit.text);
            done = end.max(done);
        }
        changed.push_str(text.get(done..).unwrap_or_default());
        changed
    }
}

/// A byte offset of the parser.
pub(super) fn place(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
