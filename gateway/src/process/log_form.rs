//! The form of the log's lines, from `telemetry.exporters.logging`.

use std::io::IsTerminal as _;

use gateway_config::{
    AttributeItem, AttributeValue, Config, LogForm, LogFormat, LogOutput, LoggingCommon,
};
use serde_json::{Map, Value};
use telemetry::log::{LineForm, LineLimit, LineSyntax};

use crate::process::environment::Environment;

/// Writes all lines from now on in the form of a configuration.
pub(crate) fn choose(config: &Config, environment: &Environment) {
    let logging = &config.telemetry.exporters.logging;
    let is_terminal = std::io::stderr().is_terminal();
    let resource = resource(&logging.common, environment);
    let output = logging.stdout.as_ref();
    telemetry::log::choose(output.and_then(|it| form(it, is_terminal, resource)));
}

/// The form of lines. `None` means the gateway's own form. A limit needs a form, so it chooses JSON.
fn form(output: &LogOutput, is_terminal: bool, resource: Map<String, Value>) -> Option<LineForm> {
    if !output.enabled {
        return Some(LineForm {
            syntax: LineSyntax::Off,
            ..LineForm::default()
        });
    }
    let rate = &output.rate_limit;
    let limit = rate.enabled.then_some(LineLimit {
        capacity: rate.capacity,
        interval: rate.interval.0,
    });
    let json = LogFormat::Named(LogForm::Json);
    let format = output.format(is_terminal);
    let format = format.or_else(|| limit.map(|_| &json))?;
    if let Some(text) = format.text() {
        let word = |is_shown: bool, name: &str| {
            let value = resource.get(name)?.as_str()?;
            is_shown.then(|| value.to_owned())
        };
        let service = [
            word(text.display_service_name, "service.name"),
            word(text.display_service_namespace, "service.namespace"),
        ];
        return Some(LineForm {
            syntax: LineSyntax::Text,
            timestamp: text.display_timestamp,
            level: text.display_level,
            target: text.display_target,
            filename: text.display_filename,
            line_number: text.display_line_number,
            thread_id: text.display_thread_id,
            thread_name: text.display_thread_name,
            service: service.into_iter().flatten().collect(),
            resource: Some(resource)
                .filter(|_| text.display_resource)
                .unwrap_or_default(),
            limit,
        });
    }
    let json = format.json().unwrap_or_default();
    Some(LineForm {
        syntax: LineSyntax::Json,
        timestamp: json.display_timestamp,
        level: json.display_level,
        target: json.display_target,
        filename: json.display_filename,
        line_number: json.display_line_number,
        thread_id: json.display_thread_id,
        thread_name: json.display_thread_name,
        service: Vec::new(),
        resource: Some(resource)
            .filter(|_| json.display_resource)
            .unwrap_or_default(),
        limit,
    })
}

/// The attributes of the service. Empty if the configuration names none.
fn resource(common: &LoggingCommon, environment: &Environment) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, value) in &common.resource {
        all.insert(name.clone(), value_of(value));
    }
    if let Some(namespace) = &common.service_namespace {
        all.insert("service.namespace".to_owned(), namespace.clone().into());
    }
    if let Some(name) = &common.service_name {
        all.insert("service.name".to_owned(), name.clone().into());
    }
    let named = environment.open_telemetry("OTEL_SERVICE_NAME");
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        all.insert("service.name".to_owned(), name.into());
    }
    all
}

fn value_of(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Switch(value) => (*value).into(),
        AttributeValue::Integer(value) => (*value).into(),
        AttributeValue::Number(value) => (*value).into(),
        AttributeValue::Text(value) => value.clone().into(),
        AttributeValue::List(items) => items.iter().map(item_of).collect(),
    }
}

fn item_of(item: &AttributeItem) -> Value {
    match item {
        AttributeItem::Switch(value) => (*value).into(),
        AttributeItem::Integer(value) => (*value).into(),
        AttributeItem::Number(value) => (*value).into(),
        AttributeItem::Text(value) => value.clone().into(),
    }
}
