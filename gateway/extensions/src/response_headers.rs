//! Rules that copy headers of subgraph responses to the client's response.

use std::cell::RefCell;

use gateway_config::{HeaderSelection, Headers, Merge, ResponseRule};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::header_rules::is_reserved;

/// The rules of one subgraph: first the rules for all subgraphs, then its own rules.
#[derive(Clone, Debug)]
pub(crate) struct ResponseRules(Box<[ResponseRule]>);

/// The headers that rules have gathered until now.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    headers: RefCell<HeaderMap>,
}

impl ResponseRules {
    /// The rules for `subgraph`, or `None` if there are no rules.
    pub(crate) fn of_subgraph(headers: &Headers, subgraph: &str) -> Option<Self> {
        let own = headers.subgraphs.get(subgraph);
        // The rules for all subgraphs run first, so that a subgraph's own rules can override them.
        let own = own.into_iter().flat_map(|rules| &rules.response.operations);
        let all = &headers.all.response.operations;
        let rules: Box<[ResponseRule]> = all.iter().chain(own).cloned().collect();
        (!rules.is_empty()).then_some(Self(rules))
    }

    /// Applies the rules to a subgraph response with these headers.
    pub(crate) fn apply(&self, answer: &HeaderMap, gathered: &Gathered) {
        let mut target = gathered.headers.borrow_mut();
        for rule in &self.0 {
            match rule {
                ResponseRule::Insert { name, value } => {
                    target.insert(name.clone(), value.clone());
                }
                ResponseRule::Remove(selection) => {
                    for name in selected(&target, selection) {
                        target.remove(name);
                    }
                }
                ResponseRule::Propagate {
                    from,
                    rename,
                    default,
                    merge,
                } => {
                    if rename.as_ref().is_some_and(is_of_cors) {
                        continue;
                    }
                    let names = selected(answer, from);
                    for name in &names {
                        let to = rename.as_ref().unwrap_or(name);
                        if is_of_cors(to) {
                            continue;
                        }
                        let values: Vec<_> = answer.get_all(name).iter().cloned().collect();
                        put(&mut target, to, values, *merge);
                    }
                    if let (true, HeaderSelection::Named(name), Some(default)) =
                        (names.is_empty(), from, default)
                    {
                        let to = rename.as_ref().unwrap_or(name);
                        if !is_of_cors(to) {
                            put(&mut target, to, vec![default.clone()], *merge);
                        }
                    }
                }
            }
        }
    }
}

impl Gathered {
    /// Moves the gathered headers into the client's response and replaces its headers of the same names.
    pub(crate) fn into_answer(self, answer: &mut HeaderMap) {
        answer.extend(self.headers.into_inner());
    }

    /// Copies the headers gathered until now into the client's response.
    pub(crate) fn give(&self, answer: &mut HeaderMap) {
        answer.extend(self.headers.take());
    }
}

/// The names of existing headers that match a selection.
fn selected(headers: &HeaderMap, selection: &HeaderSelection) -> Vec<HeaderName> {
    match selection {
        // Headers that describe the body or the connection would be wrong for another body.
        HeaderSelection::Named(name) => {
            let is_there = headers.contains_key(name) && !tells_of_body(name);
            is_there.then(|| name.clone()).into_iter().collect()
        }
        HeaderSelection::Matching(pattern) => {
            let names = headers.keys();
            let names = names.filter(|name| !is_reserved(name) && pattern.is_match(name.as_str()));
            names.cloned().collect()
        }
    }
}

/// True for CORS headers. Only the gateway's `cors` configuration decides which pages may read a response.
fn is_of_cors(name: &HeaderName) -> bool {
    name.as_str().starts_with("access-control-")
}

fn tells_of_body(name: &HeaderName) -> bool {
    gateway_hop::is_hop_by_hop(name.as_str())
        || [
            header::CONTENT_LENGTH,
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
        ]
        .contains(name)
}

fn put(target: &mut HeaderMap, name: &HeaderName, values: Vec<HeaderValue>, merge: Merge) {
    // A cookie does not replace another cookie, because both use one header name.
    let is_appended = merge == Merge::Append || *name == header::SET_COOKIE;
    if !is_appended && target.contains_key(name) {
        if merge == Merge::First {
            return;
        }
        target.remove(name);
    }
    for value in values {
        target.append(name.clone(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> ResponseRules {
        struct Nothing;
        impl gateway_config::Surroundings for Nothing {
            fn variable(&self, _: &str) -> Option<String> {
                None
            }
            fn file(&self, _: &std::path::Path) -> Option<String> {
                None
            }
        }
        let text = format!("headers: {{all: {{response: {text}}}}}");
        let path = std::path::Path::new("r.yaml");
        let reading = gateway_config::read(path, &text, &Nothing, false).unwrap();
        ResponseRules::of_subgraph(&reading.config.headers, "any").unwrap()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    /// The client's headers for subgraph responses with these headers.
    fn gathered(text: &str, answers: &[&[(&'static str, &'static str)]]) -> Vec<String> {
        let (rules, gathered) = (rules(text), Gathered::default());
        for answer in answers {
            rules.apply(&headers(answer), &gathered);
        }
        let mut answer = headers(&[("content-type", "application/json")]);
        gathered.into_answer(&mut answer);
        let mut lines: Vec<String> = answer
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn of_several_answers_the_algorithm_decides() {
        let two: &[&[_]] = &[&[("x-a", "1")], &[("x-a", "2")]];
        for (algorithm, expected) in [
            ("last", &["x-a: 2"][..]),
            ("first", &["x-a: 1"]),
            ("append", &["x-a: 1", "x-a: 2"]),
        ] {
            let rule = format!("[{{propagate: {{named: x-a, algorithm: {algorithm}}}}}]");
            assert_eq!(gathered(&rule, two)[1..], *expected, "{algorithm}");
        }
        let cookies: &[&[_]] = &[&[("set-cookie", "a=1")], &[("set-cookie", "b=2")]];
        let told = gathered("[{propagate: {named: set-cookie}}]", cookies);
        assert_eq!(told[1..], ["set-cookie: a=1", "set-cookie: b=2"]);
    }

    #[test]
    fn what_tells_of_the_subgraphs_body_is_never_copied() {
        let answer: &[&[_]] = &[&[
            ("content-type", "text/plain"),
            ("content-length", "3"),
            ("content-encoding", "gzip"),
            ("transfer-encoding", "chunked"),
            ("x-a", "1"),
        ]];
        for rule in [
            "[{propagate: {matching: '.*'}}]",
            "[{propagate: {named: content-type}}, {propagate: {named: content-encoding}}, {propagate: {named: transfer-encoding}}, {propagate: {named: x-a}}]",
        ] {
            let told = gathered(rule, answer);
            assert_eq!(told, ["content-type: application/json", "x-a: 1"], "{rule}");
        }
    }

    #[test]
    fn rules_insert_rename_default_and_remove() {
        let rule = "[{insert: {name: x-by, value: us}}, {propagate: {named: x-a, rename: x-b, default: none}}, {propagate: {named: x-c, default: none}}, {remove: {matching: '^x-c'}}]";
        let told = gathered(rule, &[&[("x-a", "1")]]);
        assert_eq!(told[1..], ["x-b: 1", "x-by: us"]);
    }
}
