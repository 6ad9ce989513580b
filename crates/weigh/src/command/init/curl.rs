//! Requests of pasted `curl` commands.

mod options;

use std::fs;
use std::path::Path;

use experiment::secrets::is_secret;

use super::multipart::{self, Part};
use super::origins::{add_chosen, located};
use super::requests::{Given, Requests};
use super::shell_words::{Command, Word, commands};
use super::values::encoded;
use options::{OF_THE_LAB, SILENT, SILENT_WITH_VALUE, has_value};

/// Reads the requests of commands. Relative files are in the folder.
///
/// # Errors
/// The mistake in a command, for the user.
pub(super) fn read(
    texts: &[String],
    folder: &Path,
    host: Option<&str>,
) -> Result<Requests, String> {
    let mut requests = Requests::of("curl");
    let mut found = Vec::new();
    for text in texts {
        add(text, folder, &mut found, &mut requests)?;
    }
    add_chosen(found, host, &mut requests)?;
    Ok(requests)
}

/// Adds the requests of a text with commands.
pub(super) fn add(
    text: &str,
    folder: &Path,
    found: &mut Vec<(String, Given)>,
    requests: &mut Requests,
) -> Result<(), String> {
    if text.contains("^\"") || text.contains("^\n") {
        return Err(
            "expected a command of bash, found one of the command line of Windows. Copy it \
             as cURL (bash)"
                .to_owned(),
        );
    }
    for command in commands(text)? {
        let name = command.words.first().map(|word| word.text.as_str());
        let is_curl = name.is_some_and(|name| name == "curl" || name.ends_with("/curl"));
        if !is_curl {
            let name = name.unwrap_or_default();
            requests.leave_out(&format!("`{name}`"), "it is no command of curl");
            continue;
        }
        for part in command.words[1..].split(|word| ["--next", "-:"].contains(&word.text.as_str()))
        {
            let call = Call::read(part, folder)?;
            let what = call.urls.first().cloned().unwrap_or_default();
            for (option, advice) in &call.remarks {
                requests.leave_out(option, advice);
            }
            if call.urls.is_empty() {
                requests.leave_out_request(Some(command.line), "curl", "it has no URL");
            }
            for url in &call.urls {
                match call.given(url, &command, requests) {
                    Ok(sent) => found.push(sent),
                    Err(why) => requests.leave_out_request(Some(command.line), &what, &why),
                }
            }
        }
    }
    Ok(())
}

/// The options of a command.
#[derive(Default)]
struct Call {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    /// Names of headers that curl does not add.
    removed: Vec<String>,
    /// Names of hidden headers.
    hidden: Vec<String>,
    data: Vec<Vec<u8>>,
    parts: Vec<Part>,
    is_json: bool,
    is_get: bool,
    is_head: bool,
    is_upload: bool,
    is_compressed: bool,
    is_literal: bool,
    remarks: Vec<(String, String)>,
    /// The reason why the request cannot be sent.
    refused: Option<String>,
}

