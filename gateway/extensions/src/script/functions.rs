//! Functions and constants for scripts.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use data_encoding::HEXLOWER;
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rhai::{Dynamic, Engine, EvalAltResult, Map, Module};
use sha2::{Digest, Sha256};

use super::CurrentTrace;
use super::source::Source;
use super::values::ScriptStatus;
use crate::environment::Environment;
use crate::identifier;

type Thrown<T> = Result<T, Box<EvalAltResult>>;

/// Constants of `Router` that are names of context entries.
const CONTEXT_KEYS: &[(&str, &str)] = &[
    (
        "APOLLO_AUTHENTICATION_JWT_CLAIMS",
        crate::context::JWT_CLAIMS,
    ),
    ("APOLLO_OPERATION_ID", crate::context::OPERATION_ID),
    (
        "APOLLO_PERSISTED_QUERY_ID_KEY",
        "apollo::supergraph::persisted_query_id",
    ),
    ("APOLLO_ENTITY_CACHE_KEY", "apollo_entity_cache::key"),
    ("APOLLO_RESPONSE_CACHE_KEY", "apollo::response_cache::key"),
    (
        "APOLLO_COST_ESTIMATED_KEY",
        "apollo::demand_control::estimated_cost",
    ),
    (
        "APOLLO_COST_ACTUAL_KEY",
        "apollo::demand_control::actual_cost",
    ),
    (
        "APOLLO_COST_STRATEGY_KEY",
        "apollo::demand_control::strategy",
    ),
    ("APOLLO_COST_RESULT_KEY", "apollo::demand_control::result"),
    (
        "APOLLO_COST_BY_SUBGRAPH_ESTIMATED_KEY",
        "apollo::demand_control::estimated_cost_by_subgraph",
    ),
    (
        "APOLLO_COST_BY_SUBGRAPH_ACTUAL_KEY",
        "apollo::demand_control::actual_cost_by_subgraph",
    ),
    (
        "APOLLO_COST_BY_SUBGRAPH_RESULT_KEY",
        "apollo::demand_control::result_by_subgraph",
    ),
    (
        "APOLLO_SUBSCRIPTION_WS_CUSTOM_CONNECTION_PARAMS",
        "apollo.subscription.custom_connection_params",
    ),
];

/// A base64 alphabet.
#[derive(Clone, Copy)]
struct Alphabet(&'static GeneralPurpose);

/// A point in time. Its `elapsed` is in seconds.
#[derive(Clone, Copy)]
struct Moment(tokio::time::Instant);

pub(super) fn register(
    engine: &mut Engine,
    source: &Source,
    trace: &CurrentTrace,
    sdl: &str,
    environment: &Environment,
) {
    logs(engine, source);
    let trace = Rc::clone(trace);
    engine
        .register_fn("uuid_v4", identifier::uuid_v4)
        .register_fn("unix_now", || millis() / 1000)
        .register_fn("unix_ms_now", millis)
        .register_fn("urlencode", |text: &str| {
            utf8_percent_encode(text, URL_RESERVED).to_string()
        })
        .register_fn("urldecode", |text: &str| -> Thrown<String> {
            percent_decode_str(text)
                .decode_utf8()
                .map(|text| text.into_owned())
                .map_err(|error| error.to_string().into())
        })
        .register_fn("traceid", move || -> Thrown<String> {
            let id = trace.get().ok_or("trace unavailable")?;
            Ok(id.to_string())
        })
        .register_type_with_name::<Moment>("Instant")
        .register_get("elapsed", |moment: &mut Moment| {
            moment.0.elapsed().as_secs_f64()
        });
    modules(engine, environment);
    constants(engine, sdl);
}

/// All characters except letters, digits and `-`, `.`, `_`, `~` (RFC 3986, 2.3).
const URL_RESERVED: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn logs(engine: &mut Engine, source: &Source) {
    let target = source.main.display().to_string();
    for (name, level) in [
        ("log_error", log::Level::Error),
        ("log_warn", log::Level::Warn),
        ("log_info", log::Level::Info),
        ("log_debug", log::Level::Debug),
        ("log_trace", log::Level::Trace),
        ("eprint", log::Level::Error),
    ] {
        let target = target.clone();
        engine.register_fn(name, move |value: Dynamic| {
            log::log!(target: &target, level, "{value}");
        });
    }
    let other = target.clone();
    engine.on_print(move |text| log::info!(target: &target, "{text}"));
    engine.on_debug(move |text, _, position| {
        log::debug!(target: &other, "{position:?}: {text}");
    });
}

#[expect(
    clippy::disallowed_methods,
    reason = "scripts ask for the time of day, and this is where it is read"
)]
fn millis() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        // A clock before 1970 gives 0. The script gets a wrong time in any case, and usually it only writes a
        // log line.
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or_default()
}

