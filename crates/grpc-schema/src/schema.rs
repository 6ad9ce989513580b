//! Methods and their messages.

use std::fmt;

use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions,
};
use serde_json::Value;

use crate::Unfit;
use crate::expected::ExpectedFields;
use crate::fit::fit;

/// The descriptors of services and their messages.
#[derive(Clone)]
pub struct CallSchema {
    pool: DescriptorPool,
}

/// One method of a service.
#[derive(Clone)]
pub struct Method {
    schema: CallSchema,
    method: MethodDescriptor,
}

impl CallSchema {
    /// Reads a set of descriptors.
    ///
    /// # Errors
    /// If the bytes are no such set, or if a file of it is missing.
    pub fn read(set: &[u8]) -> Result<CallSchema, String> {
        let pool = DescriptorPool::decode(set).map_err(|error| {
            format!("expected a set of descriptors (`protoc --include_imports --descriptor_set_out`): {error}")
        })?;
        Ok(CallSchema { pool })
    }

    /// Returns the method with this name: `package.Service/Method`.
    ///
    /// # Errors
    /// If there is no such method. The message lists the methods that exist.
    pub fn method(&self, name: &str) -> Result<Method, String> {
        let wanted = name.trim_start_matches('/');
        let found = self.methods().find(|method| method.name() == wanted);
        found.ok_or_else(|| {
            let known: Vec<String> = self
                .methods()
                .map(|method| format!("`{}`", method.name()))
                .collect();
            let known = match known.is_empty() {
                true => "the files have no service".to_owned(),
                false => format!("the methods are {}", known.join(", ")),
            };
            format!(
                "expected a method as `package.Service/Method`, found `{name}`. In fact {known}"
            )
        })
    }

    /// Iterates over all methods.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        let services: Vec<_> = self.pool.services().collect();
        let methods = services
            .into_iter()
            .flat_map(|service| service.methods().collect::<Vec<_>>());
        methods.map(|method| Method {
            schema: self.clone(),
            method,
        })
    }

    /// Returns a message as JSON. `None` if the type is unknown, or if the bytes do not fit it.
    pub(crate) fn shown(&self, name: &str, bytes: &[u8]) -> Option<Value> {
        let descriptor = self.pool.get_message_by_name(name)?;
        let message = DynamicMessage::decode(descriptor, bytes).ok()?;
        json(&message, true).ok()
    }
}

impl Method {
    /// The name: `package.Service/Method`.
    #[must_use]
    pub fn name(&self) -> String {
        let service = self.method.parent_service();
        format!("{}/{}", service.full_name(), self.method.name())
    }

    /// The schema of its messages.
    #[must_use]
    pub fn schema(&self) -> &CallSchema {
        &self.schema
    }

    /// True if it takes a stream of messages.
    #[must_use]
    pub fn takes_several(&self) -> bool {
        self.method.is_client_streaming()
    }

    /// True if it answers with a stream of messages.
    #[must_use]
    pub fn answers_several(&self) -> bool {
        self.method.is_server_streaming()
    }

    /// Encodes a message that is written as JSON. A text is read as the type of its field.
    ///
    /// # Errors
    /// The first field that does not fit the message.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, Unfit> {
        let (message, _) = read(&self.method.input(), text)?;
        Ok(message.encode_to_vec())
    }

    /// Checks a message that is written as JSON. Values with places `{{…}}` are checked when they are sent.
    ///
    /// # Errors
    /// The first field that does not fit the message.
    pub fn check(&self, text: &str) -> Result<(), Unfit> {
        let mut value: Value = serde_json::from_str(text)
            .map_err(|error| whole(format!("expected a message in JSON: {error}")))?;
        fit(&self.method.input(), &mut value, "")
    }

    /// Returns a message in JSON with invented values for every field.
    #[must_use]
    pub fn invented(&self) -> Value {
        crate::fit::invented(&self.method.input())
    }

    /// Returns an answer as JSON, with fields that have their default value.
    ///
    /// # Errors
    /// If the bytes are no such message.
    pub fn answer(&self, bytes: &[u8]) -> Result<Value, String> {
        let output = self.method.output();
        let name = output.full_name().to_owned();
        let message = DynamicMessage::decode(output, bytes)
            .map_err(|error| format!("expected a message `{name}`, found other bytes ({error})"))?;
        json(&message, false)
    }

    /// Reads the fields that an answer must have, written as JSON.
    ///
    /// # Errors
    /// The first field that does not fit the answer.
    pub fn expected(&self, text: &str) -> Result<ExpectedFields, Unfit> {
        let (message, written) = read(&self.method.output(), text)?;
        let value = json(&message, false).map_err(whole)?;
        Ok(ExpectedFields::new(written, value))
    }

    /// Returns a JSON pointer to a field of an answer, with the names of JSON.
    ///
    /// # Errors
    /// If no answer can have such a field.
    pub fn pointer(&self, pointer: &str) -> Result<String, String> {
        crate::fit::pointer(&self.method.output(), pointer)
    }
}

/// Reads a message in JSON. Returns it, and its JSON with values of the right types.
fn read(descriptor: &MessageDescriptor, text: &str) -> Result<(DynamicMessage, Value), Unfit> {
    let mut value: Value = serde_json::from_str(text)
        .map_err(|error| whole(format!("expected a message in JSON: {error}")))?;
    fit(descriptor, &mut value, "")?;
    let message = DynamicMessage::deserialize(descriptor.clone(), &value).map_err(|error| {
        let name = descriptor.full_name();
        whole(format!("expected a message `{name}`: {error}"))
    })?;
    Ok((message, value))
}

fn whole(reason: String) -> Unfit {
    Unfit {
        path: String::new(),
        reason,
    }
}

fn json(message: &DynamicMessage, skips_defaults: bool) -> Result<Value, String> {
    let options = SerializeOptions::new().skip_default_fields(skips_defaults);
    message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| format!("the message cannot be written as JSON: {error}"))
}

impl fmt::Debug for CallSchema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.pool.files().map(|file| file.name().to_owned());
        out.debug_list().entries(files).finish()
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name())
    }
}
