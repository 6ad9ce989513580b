//! The Rhai engine, with the types and properties for scripts.

use rhai::{Array, Dynamic, Engine, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext};

use super::ServiceHandle;
use super::bounds;
use super::functions;
use super::handles::{RequestHandle, ResponseHandle, SubgraphHandle};
use super::source::{Imported, Source};
use super::uri::ScriptUri;
use super::values::{HeaderPair, Headers, RequestBody, ResponseBody, ScriptMethod, ScriptStatus};
use crate::context::Context;

type Thrown<T> = Result<T, Box<EvalAltResult>>;

/// An engine without the functions of [`super::functions`].
pub(super) fn new(source: &Source, imported: Imported) -> Engine {
    let mut engine = Engine::new();
    // Zero removes Rhai's limit. Scripts are trusted like configuration, and real scripts exceed the default.
    engine.set_max_expr_depths(0, 0);
    engine.set_module_resolver(source.resolver(imported));
    services(&mut engine);
    messages(&mut engine);
    headers(&mut engine);
    context(&mut engine);
    heads(&mut engine);
    bodies(&mut engine);
    engine
}

fn services(engine: &mut Engine) {
    engine
        .register_type_with_name::<ServiceHandle>("Service")
        .register_fn("map_request", ServiceHandle::map_request)
        .register_fn("map_response", ServiceHandle::map_response);
}

fn messages(engine: &mut Engine) {
    engine
        .register_type_with_name::<RequestHandle>("Request")
        .register_get_set(
            "context",
            RequestHandle::context,
            RequestHandle::set_context,
        )
        .register_get("id", RequestHandle::id)
        .register_get("subgraph_request_id", RequestHandle::subgraph_request_id)
        .register_get_set(
            "headers",
            RequestHandle::headers,
            RequestHandle::set_headers,
        )
        .register_get("method", RequestHandle::method)
        .register_get_set("uri", RequestHandle::uri, RequestHandle::set_uri)
        .register_get_set("body", RequestHandle::body, RequestHandle::set_body)
        .register_get("query_plan", RequestHandle::query_plan)
        .register_get_set(
            "subgraph",
            RequestHandle::subgraph,
            RequestHandle::set_subgraph,
        );
    engine
        .register_type_with_name::<SubgraphHandle>("SubgraphRequest")
        .register_get_set(
            "headers",
            SubgraphHandle::headers,
            SubgraphHandle::set_headers,
        )
        .register_get_set("uri", SubgraphHandle::uri, SubgraphHandle::set_uri)
        .register_get_set("body", SubgraphHandle::body, SubgraphHandle::set_body);
    engine
        .register_type_with_name::<ResponseHandle>("Response")
        .register_get_set(
            "context",
            ResponseHandle::context,
            ResponseHandle::set_context,
        )
        .register_get("id", ResponseHandle::id)
        .register_get("subgraph_request_id", ResponseHandle::subgraph_request_id)
        .register_get_set(
            "headers",
            ResponseHandle::headers,
            ResponseHandle::set_headers,
        )
        .register_get("status_code", ResponseHandle::status_code)
        .register_get_set("body", ResponseHandle::body, ResponseHandle::set_body)
        .register_fn("is_primary", ResponseHandle::is_primary)
        .register_fn("headers_are_available", ResponseHandle::is_primary);
}

fn headers(engine: &mut Engine) {
    engine
        .register_type_with_name::<Headers>("Headers")
        .register_indexer_get(Headers::get)
        .register_indexer_set(Headers::set)
        .register_indexer_set(Headers::append)
        .register_fn("values", Headers::values)
        .register_fn("remove", Headers::remove)
        .register_fn("contains", Headers::contains)
        .register_fn("to_string", Headers::text)
        .register_fn("to_debug", Headers::text)
        .register_iterator::<Headers>();
    engine
        .register_type_with_name::<HeaderPair>("Header")
        .register_get("name", |pair: &mut HeaderPair| pair.name.clone())
        .register_get("value", |pair: &mut HeaderPair| pair.value.clone())
        .register_fn("to_string", HeaderPair::text)
        .register_fn("to_debug", HeaderPair::text);
}

fn context(engine: &mut Engine) {
    let read = |value: Option<serde_json::Value>| match value {
        Some(value) => rhai::serde::to_dynamic(value),
        None => Ok(Dynamic::UNIT),
    };
    engine
        .register_type_with_name::<Context>("Context")
        .register_indexer_get(move |context: &mut Context, key: &str| read(context.get(key)))
        .register_indexer_set(
            |context: &mut Context, key: &str, value: Dynamic| -> Thrown<()> {
                context.insert(key, rhai::serde::from_dynamic(&value)?);
                Ok(())
            },
        )
        .register_fn("contains", |context: &mut Context, key: &str| {
            context.contains(key)
        })
        .register_fn("to_string", Context::json)
        .register_fn("to_debug", Context::json)
        .register_fn(
            "upsert",
            move |call: NativeCallContext<'_>,
                  context: &mut Context,
                  key: &str,
                  callback: FnPtr|
                  -> Thrown<()> {
                // Read and written in two steps, not under one borrow, because the callback may use the
                // context itself.
                let current = read(context.get(key))?;
                match callback.call_within_context::<Dynamic>(&call, (current,)) {
                    Ok(value) => context.insert(key, rhai::serde::from_dynamic(&value)?),
                    // This ends the whole script, not only its callback.
                    Err(error) if bounds::exceeded(&error).is_some() => return Err(error),
                    Err(error) => log::error!("rhai: upsert of `{key}` keeps its value: {error}"),
                }
                Ok(())
            },
        );
}

