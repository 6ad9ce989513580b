//! Baselines and variants, as they are written.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::proof::ProofFile;
use super::request::{Headers, RequestEntry, Switch};
use yaml_with_places::{At, OneOrMany};

use crate::fields::Table;
use crate::formats::{Method, Name, RequestPath, SettingPath, Title, Verbatim, Written};
use crate::template::Template;

/// Values by setting: `system.setting` for a system's own, `setting` for a lab-wide one.
/// `{{name}}` in a value is the name of the variant.
pub(crate) type With = Table<SettingPath, At<Verbatim<Template>>>;

/// Factors by name, each with its values.
pub(crate) type Factors = Table<Name, OneOrMany<At<Verbatim<Title>>>>;

/// The setup the others are compared with, or with `for` one for each combination of factors: then
/// a variant is compared with the baseline whose factors have the same values as its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "baseline")]
pub(crate) struct BaselineFile {
    /// Its row in the report, in which `{{factor}}` is filled in. With `for` and without a factor in
    /// it, their values are added.
    #[schemars(required)]
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// One baseline for each combination of these values, such as `{size: [1, 10, 100]}`.
    #[serde(default)]
    pub(crate) r#for: Factors,
    /// The settings in which it differs from what the lab declares.
    #[serde(default)]
    pub(crate) with: With,
    /// The system that gets its load, where that is not the lab's `target`.
    pub(crate) target: Option<At<Written<Name>>>,
    /// What is sent to it, where that differs from the lab's `load`.
    pub(crate) load: Option<SentFile>,
    /// What it must be seen to do, besides what the lab's `proof` says.
    #[serde(default)]
    pub(crate) proof: Vec<At<ProofFile>>,
}

/// A setup to compare with the baseline, or with `for` one for each item of a list or each
/// combination of factors.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "variant")]
pub(crate) struct VariantFile {
    /// Its row in the report. Give it or `for`. With factors it may hold `{{factor}}`; without one
    /// in it, their values are added.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// One variant for each item of a list, which is its name; or factors with their values, such
    /// as `{stack: [a, b], size: [1, 10]}`: one variant for each combination, in which `{{stack}}`
    /// and `{{size}}` are known wherever `{{name}}` is.
    pub(crate) r#for: Option<ForFile>,
    /// The settings in which it differs from what the lab declares: `system.setting` for a
    /// system's own, `setting` for a lab-wide one. `{{name}}` in a value is the name of the
    /// variant.
    #[serde(default)]
    pub(crate) with: With,
    /// The system that gets its load, where that is not the lab's `target`.
    pub(crate) target: Option<At<Written<Name>>>,
    /// What is sent to it, where that differs from the lab's `load`.
    pub(crate) load: Option<SentFile>,
    /// What it must be seen to do, besides what the lab's `proof` says.
    #[serde(default)]
    pub(crate) proof: Vec<At<ProofFile>>,
    /// Whether `weigh lab --quick` measures it. With `off`, as for one that takes long to build, its row
    /// says that `--quick` left it out, and names the command that measures it.
    #[schemars(extend("default" = "on"))]
    pub(crate) quick: Option<Switch>,
}

/// What a variant sends instead of what the lab's `load` says. How requests arrive is the same for
/// all variants; else they could not be compared.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "sent")]
pub(crate) struct SentFile {
    /// Its requests, instead of the lab's. Its differences then contain that what is sent is another;
    /// the report says so, with the bytes of both.
    #[serde(default)]
    pub(crate) requests: OneOrMany<At<RequestEntry>>,
    /// Sent once after each start of its systems, behind what the lab's `prepare` sends.
    #[serde(default)]
    pub(crate) prepare: OneOrMany<At<RequestEntry>>,
    /// The method of requests that name none.
    pub(crate) method: Option<Written<Method>>,
    /// The path of requests that name none.
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// Headers of every request, besides those of the lab's `load`.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// Whether its connections are used again, or opened anew for every request.
    pub(crate) keep_alive: Option<Switch>,
}

/// Names of variants, or factors.
#[derive(Debug)]
pub(crate) enum ForFile {
    Names(Vec<At<Verbatim<Title>>>),
    Factors(Factors),
}

impl<'de> Deserialize<'de> for ForFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ForFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names or a mapping of factors")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ForFile, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(ForFile::Names)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ForFile, A::Error> {
                Factors::deserialize(MapAccessDeserializer::new(map)).map(ForFile::Factors)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for ForFile {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "for".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Verbatim<Title>>();
        let factors = generator.subschema_for::<Factors>();
        json_schema!({"anyOf": [{"type": "array", "items": name, "minItems": 1}, factors]})
    }
}
