//! Parses a text into a template: texts, JSON values and blocks. The submodule parses the expressions between
//! braces.

mod expression;

use crate::expression::Node;

/// Maximum nesting of a template.
const DEPTH_MAX: usize = 64;

/// Reason why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template is wrong at line {line}, column {column}: expected {expected}")]
pub struct TemplateError {
    expected: String,
    /// The line, counted from 1.
    line: usize,
    /// The column in characters, counted from 1.
    column: usize,
}

type Parsed<T> = Result<T, TemplateError>;

pub(crate) fn json(text: &str) -> Parsed<Node> {
    let mut parser = Parser::new(text);
    let node = parser.expression()?;
    parser.space();
    parser.end(node)
}

pub(crate) fn text(text: &str) -> Parsed<Node> {
    let mut parser = Parser::new(text);
    let node = parser.text(false)?;
    parser.end(node)
}

/// The language of a block's branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Json,
    Text { is_quoted: bool },
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    fn expected<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        // The position can be inside a character after an escape was tried.
        let before = &self.text[..self.text.floor_char_boundary(self.at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Err(TemplateError {
            expected: expected.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        })
    }

    fn end(&self, node: Node) -> Parsed<Node> {
        if self.rest().is_empty() {
            Ok(node)
        } else {
            self.expected("the end of the template")
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips white space and comments.
    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - after_space(rest).len();
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_there = self.rest().starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn need(&mut self, token: &str) -> Parsed<()> {
        self.space();
        if self.takes(token) {
            Ok(())
        } else {
            self.expected(format!("`{token}`"))
        }
    }

    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return self.expected("less nesting");
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// Returns the word at the position, without consuming it.
    fn word(&self) -> &'a str {
        let rest = self.rest();
        let is_inside =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '$');
        if !rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            return "";
        }
        // `find` returns `None` if the word extends to the end of the template.
        let length = rest.find(|letter| !is_inside(letter));
        &rest[..length.unwrap_or(rest.len())]
    }

    /// Returns the word after `{{` at the position, without consuming it.
    fn keyword(&self) -> Option<&'a str> {
        let inside = after_space(self.rest().strip_prefix("{{")?);
        let length = inside.find(|letter: char| !letter.is_ascii_alphabetic());
        Some(&inside[..length.unwrap_or(inside.len())])
    }

    fn closes_block(&self) -> bool {
        matches!(self.keyword(), Some("elif" | "else" | "end"))
    }

    /// Consumes `{{` and the keyword.
    fn open(&mut self, keyword: &str) -> Parsed<()> {
        self.space();
        if self.keyword() != Some(keyword) {
            return self.expected(format!("`{{{{ {keyword}`"));
        }
        self.at += 2;
        self.space();
        self.at += keyword.len();
        Ok(())
    }

    /// Parses text with expressions, up to the quote, the end, or the end of a block.
    fn text(&mut self, is_quoted: bool) -> Parsed<Node> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        while let Some(letter) = self.rest().chars().next() {
            // Blocks are checked before plain text, so that a branch ends at its `{{ end }}`.
            if is_quoted && letter == '"' || self.closes_block() {
                break;
            }
            if self.rest().starts_with("{{") {
                if !plain.is_empty() {
                    parts.push(Node::Plain(std::mem::take(&mut plain)));
                }
                parts.push(self.deeper(|it| it.braces(Mode::Text { is_quoted }))?);
            } else if is_quoted && letter == '\\' {
                plain.push(self.escape()?);
            } else {
                plain.push(letter);
                self.at += letter.len_utf8();
            }
        }
        if !plain.is_empty() {
            parts.push(Node::Plain(plain));
        }
        // In quotes, a single expression is still a string: `"{{1}}"` is the string "1".
        Ok(match (parts.len(), parts.pop()) {
            (1, Some(only)) if !is_quoted => only,
            (1, Some(Node::Plain(only))) => Node::Plain(only),
            (0, _) => Node::Plain(String::new()),
            (_, last) => {
                parts.extend(last);
                Node::Text(parts)
            }
        })
    }

    /// Parses an escape with the JSON reader, or `\\{`, which begins no expression.
    fn escape(&mut self) -> Parsed<char> {
        if self.takes("\\{") {
            return Ok('{');
        }
        // A surrogate pair consists of two escapes of six characters.
        let length = match self.rest().as_bytes().get(1) {
            Some(b'u') if self.rest()[2..].get(4..6) == Some("\\u") => 12,
            Some(b'u') => 6,
            _ => 2,
        };
        // Two escapes that are not a pair are read one by one.
        for length in [length, length.min(6)] {
            let Some(escape) = self.rest().get(..length) else {
                continue;
            };
            let quoted = format!("\"{escape}\"");
            if let Ok(crate::Json::Text(text)) = crate::Json::parse(quoted.as_bytes())
                && let (Some(letter), 1) = (text.chars().next(), text.chars().count())
            {
                self.at += length;
                return Ok(letter);
            }
        }
        self.expected("an escape such as `\\n`")
    }

    /// Parses a JSON value with expressions, or an expression in braces. The position is at its first
    /// character.
    fn value(&mut self) -> Parsed<Node> {
        // Depth is counted for each expression. Every recursion passes one.
        if self.rest().starts_with("{{") {
            return self.braces(Mode::Json);
        }
        match self.rest().as_bytes().first() {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => self.quoted(),
            _ => self.number(),
        }
    }

    fn quoted(&mut self) -> Parsed<Node> {
        self.at += 1;
        let text = self.text(true)?;
        if self.takes("\"") {
            Ok(text)
        } else {
            self.expected("the `\"` at the end of a string")
        }
    }

    fn number(&mut self) -> Parsed<Node> {
        let rest = self.rest();
        // Takes all characters of numbers. The JSON reader then checks them, so its grammar is not repeated
        // here.
        let is_inside = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let length = rest.bytes().take_while(is_inside).count();
        match crate::Json::parse(&rest.as_bytes()[..length]) {
            Ok(crate::Json::Number(digits)) => {
                self.at += length;
                Ok(Node::Number(digits.into_owned()))
            }
            _ => self.expected("a number"),
        }
    }

    fn list(&mut self) -> Parsed<Node> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        while !self.takes("]") {
            if !items.is_empty() {
                self.need(",")?;
            }
            items.push(self.expression()?);
            self.space();
        }
        Ok(Node::List(items))
    }

    fn object(&mut self) -> Parsed<Node> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        while !self.takes("}") {
            if !members.is_empty() {
                self.need(",")?;
                self.space();
            }
            if !self.rest().starts_with('"') {
                return self.expected("a key in quotes or `}`");
            }
            let key = self.quoted()?;
            self.need(":")?;
            members.push((key, self.expression()?));
            self.space();
        }
        Ok(Node::Object(members))
    }

    /// Parses `{{ … }}`. The position is at the braces.
    fn braces(&mut self, mode: Mode) -> Parsed<Node> {
        match self.keyword() {
            Some("if") => self.condition(mode),
            Some("range") => self.range(mode),
            Some(word @ ("elif" | "else" | "end")) => {
                self.expected(format!("an expression: `{word}` closes no block here"))
            }
            _ => {
                self.at += 2;
                let node = self.expression()?;
                self.need("}}")?;
                Ok(node)
            }
        }
    }

    fn branch(&mut self, mode: Mode) -> Parsed<Node> {
        match mode {
            Mode::Json => self.expression(),
            Mode::Text { is_quoted } => self.text(is_quoted),
        }
    }

    fn close(&mut self) -> Parsed<()> {
        self.open("end")?;
        self.need("}}")
    }

    fn condition(&mut self, mode: Mode) -> Parsed<Node> {
        let mut branches = Vec::new();
        let mut keyword = "if";
        loop {
            self.open(keyword)?;
            let condition = self.expression()?;
            self.need("}}")?;
            branches.push((condition, self.branch(mode)?));
            // Spaces around JSON values are ignored. In a text they belong to the branch.
            if mode == Mode::Json {
                self.space();
            }
            if self.keyword() != Some("elif") {
                break;
            }
            keyword = "elif";
        }
        self.open("else")?;
        self.need("}}")?;
        // `else` is required, because every template must have a value.
        let otherwise = Box::new(self.branch(mode)?);
        self.close()?;
        Ok(Node::If {
            branches,
            otherwise,
        })
    }

    fn range(&mut self, mode: Mode) -> Parsed<Node> {
        self.open("range")?;
        let first = self.binding()?;
        self.space();
        let (index, item) = if self.takes(",") {
            (first, self.binding()?)
        } else {
            (None, first)
        };
        self.need(":=")?;
        let over = Box::new(self.expression()?);
        self.need("}}")?;
        let body = Box::new(self.branch(mode)?);
        self.close()?;
        Ok(Node::Range {
            index,
            item,
            over,
            body,
        })
    }

    /// Parses the name of a variable. `None` for `_`.
    fn binding(&mut self) -> Parsed<Option<String>> {
        self.space();
        let start = self.at;
        let has_dollar = self.takes("$");
        let word = self.word();
        if word.is_empty() && !has_dollar {
            return self.expected("the name of a variable or `_`");
        }
        self.at += word.len();
        let name = &self.text[start..self.at];
        Ok((name != "_").then(|| name.to_owned()))
    }
}

/// The text after leading white space and comments. A comment begins with `#` and ends with its line.
fn after_space(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with('#') {
        rest = rest.find('\n').map_or("", |end| rest[end..].trim_start());
    }
    rest
}

fn constant(word: &str) -> Node {
    match word {
        "true" => Node::Bool(true),
        "false" => Node::Bool(false),
        _ => Node::Null,
    }
}
