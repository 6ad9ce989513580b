//! The lines of an `.http` file as requests.

/// A request as it is written, with its placeholders.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The line of its method and URL, counted from 1.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<String>,
    /// The script after the answer.
    pub(super) handler: String,
    /// True if a script runs before the request.
    pub(super) has_script: bool,
    /// The script before the request, unless it is in a file of its own.
    pub(super) before: String,
}

impl Written {
    /// True if the request is a command of curl.
    pub(super) fn is_curl(&self) -> bool {
        self.method == "CURL"
    }
}

/// The content of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) requests: Vec<Written>,
    /// The variables of `@name = value`.
    pub(super) variables: Vec<(String, String)>,
    /// Names that a user types when the request is sent, with the reason.
    pub(super) prompted: Vec<(String, String)>,
}

/// The part of a request that the next line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before the method and the URL.
    Before,
    Url,
    Headers,
    Body,
    /// Within `> {% … %}`.
    Handler,
    /// Within `< {% … %}`.
    Script,
}

/// Splits a file into requests.
pub(super) fn requests(text: &str) -> Content {
    let mut content = Content::default();
    let mut current = Written::default();
    let mut part = Part::Before;
    let text = text.trim_start_matches('\u{feff}');
    for (line, number) in text.lines().zip(1..) {
        if let Some(title) = line.strip_prefix("###") {
            content.end(&mut current);
            current.name = title.trim_start_matches('#').trim().to_owned();
            part = Part::Before;
            continue;
        }
        part = match part {
            Part::Handler | Part::Script => current.script_line(line, part),
            Part::Before => content.before(&mut current, line, number),
            Part::Url => current.after_url(line),
            Part::Headers => current.header(line),
            Part::Body => current.body_line(line),
        };
    }
    content.end(&mut current);
    content
}

impl Content {
    fn end(&mut self, current: &mut Written) {
        let mut ended = std::mem::take(current);
        // Comments and variables before the next request are not a part of the body.
        let mut variables = Vec::new();
        while let Some(last) = ended.body.last().map(|line| line.trim()) {
            match variable(last) {
                Some(pair) => variables.push(pair),
                None if last.is_empty() || comment(last).is_some() => {}
                None => break,
            }
            ended.body.pop();
        }
        self.variables.extend(variables.into_iter().rev());
        if !ended.url.is_empty() {
            self.requests.push(ended);
        }
    }

    /// A line before the method and the URL.
    fn before(&mut self, current: &mut Written, line: &str, number: usize) -> Part {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            return Part::Before;
        }
        if let Some(comment) = comment(trimmed) {
            self.comment(current, comment);
            return Part::Before;
        }
        if let Some(pair) = variable(trimmed) {
            self.variables.push(pair);
            return Part::Before;
        }
        if let Some(script) = trimmed.strip_prefix('<') {
            current.has_script = true;
            return match script.split_once("{%") {
                Some((_, script)) => current.script_line(script, Part::Script),
                None => Part::Before,
            };
        }
        current.line = number;
        if trimmed == "curl" || trimmed.starts_with("curl ") {
            current.method = "CURL".to_owned();
            current.url = trimmed.to_owned();
            return Part::Url;
        }
        let (method, url) = match trimmed.split_once(char::is_whitespace) {
            Some((method, url)) if method.bytes().all(|it| it.is_ascii_uppercase()) => {
                (method.to_owned(), url.trim())
            }
            _ => ("GET".to_owned(), trimmed),
        };
        (current.method, current.url) = (method, without_version(url).to_owned());
        Part::Url
    }

    fn comment(&mut self, current: &mut Written, comment: &str) {
        let Some(setting) = comment.trim().strip_prefix('@') else {
            return;
        };
        let (key, value) = setting.split_once([' ', '=']).unwrap_or((setting, ""));
        match key {
            "name" => current.name = value.trim_start_matches(['=', ' ']).trim().to_owned(),
            "prompt" => {
                let name = value.split_whitespace().next().unwrap_or_default();
                let why = format!("`{name}` is typed when the request is sent");
                self.prompted.push((name.to_owned(), why));
            }
            _ => {}
        }
    }
}

