//! Fits JSON to a message: values get the types of their fields, and names become the names of JSON.
//!
//! Values of placeholders arrive as texts, so a text in a field of numbers is read as a number.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use crate::Unfit;

/// Package of the messages with a form of JSON of their own.
const WELL_KNOWN: &str = "google.protobuf.";

/// Names that a message about an unknown name lists.
const LISTED_MAX: usize = 12;

/// The depth of messages with invented values.
const INVENTED_DEPTH: usize = 4;

const PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PADDING);
const FOR_URLS: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, PADDING);

/// Fits a value to a message.
///
/// # Errors
/// The first field that does not fit.
pub(crate) fn fit(
    descriptor: &MessageDescriptor,
    value: &mut Value,
    path: &str,
) -> Result<(), Unfit> {
    if is_well_known(descriptor) {
        return fit_well_known(descriptor, value, path);
    }
    let Value::Object(fields) = value else {
        let expected = format!("a message `{}`", descriptor.full_name());
        return Err(wrong(path, &expected, value));
    };
    let mut fitted = Map::new();
    for (name, mut value) in std::mem::take(fields) {
        if is_open(&name) {
            fitted.insert(name, value);
            continue;
        }
        let Some(field) = field_of(descriptor, &name) else {
            return Err(Unfit {
                path: inner(path, &name),
                reason: unknown(descriptor, &name),
            });
        };
        fit_field(&field, &mut value, &inner(path, &name))?;
        fitted.insert(field.json_name().to_owned(), value);
    }
    *fields = fitted;
    Ok(())
}

/// True if a text has a place that the load fills in. It has its type then.
fn is_open(text: &str) -> bool {
    text.contains("{{")
}

fn is_well_known(descriptor: &MessageDescriptor) -> bool {
    descriptor.full_name().starts_with(WELL_KNOWN)
}

/// Messages such as times have a JSON of their own, which the library reads.
fn fit_well_known(descriptor: &MessageDescriptor, value: &Value, path: &str) -> Result<(), Unfit> {
    match DynamicMessage::deserialize(descriptor.clone(), value) {
        Ok(_) => Ok(()),
        Err(error) => Err(Unfit {
            path: path.to_owned(),
            reason: format!(
                "expected a value of `{}`, found {value} ({error})",
                descriptor.full_name()
            ),
        }),
    }
}

fn field_of(descriptor: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    descriptor
        .get_field_by_json_name(name)
        .or_else(|| descriptor.get_field_by_name(name))
}

fn unknown(descriptor: &MessageDescriptor, name: &str) -> String {
    let fields = descriptor.fields();
    let known = fields.map(|field| field.name().to_owned());
    let message = descriptor.full_name();
    match listed(known) {
        None => format!("`{message}` has no fields, found `{name}`"),
        Some(known) => format!("`{message}` has no field `{name}`. Its fields are {known}"),
    }
}

fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(LISTED_MAX);
    names.truncate(LISTED_MAX);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    (!names.is_empty()).then(|| names.join(", "))
}

fn fit_field(field: &FieldDescriptor, value: &mut Value, path: &str) -> Result<(), Unfit> {
    // A field with `null` has its default value.
    if value.as_str().is_some_and(is_open) {
        return Ok(());
    }
    if value.is_null() && !matches!(field.kind(), Kind::Message(ref it) if is_well_known(it)) {
        return Ok(());
    }
    if field.is_map() {
        let Value::Object(entries) = value else {
            return Err(wrong(path, "a mapping", value));
        };
        let Kind::Message(entry) = field.kind() else {
            return Ok(());
        };
        let of_value = entry.map_entry_value_field();
        for (key, value) in entries.iter_mut() {
            fit_kind(&of_value.kind(), value, &inner(path, key))?;
        }
        return Ok(());
    }
    if field.is_list() {
        let Value::Array(items) = value else {
            return Err(wrong(path, "a list", value));
        };
        for (index, item) in items.iter_mut().enumerate() {
            fit_kind(&field.kind(), item, &inner(path, &index.to_string()))?;
        }
        return Ok(());
    }
    fit_kind(&field.kind(), value, path)
}

