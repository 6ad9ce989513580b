//! Baselines and variants, as they are written.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::parts::{Headers, ResumptionEntry, Switch};
use super::proof::ProofFile;
use super::request::RequestEntry;
use yaml_with_places::{At, OneOrMany};

use crate::fields::Table;
use crate::formats::{Method, Name, RequestPath, SettingPath, Title, Verbatim, Written};
use crate::template::Template;

/// Values by setting: `system.setting` for a system's own setting, `setting` for a lab-wide setting.
/// `{{name}}` in a value is the name of the variant.
pub(crate) type With = Table<SettingPath, At<Verbatim<Template>>>;

/// Factors by name, each with its values.
pub(crate) type Factors = Table<Name, OneOrMany<At<Verbatim<Title>>>>;

/// The setup that the variants are compared with. With `for`, there is one baseline for each
/// combination of factors. A variant is then compared with the baseline that has the same values of its
/// factors.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "baseline")]
pub(crate) struct BaselineFile {
    /// Its row in the report, with `{{factor}}` filled in. With `for` and a name without a factor, the
    /// values of the factors are added to the name.
    #[schemars(required)]
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// One baseline for each combination of these values, such as `{size: [1, 10, 100]}`.
    #[serde(default)]
    pub(crate) r#for: Factors,
    /// The settings that differ from the lab's declarations.
    #[serde(default)]
    pub(crate) with: With,
    /// The system that receives its load, if it is not the lab's `target`. It can contain `{{name}}` and
    /// the factors of `for`: `"{{proxy}}"`.
    pub(crate) target: Option<At<Written<Template>>>,
    /// The content of its requests, if it differs from the lab's `load`.
    pub(crate) load: Option<SentFile>,
    /// Its own proofs, in addition to the lab's `proof`.
    #[serde(default)]
    pub(crate) proof: Vec<At<ProofFile>>,
}

/// A setup to compare with the baseline. With `for`, there is one variant for each item of a list or
/// each combination of factors.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "variant")]
pub(crate) struct VariantFile {
    /// Its row in the report. Give this key or `for`. With factors, the name can contain `{{factor}}`.
    /// If it contains no factor, the values of the factors are added to the name.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// One variant for each item of a list, which is its name. Or factors with their values, such as
    /// `{stack: [a, b], size: [1, 10]}`. Factors make one variant for each combination. `{{stack}}` and
    /// `{{size}}` are then available at every place of `{{name}}`.
    pub(crate) r#for: Option<ForFile>,
    /// Name of the variant that it builds on: the baseline, or a variant above it with a `name` of its own.
    /// It inherits `with`, `target`, `load` and `proof` of that variant, key by key, and its own keys
    /// win. A proof with a `name` replaces the inherited proof of this name. So each step of a `ladder`
    /// can add one layer to the step before. The comparison does not change: see `against`.
    #[expect(dead_code, reason = "variants inherit before this struct is read")]
    pub(crate) extends: Option<At<Verbatim<Title>>>,
    /// The settings that differ from the lab's declarations. Write `system.setting` for a system's own
    /// setting and `setting` for a lab-wide setting. `{{name}}` in a value is the name of the variant.
    #[serde(default)]
    pub(crate) with: With,
    /// Name of the variant that it is compared with, instead of the baseline. `{{factor}}` is replaced. That
    /// variant is above it in the lab, and has the same baseline. `same-as: baseline` then means the answers
    /// of that variant, too.
    pub(crate) against: Option<At<Verbatim<Title>>>,
    /// The system that receives its load, if it is not the lab's `target`. It can contain `{{name}}` and
    /// the factors of `for`: `"{{proxy}}"`.
    pub(crate) target: Option<At<Written<Template>>>,
    /// The content of its requests, if it differs from the lab's `load`.
    pub(crate) load: Option<SentFile>,
    /// Its own proofs, in addition to the lab's `proof`.
    #[serde(default)]
    pub(crate) proof: Vec<At<ProofFile>>,
    /// The switch for `weigh lab --quick`. With `on`, a quick run measures the variant. Use `off` for a
    /// variant that takes long to build. Its row then reports that `--quick` left it out, with the
    /// command that measures it.
    #[schemars(extend("default" = "on"))]
    pub(crate) quick: Option<Switch>,
}

/// The content of a variant's requests, instead of the lab's `load`. The arrival of requests is the
/// same for all variants. Otherwise they could not be compared.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "sent")]
pub(crate) struct SentFile {
    /// Its requests, instead of the lab's requests. Its differences then contain the effect of the
    /// other content. The report contains a note about this, with the bytes of both.
    #[serde(default)]
    pub(crate) requests: OneOrMany<At<RequestEntry>>,
    /// Requests that are sent once after each start of its systems, after the lab's `prepare`.
    #[serde(default)]
    pub(crate) prepare: OneOrMany<At<RequestEntry>>,
    /// The method of requests without a method.
    pub(crate) method: Option<Written<Method>>,
    /// The path of requests without a path.
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// Headers of every request, in addition to the headers of the lab's `load`.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// The reuse of its connections. With `off`, every request opens a new connection.
    pub(crate) keep_alive: Option<Switch>,
    /// Its version of HTTP: `on` for HTTP/2, `off` for HTTP/1.1. Its differences then contain the
    /// generator's own cost of the protocol, and the report contains a note about this. In a closed
    /// loop with `streams` above 1, all variants have the same version. Otherwise they would have
    /// different numbers of requests under way.
    pub(crate) http2: Option<At<Switch>>,
    /// Its version of HTTP: `on` for HTTP/3. As with `http2`, its differences contain the generator's own
    /// cost of the protocol.
    pub(crate) http3: Option<At<Switch>>,
    /// Its handshakes with tickets of earlier connections: `off`, `on` or `0-rtt`.
    pub(crate) resumption: Option<At<ResumptionEntry>>,
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
