//! A merged schema, with functions as services.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt as _;
use gateway_config::{Config, Surroundings};
use gateway_federation::{Effort, OperationOptions, Schema, Stop, Variables, check_operation};
use gateway_remote::{Asking, Call, CallAnswer, CallError, Merged, Session, SourceSchema, Sources};
use graphql_tools::parser::parse_schema;
use graphql_tools::parser::schema::{Definition, Document, TypeDefinition};
use http::HeaderMap;
use serde_json::Value;

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

pub(crate) fn config(text: &str) -> Config {
    match gateway_config::read(Path::new("router.yaml"), text, &Nothing, false) {
        Ok(reading) => reading.config,
        Err(mistakes) => panic!("{mistakes}\n{text}"),
    }
}

pub(crate) fn options() -> OperationOptions {
    OperationOptions {
        introspection: true,
        introspection_max_depth: false,
        ..OperationOptions::default()
    }
}

/// A schema with the introspection types. Its query type is named `Query`.
pub(crate) fn schema(sdl: &str) -> Arc<Schema> {
    let meta = include_str!("../../src/meta.graphql").replace("query_root", "Query");
    let parse = |text: &str| parse_schema::<String>(text).unwrap().into_static();
    let mut document: Document<'static, String> = parse(sdl);
    for definition in parse(&meta).definitions {
        let Definition::TypeDefinition(TypeDefinition::Object(root)) = &definition else {
            document.definitions.push(definition);
            continue;
        };
        let own = document.definitions.iter_mut().find_map(|it| match it {
            Definition::TypeDefinition(TypeDefinition::Object(it)) if it.name == root.name => {
                Some(it)
            }
            _ => None,
        });
        match own {
            Some(own) => own.fields.extend(root.fields.iter().cloned()),
            None => document.definitions.push(definition),
        }
    }
    Arc::new(Schema::of(document))
}

/// The schema that a service reports by introspection.
pub(crate) fn introspected(schema: &Arc<Schema>) -> SourceSchema {
    SourceSchema::read(&introspection(schema), 100).unwrap()
}

/// The response of a service with this schema to the introspection query.
pub(crate) fn introspection(schema: &Arc<Schema>) -> Vec<u8> {
    let body: Value = serde_json::from_str(gateway_remote::INTROSPECTION_BODIES[0]).unwrap();
    let query = body["query"].as_str().unwrap();
    let effort = Effort::full(Duration::from_secs(5), Stop::default());
    let told = check_operation(schema, query, None, &options(), &effort, |checked, _, _| {
        let none = Variables::default();
        let told = checked.write_introspection(0, &none, Vec::new(), usize::MAX, async || {});
        Ok(told.now_or_never().unwrap().unwrap())
    });
    let told = String::from_utf8(told.unwrap()).unwrap();
    format!("{{\"data\":{{\"__schema\":{told}}}}}").into_bytes()
}

/// Services as functions of the request body.
pub(crate) struct Functions<F> {
    answer: F,
    pub(crate) asked: RefCell<Vec<String>>,
    pub(crate) pauses: Cell<usize>,
}

impl<F: Fn(&str) -> Result<Vec<u8>, CallError>> Functions<F> {
    pub(crate) fn new(answer: F) -> Self {
        Self {
            answer,
            asked: RefCell::default(),
            pauses: Cell::default(),
        }
    }
}

impl<F: Fn(&str) -> Result<Vec<u8>, CallError>> Sources for Functions<F> {
    async fn call(&self, call: Call) -> Result<CallAnswer, CallError> {
        let body = String::from_utf8(call.body.to_vec()).unwrap();
        let answer = (self.answer)(&body);
        self.asked.borrow_mut().push(body);
        Ok(CallAnswer {
            body: answer?.into(),
            ..CallAnswer::default()
        })
    }

    async fn give_way(&self) {
        self.pauses.set(self.pauses.get() + 1);
    }
}

/// The response to a query, and true if it has errors.
pub(crate) fn ask(merged: &Merged, query: &str, sources: &impl Sources) -> (String, bool) {
    let prepared = match merged.prepare(query, None) {
        Ok(prepared) => prepared,
        Err(refusal) => return (String::from_utf8(refusal.body()).unwrap(), true),
    };
    let variables = prepared.coerce(None).unwrap();
    let asking = Asking {
        variables: &variables,
        client: &HeaderMap::new(),
        session: &Session::default(),
    };
    let mut work = pin!(prepared.execute(asking, sources));
    let mut context = Context::from_waker(Waker::noop());
    match work.as_mut().poll(&mut context) {
        Poll::Ready(executed) => {
            let body = String::from_utf8(executed.body.to_vec()).unwrap();
            (body, executed.has_errors)
        }
        Poll::Pending => panic!("functions do not wait"),
    }
}
