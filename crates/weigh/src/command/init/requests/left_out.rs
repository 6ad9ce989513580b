//! The parts of a file that are not in the lab, with the number of requests among them.

/// Maximum number of lines on the terminal.
const LINES_MAX: usize = 10;

/// A part of the file that is not in the lab.
#[derive(Debug)]
struct Omission {
    /// Number of requests of the file in this part. 0 for a part that is no request.
    requests: usize,
    /// The line in the file, counted from 1, if the importer has it.
    line: Option<usize>,
    what: String,
    why: String,
}

impl std::fmt::Display for Omission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// All parts of the file that are not in the lab.
#[derive(Debug, Default)]
pub(super) struct Omissions {
    all: Vec<Omission>,
    /// Number of requests after the largest number of requests of a lab.
    beyond: usize,
    /// The largest number of requests of a lab.
    max: usize,
}

impl Omissions {
    pub(super) fn add(&mut self, requests: usize, line: Option<usize>, what: &str, why: &str) {
        // Query parameters may be secret.
        let what = what.split('?').next().unwrap_or_default();
        self.all.push(Omission {
            requests,
            line,
            what: what.to_owned(),
            why: why.to_owned(),
        });
    }

    /// Counts a request after the largest number of requests of a lab.
    pub(super) fn beyond(&mut self, max: usize) {
        self.beyond += 1;
        self.max = max;
    }

    /// Number of requests of the file that are not in the lab.
    pub(super) fn requests(&self) -> usize {
        let listed: usize = self.all.iter().map(|it| it.requests).sum();
        listed + self.beyond
    }

    /// All omissions, one line each. Requests come in the order of the file.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.all.iter().map(ToString::to_string).collect();
        lines.extend(self.rest());
        lines
    }

    /// The omissions for the terminal, requests first, with a limited number of lines.
    pub(super) fn first_lines(&self) -> Vec<String> {
        let (requests, others): (Vec<_>, Vec<_>) =
            self.all.iter().partition(|omission| omission.requests > 0);
        let requests = requests.into_iter().map(ToString::to_string);
        let mut lines: Vec<String> = requests.chain(self.rest()).collect();
        lines.extend(others.into_iter().map(ToString::to_string));
        let more = lines.len().saturating_sub(LINES_MAX);
        if more > 0 {
            lines.truncate(LINES_MAX);
            lines.push(format!("… and {more} more"));
        }
        lines
    }

    /// The line about the requests after the largest number.
    fn rest(&self) -> Option<String> {
        let (beyond, max) = (self.beyond, self.max);
        (beyond > 0).then(|| {
            format!("{beyond} requests after the first {max}: a lab has at most {max} of a file")
        })
    }
}
