//! The body of `PUT /route`, and all mistakes in it.

use std::collections::HashSet;

use crate::json::Writer;
use crate::key;
use crate::request::{Body, BodyNode, Refusal};

/// The body of a request, valid or invalid.
pub(crate) enum Order {
    /// The routes, at least one.
    Routes(Vec<RouteOrder>),
    /// All mistakes, as JSON.
    Violations(String),
}

/// A route to put into the cluster.
#[derive(Debug)]
pub(crate) struct RouteOrder {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) xml: String,
}

impl RouteOrder {
    /// Name of the ConfigMap with the route's XML.
    pub(crate) fn config_map(&self) -> String {
        format!("{}-cm", self.name)
    }
}

/// The limits of a text member.
struct Rule {
    name: &'static str,
    default: Option<&'static str>,
    length_max: usize,
    pattern: Option<Pattern>,
    /// The mistake in a text, found before its length is checked. `None` for a valid text.
    check: Option<fn(&str) -> Option<&'static str>>,
}

/// The allowed characters of a text.
#[derive(Clone, Copy)]
struct Pattern {
    /// The rule as a regular expression, for the response.
    text: &'static str,
    /// The rule as a function. A regex library for one expression would be larger than the service.
    is_match: fn(&str) -> bool,
}

const NAME: Rule = Rule {
    name: "name",
    default: None,
    length_max: 253,
    pattern: None,
    check: Some(mistake_in_name),
};
const NAMESPACE: Rule = Rule {
    name: "namespace",
    default: Some("default"),
    length_max: 63,
    pattern: Some(Pattern {
        text: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        is_match: |text| is_name(text, &['-']),
    }),
    check: None,
};
const XML: Rule = Rule {
    name: "xml",
    default: None,
    length_max: 1_048_576,
    pattern: None,
    check: None,
};

/// One mistake in the body of a request.
struct Violation<'a> {
    kind: &'static str,
    index: Option<usize>,
    member: Option<&'static str>,
    message: String,
    /// The wrong value as JSON.
    input: &'a str,
    /// The variable parts of the message, as JSON.
    context: Option<String>,
}

impl Order {
    /// # Errors
    ///
    /// Fails if the body is not JSON.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Refusal> {
        let body = Body::read(body)?;
        let mut violations = Vec::new();
        let routes = routes(&body.root(), &mut violations);
        if violations.is_empty() {
            return Ok(Self::Routes(routes));
        }
        Ok(Self::Violations(report(&violations)))
    }
}

fn routes<'a>(body: &BodyNode<'a, '_>, violations: &mut Vec<Violation<'a>>) -> Vec<RouteOrder> {
    // Kinds and messages match Pydantic. The first implementation used it, and clients read them.
    let wrong = |kind, message: &str, input: &BodyNode<'a, '_>| Violation {
        kind,
        index: None,
        member: Some("routes"),
        message: message.to_owned(),
        input: input.json(),
        context: None,
    };
    let list = match body.member("routes") {
        Ok(Some(list)) => list,
        Ok(None) => {
            violations.push(wrong("missing", "Field required", body));
            return Vec::new();
        }
        Err(_) => {
            let violation = wrong("dict_type", "Input should be an object", body);
            violations.push(Violation {
                member: None,
                ..violation
            });
            return Vec::new();
        }
    };
    let Ok(items) = list.items() else {
        violations.push(wrong("list_type", "Input should be a valid list", &list));
        return Vec::new();
    };
    if items.is_empty() {
        let message = "List should have at least 1 item after validation, not 0";
        let context = r#"{"field_type":"List","min_length":1,"actual_length":0}"#;
        violations.push(Violation {
            context: Some(context.to_owned()),
            ..wrong("too_short", message, &list)
        });
    }
    let mut routes: Vec<RouteOrder> = Vec::new();
    let mut names = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(route) = route(index, item, violations) else {
            continue;
        };
        // Both would be written at once, and one would conflict with the other's object.
        if !names.insert((route.namespace.clone(), route.name.clone())) {
            violations.push(Violation {
                kind: "value_error",
                index: Some(index),
                member: Some(NAME.name),
                message: "Value error, the list has a route of this name already".to_owned(),
                input: item.json(),
                context: None,
            });
        }
        routes.push(route);
    }
    routes
}

