//! A service's response. Its root fields are slices of the text, which are checked and not decoded.

use std::borrow::Cow;
use std::fmt;

use gateway_federation::Fragments;
use gateway_template::Json;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use crate::names::Names;
use crate::outgoing::{Occurrence, Set};
use graphql_tools::parser::query::Selection;

/// A GraphQL response of a service.
pub(crate) struct Answer<'a> {
    pub(crate) data: Data<'a>,
    /// The list of errors, if there are any.
    pub(crate) errors: Option<&'a str>,
}

/// The `data` of a response.
#[derive(Default)]
pub(crate) enum Data<'a> {
    /// Missing, or not an object.
    #[default]
    Nothing,
    Members(Vec<(Cow<'a, str>, &'a str)>),
}

/// The reason why bytes are not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Json,
    Object,
}

impl<'a> Answer<'a> {
    /// Reads a response. Checks that the whole text is JSON.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Unreadable> {
        serde_json::from_slice(body).map_err(|error| {
            // A wrong type means that the JSON is not a response. Every other error means that the text is
            // not JSON.
            if error.is_data() {
                Unreadable::Object
            } else {
                Unreadable::Json
            }
        })
    }

    pub(crate) fn member(&self, key: &str) -> Option<&'a str> {
        match &self.data {
            Data::Members(members) => members.iter().find(|(it, _)| it == key).map(|(_, it)| *it),
            Data::Nothing => None,
        }
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Answer<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Answer<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a GraphQL response")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Answer<'de>, A::Error> {
                let mut answer = Answer {
                    data: Data::Nothing,
                    errors: None,
                };
                while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
                    match key.as_ref() {
                        "data" => answer.data = map.next_value()?,
                        "errors" => {
                            let errors = map.next_value::<&RawValue>()?.get();
                            // `RawValue` has checked the whole list without a copy. Only its first byte is
                            // needed here.
                            if errors != "null" && !errors.starts_with('[') {
                                let unexpected = Unexpected::Other("`errors` that is not a list");
                                return Err(A::Error::invalid_type(unexpected, &self));
                            }
                            // An empty list counts as no errors, because several servers send it with every
                            // response.
                            let is_empty = errors.starts_with('[')
                                && errors[1..].trim_start().starts_with(']');
                            answer.errors = (errors != "null" && !is_empty).then_some(errors);
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(answer)
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Data<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Data<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object or null")
            }

            fn visit_unit<E>(self) -> Result<Data<'de>, E> {
                Ok(Data::Nothing)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data<'de>, A::Error> {
                // Two root fields are common, and the list of a small response should not need to grow.
                let mut members = Vec::with_capacity(2);
                while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
                    // Skips a value and keeps its place, because the service's text is forwarded unchanged.
                    members.push((key, map.next_value::<&RawValue>()?.get()));
                }
                Ok(Data::Members(members))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// The locations of type names in a response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeNames {
    /// Response keys of `__typename` fields.
    keys: Vec<String>,
    below: Vec<(String, TypeNames)>,
}

impl TypeNames {
    /// The locations of type names in the response to these fields. `None` if there are no type names.
    pub(crate) fn of(fields: &[Occurrence<'_>], fragments: &Fragments<'_>) -> Option<Self> {
        let mut names = Self::default();
        for occurrence in fields {
            names.add_below(occurrence.key(), &occurrence.field.selection_set, fragments);
        }
        // If the selections contain no type names, responses are forwarded without parsing.
        names.prune();
        (!names.is_empty()).then_some(names)
    }

    fn add_below(&mut self, key: &str, set: &Set, fragments: &Fragments<'_>) {
        if set.items.is_empty() {
            return;
        }
        // One response key may occur several times in a document. Its selections merge, so their names merge
        // too.
        let known = self.below.iter().position(|(known, _)| known == key);
        let index = known.unwrap_or_else(|| {
            self.below.push((key.to_owned(), Self::default()));
            self.below.len() - 1
        });
        self.below[index].1.add(set, fragments);
    }

    fn add(&mut self, set: &Set, fragments: &Fragments<'_>) {
        for selection in &set.items {
            match selection {
                Selection::Field(field) => {
                    let key = field.alias.as_deref().unwrap_or(&field.name);
                    if field.name == "__typename" {
                        self.keys.push(key.to_owned());
                    }
                    self.add_below(key, &field.selection_set, fragments);
                }
                Selection::InlineFragment(it) => self.add(&it.selection_set, fragments),
                Selection::FragmentSpread(it) => {
                    if let Some(fragment) = fragments.get(it.fragment_name.as_str()) {
                        self.add(&fragment.selection_set, fragments);
                    }
                }
            }
        }
    }

    fn prune(&mut self) {
        for (_, inner) in &mut self.below {
            inner.prune();
        }
        self.below.retain(|(_, inner)| !inner.is_empty());
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.below.is_empty()
    }

    /// Appends the value of a root field, with changed type names.
    pub(crate) fn write(&self, key: &str, raw: &str, names: &Names, out: &mut Vec<u8>) {
        let inner = self.below.iter().find(|(known, _)| known == key);
        match (inner, Json::parse(raw.as_bytes())) {
            (Some((_, inner)), Ok(mut value)) => {
                inner.change(&mut value, names);
                value.write(out);
            }
            // Deeper than the reader's limit, or no name to change.
            _ => out.extend_from_slice(raw.as_bytes()),
        }
    }

    fn change(&self, value: &mut Json<'_>, names: &Names) {
        match value {
            Json::List(items) => {
                for item in items {
                    self.change(item, names);
                }
            }
            Json::Object(members) => {
                for (key, value) in members {
                    if let (true, Json::Text(name)) =
                        (self.keys.iter().any(|it| it == key), &mut *value)
                    {
                        let new = names.new_type(name).to_owned();
                        *name = new.into();
                    // A key may have a type name in one type and an object in another type. So a value that
                    // is not text is searched too.
                    } else if let Some((_, inner)) = self.below.iter().find(|(it, _)| it == key) {
                        inner.change(value, names);
                    }
                }
            }
            _ => {}
        }
    }
}