fn heads(engine: &mut Engine) {
    engine
        .register_type_with_name::<ScriptMethod>("Method")
        .register_fn("==", |method: &mut ScriptMethod, text: &str| {
            method.is(text)
        })
        .register_fn("!=", |method: &mut ScriptMethod, text: &str| {
            !method.is(text)
        })
        .register_fn("==", |text: &str, method: ScriptMethod| method.is(text))
        .register_fn("!=", |text: &str, method: ScriptMethod| !method.is(text))
        .register_fn("to_string", |method: &mut ScriptMethod| {
            method.0.to_string()
        })
        .register_fn("to_debug", |method: &mut ScriptMethod| method.0.to_string());
    engine
        .register_type_with_name::<ScriptStatus>("StatusCode")
        .register_fn("==", |one: ScriptStatus, other: ScriptStatus| one == other)
        .register_fn("!=", |one: ScriptStatus, other: ScriptStatus| one != other)
        .register_fn("to_string", |status: &mut ScriptStatus| {
            status.0.as_str().to_owned()
        })
        .register_fn("to_debug", |status: &mut ScriptStatus| {
            status.0.as_str().to_owned()
        })
        .register_fn("status_code_from_int", functions::status_code);
    engine
        .register_type_with_name::<ScriptUri>("Uri")
        .register_get("scheme", ScriptUri::scheme)
        .register_set("scheme", ScriptUri::set_scheme)
        .register_get("host", ScriptUri::host)
        .register_set("host", ScriptUri::set_host)
        .register_get("port", ScriptUri::port)
        .register_set("port", ScriptUri::set_port)
        .register_get("path", ScriptUri::path)
        .register_set("path", ScriptUri::set_path)
        .register_fn("to_string", |uri: &mut ScriptUri| uri.0.to_string())
        .register_fn("to_debug", |uri: &mut ScriptUri| uri.0.to_string());
}

fn bodies(engine: &mut Engine) {
    engine
        .register_type_with_name::<RequestBody>("RequestBody")
        .register_fn("to_string", RequestBody::text)
        .register_fn("to_debug", RequestBody::text)
        .register_get("query", |body: &mut RequestBody| body.query.clone())
        .register_set("query", |body: &mut RequestBody, query: ImmutableString| {
            body.query = query.into();
        })
        .register_set("query", |body: &mut RequestBody, (): ()| {
            body.query = Dynamic::UNIT
        })
        .register_get("operation_name", |body: &mut RequestBody| {
            body.operation_name.clone()
        })
        .register_set(
            "operation_name",
            |body: &mut RequestBody, name: ImmutableString| body.operation_name = name.into(),
        )
        .register_set("operation_name", |body: &mut RequestBody, (): ()| {
            body.operation_name = Dynamic::UNIT;
        })
        .register_get("variables", |body: &mut RequestBody| body.variables.clone())
        .register_set("variables", |body: &mut RequestBody, variables: Map| {
            body.variables = variables.into();
        })
        .register_get("extensions", |body: &mut RequestBody| {
            body.extensions.clone()
        })
        .register_set("extensions", |body: &mut RequestBody, extensions: Map| {
            body.extensions = extensions.into();
        });
    engine
        .register_type_with_name::<ResponseBody>("ResponseBody")
        .register_fn("to_string", ResponseBody::text)
        .register_fn("to_debug", ResponseBody::text)
        .register_get("label", |body: &mut ResponseBody| body.label.clone())
        .register_set(
            "label",
            |body: &mut ResponseBody, label: ImmutableString| {
                body.label = label.into();
            },
        )
        .register_get("data", |body: &mut ResponseBody| {
            body.data.clone().unwrap_or_default()
        })
        .register_set("data", |body: &mut ResponseBody, data: Map| {
            body.data = Some(data.into());
        })
        .register_get("errors", |body: &mut ResponseBody| body.errors.clone())
        .register_set("errors", |body: &mut ResponseBody, errors: Array| {
            body.errors = errors;
        })
        .register_get("extensions", |body: &mut ResponseBody| {
            body.extensions.clone()
        })
        .register_set("extensions", |body: &mut ResponseBody, extensions: Map| {
            body.extensions = extensions.into();
        });
}
