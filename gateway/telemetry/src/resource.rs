//! Describes the service: the attributes that all spans and metrics share.

use std::collections::BTreeMap;

use gateway_config::{AttributeItem, AttributeValue, MetricsCommon, TracingCommon};
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::identifier;

/// Reads an environment variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The service's attributes in a configuration.
pub(crate) struct Described<'a> {
    name: Option<&'a str>,
    namespace: Option<&'a str>,
    attributes: &'a BTreeMap<String, AttributeValue>,
}

impl<'a> From<&'a TracingCommon> for Described<'a> {
    fn from(common: &'a TracingCommon) -> Self {
        Self {
            name: common.service_name.as_deref(),
            namespace: common.service_namespace.as_deref(),
            attributes: &common.resource,
        }
    }
}

impl<'a> From<&'a MetricsCommon> for Described<'a> {
    fn from(common: &'a MetricsCommon) -> Self {
        Self {
            name: common.service_name.as_deref(),
            namespace: common.service_namespace.as_deref(),
            attributes: &common.resource,
        }
    }
}

/// The attributes of this process. The environment takes precedence over the configuration, as in the
/// original.
pub(crate) fn resource(described: &Described<'_>, variables: Variables<'_>) -> Resource {
    let mut all: BTreeMap<String, any_value::Value> = BTreeMap::new();
    let mut set = |name: &str, value: any_value::Value| all.insert(name.to_owned(), value);
    set("service.name", text("unknown_service:gateway"));
    set("service.version", text(env!("CARGO_PKG_VERSION")));
    // Without it, the metrics of two gateways with the same name would be merged.
    let (id, _) = identifier::fresh();
    set("service.instance.id", text(&id.to_string()));
    for (name, value) in described.attributes {
        set(name, value_of(value));
    }
    if let Some(namespace) = described.namespace {
        set("service.namespace", text(namespace));
    }
    if let Some(name) = described.name {
        set("service.name", text(name));
    }
    let listed = variables("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for (name, value) in listed.split(',').filter_map(|pair| pair.split_once('=')) {
        set(name.trim(), text(value.trim()));
    }
    if let Some(name) = variables("OTEL_SERVICE_NAME").filter(|name| !name.is_empty()) {
        set("service.name", text(&name));
    }
    let attributes = all.into_iter();
    Resource {
        attributes: attributes
            .map(|(name, value)| attribute(name, value))
            .collect(),
        ..Resource::default()
    }
}

pub(crate) fn attribute(name: impl Into<String>, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: name.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// The text of an attribute of the service.
pub(crate) fn text_of<'a>(resource: &'a Resource, name: &str) -> Option<&'a str> {
    let found = resource.attributes.iter().find(|it| it.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn text(text: &str) -> any_value::Value {
    any_value::Value::StringValue(text.to_owned())
}

fn value_of(value: &AttributeValue) -> any_value::Value {
    match value {
        AttributeValue::Switch(value) => any_value::Value::BoolValue(*value),
        AttributeValue::Integer(value) => any_value::Value::IntValue(*value),
        AttributeValue::Number(value) => any_value::Value::DoubleValue(*value),
        AttributeValue::Text(value) => text(value),
        AttributeValue::List(items) => any_value::Value::ArrayValue(ArrayValue {
            values: items
                .iter()
                .map(|item| AnyValue {
                    value: Some(item_of(item)),
                })
                .collect(),
        }),
    }
}

fn item_of(item: &AttributeItem) -> any_value::Value {
    match item {
        AttributeItem::Switch(value) => any_value::Value::BoolValue(*value),
        AttributeItem::Integer(value) => any_value::Value::IntValue(*value),
        AttributeItem::Number(value) => any_value::Value::DoubleValue(*value),
        AttributeItem::Text(value) => text(value),
    }
}
