//! The kind and the name of the requested operation in the context.
//!
//! Scripts, coprocessors and header rules read both before the operation is planned. A request that a stage
//! refuses costs no plan.

use bytes::Bytes;
use gateway_extensions::{Exchange, OPERATION_KIND, OPERATION_NAME};
use gateway_federation::OperationHead;
use serde_json::Value;

use crate::graphql::request_body::{self, Checked};

/// Writes the kind and the name of the requested operation into the context, as Apollo Router does. The name
/// of an anonymous operation is `null`. Without an operation of the requested name there is no entry.
pub(crate) fn announce(exchange: &Exchange, checked: Option<&Checked>, text: &Bytes) {
    let Ok(graphql) = request_body::decode_found(text, checked) else {
        return;
    };
    let requested = graphql.operation_name.as_deref();
    if let Some(head) = OperationHead::find(&graphql.query, requested) {
        let context = &exchange.context;
        context.insert(OPERATION_KIND, head.kind.as_str().into());
        context.insert(OPERATION_NAME, head.name.map_or(Value::Null, Value::from));
    }
}
