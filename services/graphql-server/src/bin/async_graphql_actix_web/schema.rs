//! The schema in async-graphql's terms, and the execution of one request against it.

mod variables;

use std::sync::Arc;

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, OperationDefinition, OperationType,
};
use async_graphql::{
    Context, EmptySubscription, ID, Object, PathSegment as Segment, Pos, Request, Response,
    ServerError, Value, Variables,
};
use graphql_document::DEPTH_MAX;
use graphql_http::GraphqlRequest;
use graphql_server::content::{self, Allowance, Counter, FieldFailure, Selected};
use graphql_server::introspection;
use graphql_server::reply::{self, GraphqlError, Location, Outcome, PathSegment};

/// The schema of one worker.
pub(crate) type Schema = async_graphql::Schema<Query, Mutation, EmptySubscription>;

/// The root type of queries.
pub(crate) struct Query {
    counter: Arc<Counter>,
}

#[Object]
impl Query {
    /// Object that never changes.
    async fn test(&self) -> Option<Test> {
        Some(Test)
    }

    /// Returns the text unchanged.
    async fn echo(&self, context: &Context<'_>, text: String) -> Result<String, FieldFailure> {
        allowance(context).text(text)
    }

    /// First items, at most 10000.
    async fn items(
        &self,
        context: &Context<'_>,
        #[graphql(default = 10)] count: Option<i32>,
    ) -> Result<Vec<Item>, FieldFailure> {
        let field = context.field();
        let selected = field
            .selection_set()
            .map(|field| field.alias().unwrap_or(field.name()));
        let selected: Selected = selected.collect();
        let items = allowance(context).items(count, selected)?;
        Ok(items.map(Item).collect())
    }

    /// Item with this id, or null if there is no such item.
    async fn item(&self, id: ID) -> Option<Item> {
        content::Item::with_id(&id).map(Item)
    }

    /// Fails. The response contains null and an error.
    async fn fail(
        &self,
        context: &Context<'_>,
        message: Option<String>,
    ) -> Option<Result<i32, FieldFailure>> {
        // With `Result<Option<…>>`, the library would treat the failure as a failure of the whole object.
        Some(Err(allowance(context).failure(message)))
    }

    /// Sum of all added amounts.
    async fn total(&self) -> i32 {
        self.counter.total()
    }
}

fn allowance<'a>(context: &Context<'a>) -> &'a Allowance {
    // Always present: `execute` adds an allowance to every request.
    context.data_unchecked::<Allowance>()
}

/// The root type of mutations.
pub(crate) struct Mutation {
    counter: Arc<Counter>,
}

#[Object]
impl Mutation {
    /// Adds to the counter and returns the sum.
    async fn add(&self, #[graphql(default = 1)] amount: Option<i32>) -> Result<i32, FieldFailure> {
        self.counter.add(amount)
    }
}

/// The smallest object worth asking for.
pub(crate) struct Test;

#[Object]
impl Test {
    /// Id that never changes.
    async fn id(&self) -> ID {
        ID::from(content::TEST_ID)
    }

    /// Fails. The object that contains this field becomes null, because the field cannot be null.
    async fn fail(
        &self,
        context: &Context<'_>,
        message: Option<String>,
    ) -> Result<i32, FieldFailure> {
        Err(allowance(context).failure(message))
    }
}

/// An entry of the list.
pub(crate) struct Item(content::Item);

#[Object]
impl Item {
    /// Number as text, from 1.
    async fn id(&self) -> ID {
        ID::from(self.0.id())
    }

    /// Name of the item.
    async fn name(&self) -> String {
        self.0.name()
    }

    /// Number of pieces in stock.
    async fn quantity(&self) -> i32 {
        self.0.quantity()
    }

    /// True if pieces are in stock.
    async fn in_stock(&self) -> bool {
        self.0.in_stock()
    }

