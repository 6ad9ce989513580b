//! The schema in juniper's terms, and the execution of one request against it.
//!
//! Resolvers never wait, so execution is synchronous.

use std::sync::Arc;

use graphql_document::{DEPTH_MAX, FIELDS_MAX, TOKENS_MAX};
use graphql_http::GraphqlRequest;
use graphql_server::content::{self, Allowance, Counter, Selected};
use graphql_server::introspection;
use graphql_server::reply::{self, GraphqlError, Location, Outcome, PathSegment};
use juniper::parser::SourcePosition;
use juniper::{
    DefaultScalarValue, EmptySubscription, ExecutionError, Executor, FieldResult, GraphQLError, ID,
    InputValue, OperationType, RootNode, ValidatedOperation, Variables, graphql_object,
};

/// The schema of one worker.
pub(crate) type Schema = RootNode<Query, Mutation, EmptySubscription<RequestState>>;

/// The state of one request.
#[derive(Debug, Default)]
pub(crate) struct RequestState {
    allowance: Allowance,
}

impl juniper::Context for RequestState {}

/// The root type of queries.
#[derive(Debug)]
pub(crate) struct Query {
    counter: Arc<Counter>,
}

#[graphql_object(context = RequestState, scalar = DefaultScalarValue)]
impl Query {
    /// Object that never changes.
    fn test() -> Option<Test> {
        Some(Test)
    }

    /// Returns the text unchanged.
    fn echo(#[graphql(context)] state: &RequestState, text: String) -> FieldResult<String> {
        Ok(state.allowance.text(text)?)
    }

    /// First items, at most 10000.
    fn items(
        executor: &Executor<'_, '_, RequestState>,
        #[graphql(default = Some(10))] count: Option<i32>,
    ) -> FieldResult<Vec<Item>> {
        let selected = executor.look_ahead().children();
        let selected: Selected = selected.names().collect();
        let items = executor.context().allowance.items(count, selected)?;
        Ok(items.map(Item).collect())
    }

    /// Item with this id, or null if there is no such item.
    fn item(id: ID) -> Option<Item> {
        content::Item::with_id(&id).map(Item)
    }

    /// Fails. The response contains null and an error.
    fn fail(
        #[graphql(context)] state: &RequestState,
        message: Option<String>,
    ) -> FieldResult<Option<i32>> {
        Err(state.allowance.failure(message).into())
    }

    /// Sum of all added amounts.
    fn total(&self) -> i32 {
        self.counter.total()
    }
}

/// The root type of mutations.
#[derive(Debug)]
pub(crate) struct Mutation {
    counter: Arc<Counter>,
}

#[graphql_object(context = RequestState)]
impl Mutation {
    /// Adds to the counter and returns the sum.
    fn add(&self, #[graphql(default = Some(1))] amount: Option<i32>) -> FieldResult<i32> {
        Ok(self.counter.add(amount)?)
    }
}

/// The smallest object worth asking for.
#[derive(Debug)]
pub(crate) struct Test;

#[graphql_object(context = RequestState)]
impl Test {
    /// Id that never changes.
    fn id() -> ID {
        ID::from(content::TEST_ID.to_owned())
    }

    /// Fails. The object that contains this field becomes null, because the field cannot be null.
    fn fail(#[graphql(context)] state: &RequestState, message: Option<String>) -> FieldResult<i32> {
        Err(state.allowance.failure(message).into())
    }
}

/// An entry of the list.
#[derive(Debug)]
pub(crate) struct Item(content::Item);

#[graphql_object(context = RequestState)]
impl Item {
    /// Number as text, from 1.
    fn id(&self) -> ID {
        ID::from(self.0.id())
    }

    /// Name of the item.
    fn name(&self) -> String {
        self.0.name()
    }

    /// Number of pieces in stock.
    fn quantity(&self) -> i32 {
        self.0.quantity()
    }

    /// True if pieces are in stock.
    fn in_stock(&self) -> bool {
        self.0.in_stock()
    }

    /// Note. Only every third item has one.
    fn note(&self) -> Option<String> {
        self.0.note()
    }
}

/// Creates a schema that shares the counter with other workers.
pub(crate) fn schema(counter: &Arc<Counter>) -> Schema {
    let query = Query {
        counter: Arc::clone(counter),
    };
    let mutation = Mutation {
        counter: Arc::clone(counter),
    };
    RootNode::new(query, mutation, EmptySubscription::new())
        .limit_depth(DEPTH_MAX)
        .limit_tokens(TOKENS_MAX)
        .limit_fields(FIELDS_MAX)
}

/// Executes a request. With `is_get`, mutations are refused.
pub(crate) fn execute(
    schema: &Schema,
    request: GraphqlRequest<'_, Variables>,
    is_get: bool,
) -> Outcome {
    let name = request.operation_name.as_deref();
    let operation = match ValidatedOperation::new(&request.query, name, schema) {
        Ok(operation) => operation,
        Err(error) => return Outcome::Refused(of_request(&error)),
    };
    // After validation, as in the other server: an invalid document is refused as invalid.
    if is_get && operation.operation_type() == OperationType::Mutation {
        return Outcome::MutationByGet;
    }
    if let Err(error) = introspection::check_text(&request.query, name) {
        return Outcome::Refused(vec![GraphqlError::of_request(error)]);
    }
    let mut variables = request.variables.unwrap_or_default();
    for value in variables.values_mut() {
        if let InputValue::Scalar(DefaultScalarValue::Float(number)) = value
            && let Some(whole) = content::whole(*number)
        {
            *value = InputValue::Scalar(DefaultScalarValue::Int(whole));
        }
    }
    // A new state, because each request has its own allowance.
    match operation.execute_sync(&variables, &RequestState::default()) {
        Ok((data, errors)) if errors.is_empty() => Outcome::Data(reply::data_alone(&data)),
        Ok((data, errors)) => {
            let errors = errors.iter().map(of_field).collect();
            Outcome::Partial(reply::with_errors(&data, errors))
        }
        Err(error) => Outcome::Refused(of_request(&error)),
    }
}

fn of_request(error: &GraphQLError) -> Vec<GraphqlError> {
    let at = |message: String, places: &[SourcePosition]| GraphqlError {
        message,
        locations: places.iter().map(location).collect(),
        path: Vec::new(),
    };
    match error {
        GraphQLError::ParseError(error) => vec![at(error.item.to_string(), &[error.span.start])],
        GraphQLError::ValidationError(rules) => rules
            .iter()
            .map(|rule| at(rule.message().to_owned(), rule.locations()))
            .collect(),
        other => vec![GraphqlError::of_request(other)],
    }
}

/// The path has no indices, because juniper does not record them. In this schema, no field below a list can
/// fail.
fn of_field(error: &ExecutionError<DefaultScalarValue>) -> GraphqlError {
    let keys = error.path().iter().cloned();
    GraphqlError {
        message: error.error().message().to_owned(),
        locations: vec![location(error.location())],
        path: keys.map(PathSegment::Key).collect(),
    }
}

/// Converts a position. juniper counts from 0, and responses count from 1.
fn location(position: &SourcePosition) -> Location {
    Location {
        line: position.line() + 1,
        column: position.column() + 1,
    }
}
