//! Checks a configuration file against the JSON Schema of the structs.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use regex::Regex;
use yaml_with_places::{Blank, Findings, Misspelling, Node, Structure};

use crate::graphql_text::{GraphqlName, StoredText, TypeDefinitions, TypeReference};
use crate::schema::schema;
use crate::session_variables::SessionName;
use crate::subscription::HeartbeatInterval;
use crate::written::{
    BodyPath, ByteSize, ClaimPath, DataPath, Form, GraphqlPath, KeySource, Listen, Method,
    OtlpEndpoint, PlainPath, RestPath, Sampler, ServiceAddress, TemplateJson, TemplateText,
    WebOrigin,
};

/// Reports every part that does not match the schema, and returns the rest.
pub(crate) fn check(root: Node, findings: &mut Findings) -> Node {
    let structure = Structure {
        schema: &schema(),
        formats,
        // Apollo Router's files contain keys without values, which mean the default.
        blank: Blank::LeftOut,
    };
    structure.check(root, findings)
}

fn formats(form: &str, text: &str) -> Option<Result<(), Misspelling>> {
    let checked = check_form(form, text)?;
    Some(checked.map_err(|message| Misspelling {
        message,
        help: None,
    }))
}

/// Checks a text against the form with this name. `None` if there is no such form.
fn check_form(form: &str, text: &str) -> Option<Result<(), String>> {
    // A match instead of a table, because the forms have no common type.
    fn with<T: Form>(text: &str) -> Option<Result<(), String>> {
        Some(T::read(text).map(|_| ()))
    }
    match form {
        Duration::NAME => with::<Duration>(text),
        ByteSize::NAME => with::<ByteSize>(text),
        HeaderName::NAME => with::<HeaderName>(text),
        HeaderValue::NAME => with::<HeaderValue>(text),
        Regex::NAME => with::<Regex>(text),
        ServiceAddress::NAME => with::<ServiceAddress>(text),
        Listen::NAME => with::<Listen>(text),
        GraphqlPath::NAME => with::<GraphqlPath>(text),
        PlainPath::NAME => with::<PlainPath>(text),
        KeySource::NAME => with::<KeySource>(text),
        WebOrigin::NAME => with::<WebOrigin>(text),
        BodyPath::NAME => with::<BodyPath>(text),
        DataPath::NAME => with::<DataPath>(text),
        Method::NAME => with::<Method>(text),
        RestPath::NAME => with::<RestPath>(text),
        TemplateText::NAME => with::<TemplateText>(text),
        TemplateJson::NAME => with::<TemplateJson>(text),
        GraphqlName::NAME => with::<GraphqlName>(text),
        TypeReference::NAME => with::<TypeReference>(text),
        TypeDefinitions::NAME => with::<TypeDefinitions>(text),
        StoredText::NAME => with::<StoredText>(text),
        ClaimPath::NAME => with::<ClaimPath>(text),
        SessionName::NAME => with::<SessionName>(text),
        OtlpEndpoint::NAME => with::<OtlpEndpoint>(text),
        Sampler::NAME => with::<Sampler>(text),
        HeartbeatInterval::NAME => with::<HeartbeatInterval>(text),
        _ => None,
    }
}