    /// Note. Only every third item has one.
    async fn note(&self) -> Option<String> {
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
    // The library counts the selection set of the operation as 0, `DEPTH_MAX` counts it as 1.
    async_graphql::Schema::build(query, mutation, EmptySubscription)
        .limit_recursive_depth(DEPTH_MAX - 1)
        .finish()
}

/// Executes a request. With `is_get`, mutations are refused.
pub(crate) async fn execute(
    schema: &Schema,
    request: GraphqlRequest<'_, Variables>,
    is_get: bool,
) -> Outcome {
    let document = match parse_query(&request.query) {
        Ok(document) => document,
        Err(error) => return Outcome::Refused(vec![error_of(&error.into())]),
    };
    let mut values = request.variables.unwrap_or_default();
    for value in values.values_mut() {
        if let Value::Number(number) = value
            && !number.is_i64()
            && let Some(whole) = number.as_f64().and_then(content::whole)
        {
            *value = Value::from(whole);
        }
    }
    // Checked here, because the library would execute first and report some mistakes only afterwards.
    let name = request.operation_name.map(std::borrow::Cow::into_owned);
    if let Err(outcome) = check(&document, name.as_deref(), &values, is_get) {
        return outcome;
    }
    let mut prepared = Request::new(request.query).variables(values);
    prepared.operation_name = name;
    // A new allowance for each request.
    prepared.data.insert(Allowance::default());
    prepared.set_parsed_query(document);
    outcome_of(schema.execute(prepared).await)
}

/// The checks that the library lacks.
fn check(
    document: &ExecutableDocument,
    name: Option<&str>,
    values: &Variables,
    is_get: bool,
) -> Result<(), Outcome> {
    graphql_document::check_fragments(document)
        .map_err(|error| Outcome::Refused(vec![GraphqlError::of_request(error)]))?;
    let Some(operation) = selected(document, name) else {
        // The library reports that the operation does not exist.
        return Ok(());
    };
    if is_get && operation.ty == OperationType::Mutation {
        return Err(Outcome::MutationByGet);
    }
    introspection::check(document, operation)
        .map_err(|error| Outcome::Refused(vec![GraphqlError::of_request(error)]))?;
    let mistakes = variables::check(operation, values);
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(Outcome::Refused(mistakes))
    }
}

/// The operation to execute.
fn selected<'a>(
    document: &'a ExecutableDocument,
    name: Option<&str>,
) -> Option<&'a OperationDefinition> {
    // The same choice as the library makes during execution, which is too late to refuse a mutation by GET.
    let operation = match (&document.operations, name) {
        (DocumentOperations::Single(operation), None) => Some(operation),
        (DocumentOperations::Single(_), Some(_)) => None,
        (DocumentOperations::Multiple(operations), Some(name)) => operations.get(name),
        (DocumentOperations::Multiple(operations), None) => match operations.len() {
            1 => operations.values().next(),
            _ => None,
        },
    };
    operation.map(|operation| &operation.node)
}

/// The library reports errors of the whole request also as null data. These errors have no path.
fn outcome_of(response: Response) -> Outcome {
    let Response { data, errors, .. } = response;
    if errors.is_empty() {
        return Outcome::Data(reply::data_alone(&data));
    }
    // A single error without a path is enough: the library then executed no field.
    let is_of_request = errors.iter().any(|error| error.path.is_empty());
    let errors = errors.iter().map(error_of).collect();
    if is_of_request {
        Outcome::Refused(errors)
    } else {
        Outcome::Partial(reply::with_errors(&data, errors))
    }
}

fn error_of(error: &ServerError) -> GraphqlError {
    let location = |at: &Pos| Location {
        line: at.line,
        column: at.column,
    };
    let segment = |segment: &Segment| match segment {
        Segment::Field(key) => PathSegment::Key(key.clone()),
        Segment::Index(index) => PathSegment::Index(*index),
    };
    GraphqlError {
        message: error.message.clone(),
        locations: error.locations.iter().map(location).collect(),
        path: error.path.iter().map(segment).collect(),
    }
}