fn route<'a>(
    index: usize,
    item: &BodyNode<'a, '_>,
    violations: &mut Vec<Violation<'a>>,
) -> Option<RouteOrder> {
    let members = item.members([NAME.name, NAMESPACE.name, XML.name]);
    let Ok([name, namespace, xml]) = members else {
        violations.push(Violation {
            kind: "model_type",
            index: Some(index),
            member: None,
            message: "Input should be a valid dictionary or instance of Route".to_owned(),
            input: item.json(),
            context: Some(r#"{"class_name":"Route"}"#.to_owned()),
        });
        return None;
    };
    let mut text = |rule: &Rule, member: Option<BodyNode<'a, '_>>| {
        let read = rule.read(member);
        read.map_err(|(kind, message, context)| {
            violations.push(Violation {
                kind,
                index: Some(index),
                member: Some(rule.name),
                message,
                input: member.map_or(item.json(), |member| member.json()),
                context,
            });
        })
    };
    // All three are read, so that all mistakes are reported at once.
    let texts = (
        text(&NAME, name),
        text(&NAMESPACE, namespace),
        text(&XML, xml),
    );
    let (Ok(name), Ok(namespace), Ok(xml)) = texts else {
        return None;
    };
    Some(RouteOrder {
        name,
        namespace,
        xml,
    })
}

impl Rule {
    /// The text, or its mistake: kind, message and context.
    fn read(
        &self,
        member: Option<BodyNode<'_, '_>>,
    ) -> Result<String, (&'static str, String, Option<String>)> {
        let Some(member) = member else {
            let default = self.default.map(str::to_owned);
            return default.ok_or_else(|| ("missing", "Field required".to_owned(), None));
        };
        let Ok(text) = member.text() else {
            let message = "Input should be a valid string".to_owned();
            return Err(("string_type", message, None));
        };
        if let Some(mistake) = self.check.and_then(|check| check(&text)) {
            return Err(("value_error", format!("Value error, {mistake}"), None));
        }
        let max = self.length_max;
        if text.is_empty() {
            return Err((
                "string_too_short",
                "String should have at least 1 character".to_owned(),
                Some(r#"{"min_length":1}"#.to_owned()),
            ));
        }
        // `nth` visits no more characters than the limit, even if the text is longer.
        if text.chars().nth(max).is_some() {
            return Err((
                "string_too_long",
                format!("String should have at most {max} characters"),
                Some(format!(r#"{{"max_length":{max}}}"#)),
            ));
        }
        match self.pattern {
            Some(Pattern {
                text: pattern,
                is_match,
            }) if !is_match(&text) => Err((
                "string_pattern_mismatch",
                format!("String should match pattern '{pattern}'"),
                Some(format!(r#"{{"pattern":"{pattern}"}}"#)),
            )),
            _ => Ok(text.into_owned()),
        }
    }
}

/// The mistake in the name of a route. The original checks names in a function of its own, with this kind of
/// mistake.
fn mistake_in_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("Route name cannot be empty");
    }
    if name.chars().any(char::is_uppercase) {
        return Some("Route name must be lowercase");
    }
    (!is_name(name, &['-', '.'])).then_some(
        "Route name must have only a-z, 0-9, `-` and `.`, and a letter or digit at both ends",
    )
}

/// True for lower-case letters and digits, with the characters `between` only in the middle.
fn is_name(text: &str, between: &[char]) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && text
            .chars()
            .all(|letter| is_plain(letter) || between.contains(&letter))
}

fn report(violations: &[Violation<'_>]) -> String {
    let mut report = Writer::new(512);
    report.object(|report| {
        report.fixed(key!("status"), "error");
        report.fixed(key!("message"), "Validation failed");
        report.key(key!("errors")).list(|report| {
            for violation in violations {
                report.object(|report| violation.write(report));
            }
        });
    });
    report.finish()
}

impl Violation<'_> {
    fn write(&self, report: &mut Writer) {
        report.member(key!("type"), self.kind);
        report.key(key!("loc")).list(|report| {
            if let Some(index) = self.index {
                report.word("routes");
                report.json(&index.to_string());
            }
            if let Some(member) = self.member {
                report.text(member);
            }
        });
        report.member(key!("msg"), &self.message);
        report.key(key!("input")).json(self.input);
        if let Some(context) = &self.context {
            report.key(key!("ctx")).json(context);
        }
    }
}