fn fit_kind(kind: &Kind, value: &mut Value, path: &str) -> Result<(), Unfit> {
    if value.as_str().is_some_and(is_open) {
        return Ok(());
    }
    let fitted = match kind {
        Kind::Message(descriptor) => return fit(descriptor, value, path),
        Kind::Enum(descriptor) => return fit_enum(descriptor, value, path),
        Kind::Double | Kind::Float => number(value),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            whole_number(value, i32::MIN.into(), i32::MAX.into())
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            whole_number(value, i64::MIN.into(), i64::MAX.into())
        }
        Kind::Uint32 | Kind::Fixed32 => whole_number(value, 0, u32::MAX.into()),
        Kind::Uint64 | Kind::Fixed64 => whole_number(value, 0, u64::MAX.into()),
        Kind::Bool => match value.as_str() {
            Some("true") => Some(Value::Bool(true)),
            Some("false") => Some(Value::Bool(false)),
            _ => value.as_bool().map(Value::Bool),
        },
        Kind::String => value.as_str().map(Value::from),
        Kind::Bytes => value
            .as_str()
            .filter(|text| is_base64(text))
            .map(Value::from),
    };
    match fitted {
        Some(fitted) => {
            *value = fitted;
            Ok(())
        }
        None => Err(wrong(path, expectation(kind), value)),
    }
}

fn expectation(kind: &Kind) -> &'static str {
    match kind {
        Kind::Double | Kind::Float => "a number",
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => "a whole number of 32 bits",
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "a whole number of 64 bits",
        Kind::Uint32 | Kind::Fixed32 => "a whole number of 32 bits without a sign",
        Kind::Uint64 | Kind::Fixed64 => "a whole number of 64 bits without a sign",
        Kind::Bool => "true or false",
        Kind::String => "a text",
        Kind::Bytes => "bytes in base64",
        Kind::Message(_) => "a message",
        Kind::Enum(_) => "a name",
    }
}

fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity") => {
            Some(value.clone())
        }
        Value::String(text) => {
            let number: f64 = text.trim().parse().ok()?;
            serde_json::Number::from_f64(number).map(Value::Number)
        }
        _ => None,
    }
}

/// Returns a whole number within a range. A number such as `1e3` is whole, too.
fn whole_number(value: &Value, least: i128, most: i128) -> Option<Value> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let number: i128 = match text.parse() {
        Ok(number) => number,
        Err(_) => {
            let number: f64 = text.parse().ok()?;
            let is_exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
            // Through a text, because no conversion of numbers refuses a value outside its range.
            is_exact.then(|| format!("{number:.0}").parse().ok())??
        }
    };
    if !(least..=most).contains(&number) {
        return None;
    }
    match i64::try_from(number) {
        Ok(number) => Some(Value::from(number)),
        Err(_) => u64::try_from(number).ok().map(Value::from),
    }
}

fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok() || FOR_URLS.decode(text).is_ok()
}

fn fit_enum(descriptor: &EnumDescriptor, value: &mut Value, path: &str) -> Result<(), Unfit> {
    let is_known = match &*value {
        Value::String(name) => descriptor.get_value_by_name(name).is_some(),
        // A number without a name is allowed, because an enum may be open.
        Value::Number(number) => number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
        // The JSON of `google.protobuf.NullValue`.
        Value::Null => true,
        _ => false,
    };
    if is_known {
        return Ok(());
    }
    if let Some(number) = value.as_str().and_then(|text| text.parse::<i32>().ok()) {
        *value = Value::from(number);
        return Ok(());
    }
    let known = listed(descriptor.values().map(|it| it.name().to_owned()));
    let expected = format!(
        "a value of `{}` ({})",
        descriptor.full_name(),
        known.unwrap_or_default()
    );
    Err(wrong(path, &expected, value))
}

fn wrong(path: &str, expected: &str, found: &Value) -> Unfit {
    let found = match found {
        Value::String(text) => format!("the text `{text}`"),
        other => other.to_string(),
    };
    Unfit {
        path: path.to_owned(),
        reason: format!("expected {expected}, found {found}"),
    }
}