impl Call {
    fn read(words: &[Word], folder: &Path) -> Result<Call, String> {
        let mut call = Call::default();
        let mut words = words.iter();
        let mut is_options = true;
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if is_options && text == "--" {
                is_options = false;
            } else if is_options && text.starts_with("--") {
                let (name, given) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (text, None),
                };
                call.option(
                    name,
                    given.map(|it| Word {
                        text: it,
                        unknown: word.unknown.clone(),
                    }),
                    &mut words,
                    folder,
                )?;
            } else if is_options && text.starts_with('-') && text.len() > 1 {
                call.short_options(word, &mut words, folder)?;
            } else {
                call.refuse_unknown(word);
                call.urls.push(text.to_owned());
            }
        }
        Ok(call)
    }

    /// Reads letters after one dash: `-sXPOST` is `-s -X POST`.
    fn short_options(
        &mut self,
        word: &Word,
        words: &mut std::slice::Iter<'_, Word>,
        folder: &Path,
    ) -> Result<(), String> {
        let letters = &word.text[1..];
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let rest = &letters[at + letter.len_utf8()..];
            if !has_value(&name) {
                self.option(&name, None, words, folder)?;
                continue;
            }
            let value = (!rest.is_empty()).then(|| Word {
                text: rest.to_owned(),
                unknown: word.unknown.clone(),
            });
            return self.option(&name, value, words, folder);
        }
        Ok(())
    }

    fn refuse_unknown(&mut self, word: &Word) {
        if let Some(what) = &word.unknown {
            self.refused.get_or_insert(format!("it contains {what}"));
        }
    }

    fn option(
        &mut self,
        name: &str,
        value: Option<Word>,
        words: &mut std::slice::Iter<'_, Word>,
        folder: &Path,
    ) -> Result<(), String> {
        if let Some((_, takes, advice)) = OF_THE_LAB.iter().find(|(known, ..)| *known == name) {
            if *takes && value.is_none() {
                words.next();
            }
            self.remarks.push((name.to_owned(), (*advice).to_owned()));
            return Ok(());
        }
        if SILENT.contains(&name) {
            return Ok(());
        }
        if !has_value(name) {
            return self.switch(name);
        }
        let word = match value {
            Some(word) => word,
            None => words
                .next()
                .cloned()
                .ok_or_else(|| format!("`{name}` has no value"))?,
        };
        if SILENT_WITH_VALUE.contains(&name) {
            return Ok(());
        }
        self.valued(name, &word, folder)
    }

    fn switch(&mut self, name: &str) -> Result<(), String> {
        match name {
            "-G" | "--get" => self.is_get = true,
            "-I" | "--head" => self.is_head = true,
            "-g" | "--globoff" => self.is_literal = true,
            "--compressed" => self.is_compressed = true,
            "--digest" | "--ntlm" | "--negotiate" | "--basic" | "--anyauth" => {
                self.hidden.push("Authorization".to_owned());
            }
            _ => {
                return Err(format!(
                    "the option `{name}` of curl is not known here. Remove it, or write the request \
                     into the lab"
                ));
            }
        }
        Ok(())
    }

    fn valued(&mut self, name: &str, word: &Word, folder: &Path) -> Result<(), String> {
        let text = word.text.as_str();
        match name {
            "-H" | "--header" => return self.header(word, folder),
            "-u" | "--user" | "--oauth2-bearer" | "--aws-sigv4" => {
                self.hidden.push("Authorization".to_owned());
                return Ok(());
            }
            "-b" | "--cookie" => {
                self.hidden.push("Cookie".to_owned());
                return Ok(());
            }
            _ => self.refuse_unknown(word),
        }
        match name {
            "--url" => self.urls.push(text.to_owned()),
            "-X" | "--request" => self.method = Some(text.to_ascii_uppercase()),
            "-A" | "--user-agent" => self
                .headers
                .push(("User-Agent".to_owned(), text.to_owned())),
            "-e" | "--referer" => self.headers.push(("Referer".to_owned(), text.to_owned())),
            "-d" | "--data" | "--data-ascii" => {
                let data = content(text, folder)?;
                let is_file = text.starts_with('@');
                // curl removes line ends of files.
                let kept = data
                    .into_iter()
                    .filter(|byte| !is_file || !b"\r\n\0".contains(byte));
                self.data.push(kept.collect());
            }
            "--data-raw" => self.data.push(text.as_bytes().to_vec()),
            "--data-binary" => self.data.push(content(text, folder)?),
            "--data-urlencode" => self.data.push(url_encoded(text, folder)?),
            "--json" => {
                self.is_json = true;
                self.data.push(content(text, folder)?);
            }
            "-F" | "--form" => self.parts.push(part(text, folder, true)?),
            "--form-string" => self.parts.push(part(text, folder, false)?),
            "-T" | "--upload-file" => {
                self.is_upload = true;
                self.data.push(content(&format!("@{text}"), folder)?);
            }
            _ => return Err(format!("`{name}` has no value")),
        }
        Ok(())
    }

    fn header(&mut self, word: &Word, folder: &Path) -> Result<(), String> {
        if let Some(file) = word.text.strip_prefix('@') {
            let text = String::from_utf8_lossy(&content(&format!("@{file}"), folder)?).into_owned();
            for line in text.lines() {
                self.add_header(line);
            }
            return Ok(());
        }
        let name = word.text.split(':').next().unwrap_or_default();
        // A credential of the shell is left out in any case.
        if !is_secret(name) {
            self.refuse_unknown(word);
        }
        self.add_header(&word.text);
        Ok(())
    }

    fn add_header(&mut self, line: &str) {
        // `Name;` is an empty header, and `Name:` removes one that curl would add.
        match (line.split_once(':'), line.strip_suffix(';')) {
            (Some((name, value)), _) if value.trim().is_empty() => {
                self.removed.push(name.trim().to_owned());
            }
            (Some((name, value)), _) => {
                let pair = (name.trim().to_owned(), value.trim().to_owned());
                self.headers.push(pair);
            }
            (None, Some(name)) => self.headers.push((name.to_owned(), String::new())),
            (None, None) => {}
        }
    }

    /// The request to a URL, with its server.
    fn given(
        &self,
        url: &str,
        command: &Command,
        requests: &mut Requests,
    ) -> Result<(String, Given), String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        if !self.is_literal && url.contains(['{', '}', '[', ']']) && !url.contains("[::") {
            return Err("its URL is a pattern of several URLs. With `-g` it is one URL".to_owned());
        }
        let located = located(url)?;
        if located.has_credentials {
            requests.hide("Authorization");
        }
        self.hidden.iter().for_each(|name| requests.hide(name));
        let (kind, body) = self.body()?;
        let mut given = Given {
            line: Some(command.line),
            path: located.path,
            ..Given::default()
        };
        let mut headers = self.headers.clone();
        add_boundary(&mut headers, kind.as_deref());
        let has = |headers: &[(String, String)], name: &str| {
            headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        let accept = if self.is_json {
            "application/json"
        } else {
            "*/*"
        };
        let mut usual = vec![("Accept", accept.to_owned())];
        if let Some(kind) = kind {
            usual.push(("Content-Type", kind));
        }
        if self.is_compressed {
            usual.push(("Accept-Encoding", "deflate, gzip, br, zstd".to_owned()));
        }
        for (name, value) in usual {
            let is_removed = self.removed.iter().any(|it| it.eq_ignore_ascii_case(name));
            if !is_removed && !has(&headers, name) {
                headers.push((name.to_owned(), value));
            }
        }
        given.headers = headers;
        let usual = match (&body, self.is_head, self.is_upload) {
            (_, true, _) => "HEAD",
            (_, _, true) => "PUT",
            (Some(_), ..) if !self.is_get => "POST",
            _ => "GET",
        };
        given.method = self.method.clone().unwrap_or_else(|| usual.to_owned());
        if given.method == "DELETE" {
            return Err("the next request would not find the deleted object".to_owned());
        }
        match body {
            Some(query) if self.is_get || self.is_head => {
                let query = String::from_utf8_lossy(&query).into_owned();
                let sign = if given.path.contains('?') { '&' } else { '?' };
                given.path = format!("{}{sign}{}", given.path, super::values::url_text(&query));
            }
            body => given.body = body,
        }
        Ok((located.origin, given))
    }

    /// The content type and the body.
    fn body(&self) -> Result<(Option<String>, Option<Vec<u8>>), String> {
        if !self.parts.is_empty() {
            let (kind, body) = multipart::body(&self.parts)?;
            return Ok((Some(kind), Some(body)));
        }
        if self.data.is_empty() {
            return Ok((None, None));
        }
        let kind = match (self.is_json, self.is_upload) {
            (true, _) => Some("application/json"),
            (_, true) => None,
            _ if self.is_get => None,
            _ => Some("application/x-www-form-urlencoded"),
        };
        let separator: &[u8] = if self.is_json { b"" } else { b"&" };
        Ok((kind.map(str::to_owned), Some(self.data.join(separator))))
    }
}