pub(super) fn status_code(number: i64) -> Thrown<ScriptStatus> {
    u16::try_from(number)
        .ok()
        .and_then(|number| StatusCode::from_u16(number).ok())
        .map(ScriptStatus)
        .ok_or_else(|| format!("expected a status from 100 to 999, found {number}").into())
}

fn modules(engine: &mut Engine, environment: &Environment) {
    let mut module = Module::new();
    module.set_native_fn("encode", |text: &str| -> Thrown<String> {
        Ok(STANDARD.encode(text))
    });
    module.set_native_fn(
        "encode",
        |text: &str, alphabet: Alphabet| -> Thrown<String> { Ok(alphabet.0.encode(text)) },
    );
    module.set_native_fn("decode", |text: &str| decode(text, Alphabet(&STANDARD)));
    module.set_native_fn("decode", decode);
    for (name, alphabet) in [
        ("STANDARD", &STANDARD),
        ("STANDARD_NO_PAD", &STANDARD_NO_PAD),
        ("URL_SAFE", &URL_SAFE),
        ("URL_SAFE_NO_PAD", &URL_SAFE_NO_PAD),
    ] {
        module.set_var(name, Dynamic::from(Alphabet(alphabet)));
    }
    engine.register_static_module("base64", module.into());

    let mut module = Module::new();
    module.set_native_fn("encode", |value: Dynamic| -> Thrown<String> {
        serde_json::to_string(&value).map_err(|error| error.to_string().into())
    });
    module.set_native_fn("decode", |text: &str| -> Thrown<Dynamic> {
        serde_json::from_str(text).map_err(|error| error.to_string().into())
    });
    engine.register_static_module("json", module.into());

    let mut module = Module::new();
    module.set_native_fn("digest", |text: &str| -> Thrown<String> {
        Ok(HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
    });
    engine.register_static_module("sha256", module.into());

    let environment = environment.clone();
    let mut module = Module::new();
    module.set_native_fn("get", move |name: &str| -> Thrown<String> {
        environment(name).ok_or_else(|| format!("the environment has no `{name}`").into())
    });
    engine.register_static_module("env", module.into());
}

fn decode(text: &str, alphabet: Alphabet) -> Thrown<String> {
    let bytes = alphabet.0.decode(text).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string().into())
}

fn constants(engine: &mut Engine, sdl: &str) {
    // Copies share the SDL and the moment. Each access copies the map, so copies must be cheap.
    let sdl = Dynamic::from(rhai::ImmutableString::from(sdl));
    let start = Dynamic::from(Moment(tokio::time::Instant::now()));
    let mut router = Map::new();
    for (name, key) in CONTEXT_KEYS {
        router.insert((*name).into(), Dynamic::from((*key).to_owned()));
    }
    router.insert("APOLLO_SDL".into(), sdl.clone());
    router.insert("APOLLO_START".into(), start.clone());
    let mut module = Module::new();
    module.set_var("Router", Dynamic::from(router));
    module.set_var("apollo_sdl", sdl);
    module.set_var("apollo_start", start);
    engine.register_global_module(module.into());
}