fn inner(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Returns a JSON pointer with the names of JSON.
///
/// # Errors
/// If no message can have such a field.
pub(crate) fn pointer(descriptor: &MessageDescriptor, pointer: &str) -> Result<String, String> {
    let mut found = String::new();
    let mut within = Some(Kind::Message(descriptor.clone()));
    let mut tokens = pointer.split('/').skip(1);
    while let Some(token) = tokens.next() {
        let Some(Kind::Message(message)) = &within else {
            return Err(format!("`{found}` has no fields, found `{pointer}`"));
        };
        // Only their JSON has these fields.
        if is_well_known(message) {
            found.push('/');
            found.push_str(token);
            tokens.by_ref().for_each(|token| {
                found.push('/');
                found.push_str(token);
            });
            break;
        }
        let name = token.replace("~1", "/").replace("~0", "~");
        let field = field_of(message, &name).ok_or_else(|| unknown(message, &name))?;
        found.push('/');
        found.push_str(field.json_name());
        within = Some(field.kind());
        if (field.is_list() || field.is_map())
            && let Some(key) = tokens.next()
        {
            found.push('/');
            found.push_str(key);
            if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
                within = Some(entry.map_entry_value_field().kind());
            }
        }
    }
    Ok(found)
}

/// Returns a message with a value for every field.
pub(crate) fn invented(descriptor: &MessageDescriptor) -> Value {
    of_message(descriptor, &[])
}

/// `outer` are the messages around it. A message within itself is left out.
fn of_message(descriptor: &MessageDescriptor, outer: &[MessageDescriptor]) -> Value {
    let mut fields = Map::new();
    if outer.len() == INVENTED_DEPTH {
        return Value::Object(fields);
    }
    let mut within = outer.to_vec();
    within.push(descriptor.clone());
    let mut chosen: Vec<String> = Vec::new();
    for field in descriptor.fields() {
        if matches!(field.kind(), Kind::Message(inner) if within.contains(&inner)) {
            continue;
        }
        // Only one field of a group may have a value.
        if let Some(group) = field.containing_oneof() {
            let name = group.full_name().to_owned();
            if chosen.contains(&name) {
                continue;
            }
            chosen.push(name);
        }
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                continue;
            };
            let key = match entry.map_entry_key_field().kind() {
                Kind::String => "example",
                Kind::Bool => "true",
                _ => "1",
            };
            let value = of_kind(&entry.map_entry_value_field(), &within);
            Value::Object(Map::from_iter([(key.to_owned(), value)]))
        } else if field.is_list() {
            Value::Array(vec![of_kind(&field, &within)])
        } else {
            of_kind(&field, &within)
        };
        fields.insert(field.name().to_owned(), value);
    }
    Value::Object(fields)
}

fn of_kind(field: &FieldDescriptor, within: &[MessageDescriptor]) -> Value {
    match field.kind() {
        Kind::Double | Kind::Float => Value::from(1.5),
        Kind::Bool => Value::Bool(true),
        Kind::String => Value::from(format!("example {}", field.name().replace('_', " "))),
        Kind::Bytes => Value::from("ZXhhbXBsZQ=="),
        Kind::Enum(descriptor) => {
            // The first value often stands for the absence of a value.
            let values: Vec<_> = descriptor.values().collect();
            let chosen = values.get(1).or(values.first());
            chosen.map_or(Value::from(0), |value| Value::from(value.name()))
        }
        Kind::Message(message) => match message.full_name() {
            "google.protobuf.Timestamp" => Value::from("2024-01-01T00:00:00Z"),
            "google.protobuf.Duration" => Value::from("1s"),
            "google.protobuf.FieldMask" => Value::from(""),
            "google.protobuf.StringValue" => Value::from("example"),
            "google.protobuf.BytesValue" => Value::from("ZXhhbXBsZQ=="),
            "google.protobuf.BoolValue" => Value::Bool(true),
            name if name.starts_with(WELL_KNOWN) && name.ends_with("Value") => match name {
                "google.protobuf.ListValue" => Value::Array(Vec::new()),
                _ => Value::from(1),
            },
            name if name.starts_with(WELL_KNOWN) => Value::Object(Map::new()),
            _ => of_message(&message, within),
        },
        _ => Value::from(1),
    }
}