impl Written {
    /// A line after the URL: more of it, or the first header.
    fn after_url(&mut self, line: &str) -> Part {
        let trimmed = line.trim();
        let is_more = line.starts_with([' ', '\t']) && !trimmed.is_empty();
        if self.is_curl() {
            if trimmed.is_empty() {
                return Part::Body;
            }
            self.url = format!("{}\n{line}", self.url);
            return Part::Url;
        }
        if is_more && comment(trimmed).is_none() {
            self.url.push_str(without_version(trimmed));
            return Part::Url;
        }
        self.header(line)
    }

    fn header(&mut self, line: &str) -> Part {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            return Part::Body;
        }
        if comment(trimmed).is_some() {
            return Part::Headers;
        }
        if let Some((name, value)) = trimmed.split_once(':') {
            let pair = (name.trim().to_owned(), value.trim().to_owned());
            self.headers.push(pair);
            return Part::Headers;
        }
        // A handler may follow without an empty line.
        self.body_line(line)
    }

    fn body_line(&mut self, line: &str) -> Part {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix('>') {
            // `>> file` and `>>! file` keep the answer.
            if let Some(script) = rest.trim_start().strip_prefix("{%") {
                return self.script_line(script, Part::Handler);
            }
            if !rest.starts_with('>') && rest.starts_with(' ') {
                // A script in a file of its own.
                self.handler.push_str("file();\n");
                return Part::Body;
            }
            if rest.starts_with('>') {
                return Part::Body;
            }
        }
        if trimmed.starts_with("<>") {
            return Part::Body;
        }
        if trimmed.starts_with("< {%") {
            self.has_script = true;
            let is_open = !trimmed.contains("%}");
            return if is_open { Part::Script } else { Part::Body };
        }
        // Empty lines and comments between the headers and the body.
        let is_first = self.body.is_empty();
        if is_first
            && (trimmed.is_empty() || trimmed.starts_with("//") || trimmed.starts_with("# "))
        {
            return Part::Body;
        }
        self.body.push(line.trim_end_matches('\r').to_owned());
        Part::Body
    }

    /// A line within a script.
    fn script_line(&mut self, line: &str, part: Part) -> Part {
        let (inside, is_end) = match line.split_once("%}") {
            Some((inside, _)) => (inside, true),
            None => (line, false),
        };
        let text = match part {
            Part::Handler => &mut self.handler,
            _ => &mut self.before,
        };
        text.push_str(inside);
        text.push('\n');
        match (is_end, part) {
            (false, part) => part,
            (true, Part::Script) if self.url.is_empty() => Part::Before,
            (true, _) => Part::Body,
        }
    }
}

/// The name and the value in a line such as `@name = value`.
fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix('@')?.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    is_name.then(|| (name.to_owned(), value.trim().to_owned()))
}

/// A URL without the version of HTTP after it.
fn without_version(url: &str) -> &str {
    match url.rsplit_once(char::is_whitespace) {
        Some((url, version)) if version.starts_with("HTTP/") => url.trim(),
        _ => url,
    }
}

/// The text of a comment.
fn comment(line: &str) -> Option<&str> {
    line.strip_prefix("//").or_else(|| line.strip_prefix('#'))
}

/// The file of a body in a line such as `< ./body.json`, and true if its placeholders are replaced (`<@`).
pub(super) fn file_of(line: &str) -> Option<(&str, bool)> {
    let rest = line.strip_prefix('<')?;
    let (rest, has_places) = match rest.strip_prefix('@') {
        // An encoding may follow.
        Some(rest) => (rest.split_once(' ')?.1, true),
        None => (rest.strip_prefix(' ')?, false),
    };
    Some((rest.trim(), has_places))
}