/// The bytes of a value, or of the file after an `@`.
fn content(text: &str, folder: &Path) -> Result<Vec<u8>, String> {
    match text.strip_prefix('@') {
        None => Ok(text.as_bytes().to_vec()),
        Some("-") => {
            Err("a body from the standard input is not read. Write it into a file".to_owned())
        }
        Some(file) => fs::read(folder.join(file))
            .map_err(|error| format!("its file `{file}` cannot be read: {error}")),
    }
}

/// The value of `--data-urlencode`: `content`, `=content`, `name=content`, `@file` or `name@file`.
fn url_encoded(text: &str, folder: &Path) -> Result<Vec<u8>, String> {
    let Some(at) = text.find(['=', '@']) else {
        return Ok(encoded(text).into_bytes());
    };
    let (name, rest) = text.split_at(at);
    let value = match rest.strip_prefix('=') {
        Some(value) => value.to_owned(),
        None => String::from_utf8(content(rest, folder)?)
            .map_err(|_| format!("its file `{}` is no text", &rest[1..]))?,
    };
    let value = encoded(&value);
    Ok(match name {
        "" => value,
        name => format!("{name}={value}"),
    }
    .into_bytes())
}

/// Adds the boundary of a body in parts to a media type of the user, as curl does.
fn add_boundary(headers: &mut [(String, String)], kind: Option<&str>) {
    let Some((_, boundary)) = kind.and_then(|kind| kind.split_once(';')) else {
        return;
    };
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("content-type") && !value.contains("boundary=") {
            *value = format!("{value};{boundary}");
        }
    }
}

/// The media type that curl gives a file by its ending.
fn media_type(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => return None,
    })
}

/// The value of `-F`: `name=content`, `name=@file` or `name=<file`, with `;type=` and `;filename=`.
fn part(text: &str, folder: &Path, has_files: bool) -> Result<Part, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("expected `name=content` in `-F`, found `{text}`"))?;
    let mut part = Part {
        name: name.to_owned(),
        ..Part::default()
    };
    if !has_files {
        part.content = value.as_bytes().to_vec();
        return Ok(part);
    }
    let mut pieces = value.split(';');
    let first = pieces.next().unwrap_or_default();
    let mut content_text = first.to_owned();
    for piece in pieces {
        match piece.trim().split_once('=') {
            Some(("type", kind)) => part.content_type = Some(kind.to_owned()),
            Some(("filename", name)) => part.file_name = Some(name.trim_matches('"').to_owned()),
            _ => content_text = format!("{content_text};{piece}"),
        }
    }
    if let Some(file) = content_text.strip_prefix('@') {
        let file = file.trim_matches('"');
        part.content = content(&format!("@{file}"), folder)?;
        let name = Path::new(file).file_name().unwrap_or_default();
        let name = part
            .file_name
            .get_or_insert(name.to_string_lossy().into_owned());
        if part.content_type.is_none() {
            part.content_type = media_type(name).map(str::to_owned);
        }
    } else if let Some(file) = content_text.strip_prefix('<') {
        part.content = content(&format!("@{file}"), folder)?;
    } else {
        part.content = content_text.into_bytes();
    }
    Ok(part)
}

#[cfg(test)]
mod tests;
