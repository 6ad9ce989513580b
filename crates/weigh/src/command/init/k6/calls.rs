//! Calls of `k6/http`, and the requests that they send.

use experiment::address;
use experiment::secrets::is_secret;
use http::Uri;
use tree_sitter::Node;

use super::js::{self, Js};
use super::script::children;
use super::walk::{SENT_MAX, Sent, Walk};
use crate::command::init::origins::origin;
use crate::command::init::requests::Given;
use crate::command::init::values::encoded;

impl<'t> Walk<'t> {
    /// Handles a call of a function of `k6/http`.
    pub(super) fn http(
        &mut self,
        node: Node<'t>,
        function: &str,
        arguments: &[Node<'t>],
    ) -> Option<usize> {
        let taken = |index: usize| arguments.get(index).copied();
        let method = match function {
            "get" | "head" => {
                return self.send(node, function, [taken(0), None, taken(1)]);
            }
            "post" | "put" | "patch" | "options" => {
                return self.send(node, function, [taken(0), taken(1), taken(2)]);
            }
            "del" => "DELETE".to_owned(),
            "request" | "asyncRequest" => {
                let method = taken(0).map(|it| self.script.value(it).and_then(|it| it.text()));
                match method {
                    Some(Ok(method)) if !method.eq_ignore_ascii_case("delete") => {
                        return self.send(node, &method, [taken(1), taken(2), taken(3)]);
                    }
                    Some(Ok(method)) => method,
                    _ => {
                        let what = self.words(node);
                        self.leave_out(&what, "its method is known only when it runs".to_owned());
                        return None;
                    }
                }
            }
            "batch" => {
                self.batch(node, arguments);
                return None;
            }
            // The module's functions for cookies, files and settings send no request.
            _ => return None,
        };
        let what = format!("{method} {}", self.words(node));
        self.leave_out(
            &what,
            "what it deletes is missing for the next request".to_owned(),
        );
        None
    }

    /// The beginning of a call, for a comment. Excludes the arguments after the URL, because they may contain
    /// credentials.
    fn words(&self, node: Node<'t>) -> String {
        let called = node.child_by_field_name("function");
        let called = called.map(|it| self.script.source(it)).unwrap_or_default();
        let arguments = self.script.arguments(node);
        let first = arguments.first().filter(|it| it.kind() != "array");
        let Some(first) = first else {
            return called.to_owned();
        };
        // Constant text in a URL is not secret. Its query is cut off later.
        let parts = children(*first).filter(|it| it.kind() == "template_substitution");
        let words = self.script.without_texts(*first, parts.collect(), 80);
        format!("{called} {words}")
    }

    fn send(
        &mut self,
        node: Node<'t>,
        method: &str,
        parts: [Option<Node<'t>>; 3],
    ) -> Option<usize> {
        let mut value = |part: Option<Node<'t>>| match part {
            Some(part) => self.script.value(part),
            None => Ok(Js::Undefined),
        };
        let [url, body, params] = parts.map(&mut value);
        let taken = url.and_then(|url| Ok((url, body?, params?)));
        let sent = taken.and_then(|(url, body, params)| self.sent(method, &url, &body, &params));
        match sent {
            Ok(index) => Some(index),
            Err(why) => {
                let what = self.words(node);
                self.leave_out(&what, why);
                None
            }
        }
    }

    /// Handles `http.batch` with a list or an object of requests.
    fn batch(&mut self, node: Node<'t>, arguments: &[Node<'t>]) {
        let requests = arguments.first().map(|it| self.script.value(*it));
        let requests = match requests {
            Some(Ok(Js::List(items))) => items,
            Some(Ok(Js::Object(members))) => members.into_iter().map(|(_, it)| it).collect(),
            Some(Err(why)) => {
                let what = self.words(node);
                return self.leave_out(&what, why);
            }
            _ => return,
        };
        for request in requests {
            let member = |index: &str, name: &str| match &request {
                Js::Object(_) => request.member(name),
                list => list.member(index),
            };
            let (method, url) = match &request {
                Js::Text(_) | Js::Environment { .. } => {
                    (Js::Text("GET".to_owned()), request.clone())
                }
                _ => (member("0", "method"), member("1", "url")),
            };
            let sent = method.text().and_then(|method| {
                self.sent(&method, &url, &member("2", "body"), &member("3", "params"))
            });
            if let Err(why) = sent {
                let what = self.words(node);
                self.leave_out(&what, why);
            }
        }
    }

    /// Adds a request with constant parts.
    fn sent(&mut self, method: &str, url: &Js, body: &Js, params: &Js) -> Result<usize, String> {
        if self.sent.len() == SENT_MAX {
            return Err(format!("it comes after {SENT_MAX} others"));
        }
        let (origin, path) = place(url)?;
        let mut given = Given {
            method: method.to_ascii_uppercase(),
            path,
            notes: self.notes.clone(),
            ..Given::default()
        };
        given.notes.dedup();
        for (name, value) in params.member("headers").members() {
            match is_secret(name) {
                true => self.hide(name),
                false => given.headers.push((name.clone(), value.text()?)),
            }
        }
        for (key, header) in [("auth", "Authorization"), ("cookies", "Cookie")] {
            if params.member(key) != Js::Undefined {
                self.hide(header);
            }
        }
        add_body(&mut given, body)?;
        self.sent.push(Sent {
            origin,
            given,
            times: self.times,
        });
        Ok(self.sent.len() - 1)
    }
}

/// The server of a URL, and the path and query after it.
fn place(url: &Js) -> Result<(String, String), String> {
    let text = match url {
        Js::Environment { name, after } => {
            let path = after.split('#').next().unwrap_or_default();
            let path = match path.chars().next() {
                None => "/".to_owned(),
                Some('/') => path.to_owned(),
                Some('?') => format!("/{path}"),
                Some(_) => return Err(js::of_the_environment(name)),
            };
            return Ok((format!("the server of `__ENV.{name}`"), path));
        }
        url => url.text()?,
    };
    let text = text.split('#').next().unwrap_or_default();
    let url: Uri = address::url(text).map_err(|error| format!("its URL: {error}"))?;
    Ok((origin(&url), address::path(&url)))
}

/// Adds a body in k6's encoding: an object becomes a form.
fn add_body(given: &mut Given, body: &Js) -> Result<(), String> {
    let text = match body {
        Js::Undefined | Js::Null => return Ok(()),
        Js::Object(members) => {
            let pair = |(name, value): &(String, Js)| {
                Ok(format!("{}={}", encoded(name), encoded(&value.text()?)))
            };
            let pairs: Result<Vec<String>, String> = members.iter().map(pair).collect();
            let mut names = given.headers.iter().map(|(name, _)| name);
            if !names.any(|name| name.eq_ignore_ascii_case("content-type")) {
                let form = "application/x-www-form-urlencoded";
                given
                    .headers
                    .push(("Content-Type".to_owned(), form.to_owned()));
            }
            pairs?.join("&")
        }
        body => body.text()?,
    };
    given.body = Some(text.into_bytes());
    Ok(())
}
