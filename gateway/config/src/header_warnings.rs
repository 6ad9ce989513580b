//! Warnings about header rules and masking without effect.

use http::HeaderName;
use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::header_masking::HeaderMasking;
use crate::header_selection::HeaderSelection;
use crate::headers::{HeaderRule, HeaderRules, Headers};
use crate::response_headers::ResponseRule;

/// A warning for each rule that can never change a header, and for masking of no header.
pub(crate) fn warnings(headers: &Headers) -> Vec<String> {
    let all = std::iter::once(("headers.all".to_owned(), &headers.all));
    let own = headers
        .subgraphs
        .iter()
        .map(|(name, rules)| (format!("headers.subgraphs.{name}"), rules));
    all.chain(own)
        .flat_map(|(path, rules)| of_rules(&path, rules))
        .collect()
}

fn of_rules(path: &str, rules: &HeaderRules) -> Vec<String> {
    let mut warnings = Vec::new();
    for rule in &rules.request.operations {
        let (name, pattern) = match rule {
            HeaderRule::Insert { name, .. } => (Some(name), None),
            HeaderRule::PropagateNamed { target, .. } => (Some(target), None),
            HeaderRule::Remove(HeaderSelection::Named(name)) => (Some(name), None),
            HeaderRule::Remove(HeaderSelection::Matching(pattern))
            | HeaderRule::PropagateMatching(pattern) => (None, Some(pattern)),
        };
        warnings.extend(name.and_then(|name| own_header(path, name)));
        warnings.extend(pattern.and_then(|pattern| upper_case(path, pattern)));
    }
    for rule in &rules.response.operations {
        if let ResponseRule::Remove(HeaderSelection::Matching(pattern))
        | ResponseRule::Propagate {
            from: HeaderSelection::Matching(pattern),
            ..
        } = rule
        {
            warnings.extend(upper_case(path, pattern));
        }
    }
    for (side, masking) in [
        ("request", &rules.request.masking),
        ("response", &rules.response.masking),
    ] {
        if masking.as_ref().is_some_and(HeaderMasking::masks_nothing) {
            warnings.push(format!(
                "`{path}.{side}.masking` masks no header, so telemetry shows credentials: remove `replace_defaults`, or name headers in `sensitive_headers`"
            ));
        }
    }
    warnings
}

fn own_header(path: &str, name: &HeaderName) -> Option<String> {
    gateway_hop::is_of_sender(name.as_str()).then(|| {
        format!(
            "`{path}`: a rule for `{name}` has no effect, because the gateway writes this header itself: remove the rule"
        )
    })
}

fn upper_case(path: &str, pattern: &Regex) -> Option<String> {
    let parsed = regex_syntax::parse(pattern.as_str()).ok()?;
    needs_upper_case(&parsed).then(|| {
        format!(
            "`{path}`: `{pattern}` matches no header, because names are in lower case: write `(?i){pattern}`"
        )
    })
}

/// True if every match contains an upper-case letter.
fn needs_upper_case(pattern: &Hir) -> bool {
    match pattern.kind() {
        HirKind::Literal(literal) => literal.0.iter().any(u8::is_ascii_uppercase),
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .all(|range| range.start().is_ascii_uppercase() && range.end() <= 'Z'),
        HirKind::Repetition(repeated) => repeated.min > 0 && needs_upper_case(&repeated.sub),
        HirKind::Capture(group) => needs_upper_case(&group.sub),
        HirKind::Concat(parts) => parts.iter().any(needs_upper_case),
        HirKind::Alternation(ways) => ways.iter().all(needs_upper_case),
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => false,
    }
}
