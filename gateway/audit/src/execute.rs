//! One server. It validates and executes a request by part 6 of the GraphQL specification.

use std::collections::BTreeMap;

use async_graphql::Positioned;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    BaseType, DocumentOperations, Field, OperationDefinition, OperationType, Selection,
    SelectionSet, Type,
};
use async_graphql_value::Value as Literal;
use serde_json::{Map, Value, json};

use crate::fieldset::FieldSet;
use crate::input::{self, Variables};
use crate::schema::{self, Kind, Schema};
use crate::value::Output;
use crate::verify::{self, Fragments};
use crate::world::{Failure, Node, ORACLE, World};

/// The response of a server.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The data. `None` if the server refused the request.
    pub data: Option<Output>,
    /// The errors, in the order of their occurrence.
    pub errors: Vec<FieldError>,
}

/// One error of a response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldError {
    /// The error text for people.
    pub message: String,
    /// Names and numbers. Empty for a refusal.
    pub path: Vec<Value>,
    /// All other members of the error's `extensions`.
    pub extensions: Map<String, Value>,
}

/// A null that its parent must take over. Its error is recorded already.
struct Bubble;

/// The execution of one request by a server.
pub(crate) struct Run<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) world: &'a World,
    pub(crate) server: &'a str,
    fragments: &'a Fragments,
    variables: Variables,
    errors: Vec<FieldError>,
    path: Vec<Value>,
}

/// An object and the selected fields.
struct SelectedObject<'a> {
    ty: String,
    node: Node,
    fields: Vec<(String, Vec<&'a Field>)>,
    provided: FieldSet,
}

impl Answer {
    fn refused(message: String) -> Self {
        let error = FieldError {
            message,
            ..FieldError::default()
        };
        Self {
            data: None,
            errors: vec![error],
        }
    }

    /// The response as JSON text, without an empty `errors`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let errors: Vec<Value> = self.errors.iter().map(FieldError::to_json).collect();
        let errors = Value::Array(errors);
        match &self.data {
            None => format!("{{\"errors\":{errors}}}"),
            Some(data) if self.errors.is_empty() => format!("{{\"data\":{data}}}"),
            Some(data) => format!("{{\"data\":{data},\"errors\":{errors}}}"),
        }
    }
}

impl FieldError {
    /// The path of the error as text, such as `users.0.name`.
    #[must_use]
    pub fn place(&self) -> String {
        let steps = self
            .path
            .iter()
            .map(|step| step.to_string().trim_matches('"').to_owned());
        steps.collect::<Vec<_>>().join(".")
    }

    fn to_json(&self) -> Value {
        let mut error = json!({ "message": self.message });
        if !self.path.is_empty() {
            error["path"] = self.path.clone().into();
        }
        if !self.extensions.is_empty() {
            error["extensions"] = self.extensions.clone().into();
        }
        error
    }
}

/// Executes a request on one server.
pub(crate) fn answer(
    schema: &Schema,
    world: &World,
    server: &str,
    query: &str,
    operation_name: Option<&str>,
    variables: &Map<String, Value>,
) -> Answer {
    let document = match parse_query(query) {
        Ok(document) => document,
        Err(error) => return Answer::refused(error.to_string()),
    };
    let Some(operation) = chosen(&document.operations, operation_name) else {
        return Answer::refused("there is no such operation".to_owned());
    };
    let root = match operation.ty {
        OperationType::Mutation => &schema.mutation,
        _ => &schema.query,
    };
    // Subgraphs never receive `@defer`.
    let knows_defer = server == ORACLE;
    let checked = verify::operation(schema, &document.fragments, operation, root, knows_defer)
        .and_then(|()| input::variables(schema, operation, variables));
    let variables = match checked {
        Ok(variables) => variables,
        Err(message) => return Answer::refused(message),
    };
    let mut run = Run {
        schema,
        world,
        server,
        fragments: &document.fragments,
        variables,
        errors: Vec::new(),
        path: Vec::new(),
    };
    let node = world.root(root);
    let data = run.object(
        // The order of the specification: validate the document, coerce the variables, execute.
        root,
        node,
        &[&operation.selection_set.node],
        &FieldSet::default(),
    );
    Answer {
        data: Some(data.unwrap_or(Output::Null)),
        errors: run.errors,
    }
}

fn chosen<'a>(
    operations: &'a DocumentOperations,
    name: Option<&str>,
) -> Option<&'a OperationDefinition> {
    let mut all = operations.iter();
    match name {
        // Without a name, the document must have exactly one operation.
        None => all
            .next()
            .filter(|_| all.next().is_none())
            .map(|(_, operation)| &operation.node),
        Some(name) => all
            .find(|(known, _)| known.is_some_and(|known| known == name))
            .map(|(_, operation)| &operation.node),
    }
}

impl<'a> Run<'a> {
    fn object(
        &mut self,
        ty: &str,
        node: Node,
        sets: &[&'a SelectionSet],
        provided: &FieldSet,
    ) -> Result<Output, Bubble> {
        let mut fields = Vec::new();
        for set in sets {
            self.collect(ty, set, &mut fields);
        }
        let object = SelectedObject {
            ty: ty.to_owned(),
            node,
            fields,
            provided: provided.clone(),
            // All fields are collected before the first is executed, because selections under one key are
            // merged.
        };
        let mut members = Vec::new();
        for (key, same) in &object.fields {
            self.path.push(key.as_str().into());
            let value = self.field(&object, same);
            // Popped before the error is returned. Otherwise the paths of later errors would be wrong.
            self.path.pop();
            members.push((key.clone(), value?));
        }
        Ok(Output::Object(members))
    }

    fn collect(&self, ty: &str, set: &'a SelectionSet, into: &mut Vec<(String, Vec<&'a Field>)>) {
        for selection in &set.items {
            let selection = &selection.node;
            if !self.is_wanted(selection) {
                continue;
            }
            match selection {
                // A linear search keeps the order of the client's selections. The response has this order.
                Selection::Field(field) => {
                    let key = field.node.alias.as_ref().unwrap_or(&field.node.name);
                    let key = key.node.as_str();
                    match into.iter_mut().find(|(known, _)| known == key) {
                        Some((_, same)) => same.push(&field.node),
                        None => into.push((key.to_owned(), vec![&field.node])),
                    }
                }
                Selection::InlineFragment(fragment) => {
                    let condition = fragment.node.type_condition.as_ref();
                    if condition
                        .is_none_or(|condition| self.schema.is_a(ty, &condition.node.on.node))
                    {
                        self.collect(ty, &fragment.node.selection_set.node, into);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let fragment = &self.fragments[&spread.node.fragment_name.node].node;
                    if self.schema.is_a(ty, &fragment.type_condition.node.on.node) {
                        self.collect(ty, &fragment.selection_set.node, into);
                    }
                }
            }
        }
    }

    fn is_wanted(&self, selection: &Selection) -> bool {
        let mut directives = selection.directives().iter();
        directives.all(|directive| {
            if directive.node.name.node == "defer" {
                return true;
            }
            let condition = directive.node.get_argument("if").map(|value| &value.node);
            let condition = condition.and_then(|value| input::literal(value, &self.variables));
            let is_true = condition == Some(Value::Bool(true));
            // `@include` requires true, `@skip` false.
            is_true == (directive.node.name.node == "include")
        })
    }

    fn field(&mut self, object: &SelectedObject<'a>, same: &[&'a Field]) -> Result<Output, Bubble> {
        let name = same[0].name.node.as_str();
        if name == "__typename" {
            return Ok(Output::Leaf(object.ty.as_str().into()));
        }
        let definition = self
            .schema
            .field(&object.ty, name)
            .expect("validation found the field");
        let sets: Vec<&SelectionSet> = same.iter().map(|field| &field.selection_set.node).collect();
        let mut provided = below(&object.provided, name);
        // The fields that the path provides, together with the fields that this field itself provides.
        provided
            .0
            .extend(definition.provides.iter().flat_map(|set| set.0.clone()));
        let value = self.value(object, definition, same);
        self.settle(&definition.ty, value, &sets, &provided)
    }

    fn value(
        &self,
        object: &SelectedObject<'a>,
        definition: &schema::Field,
        same: &[&'a Field],
    ) -> Result<Value, Failure> {
        let failure = |message: String| Failure {
            message,
            extensions: Map::new(),
        };
        let name = definition.name.as_str();
        let mut arguments = Vec::new();
        for field in same {
            let given = given(&field.arguments);
            let coerced =
                input::arguments(self.schema, &definition.arguments, given, &self.variables);
            arguments.push(coerced.map_err(failure)?);
        }
        // Without this check, a gateway that merges two fields under one key would receive the first field's
        // value. The mistake would stay hidden.
        if same.iter().any(|field| field.name.node != name)
            || arguments.iter().any(|one| *one != arguments[0])
        {
            return Err(failure(format!(
                "`{name}` is asked in two ways under one key"
            )));
        }
        if name == "_entities" && object.ty == self.schema.query {
            return self.entities(&arguments[0]);
            // The field is external in this subgraph. Its value must come from the caller or from the data of
            // a key.
        }
        if definition.is_external {
            return self.external(object, name, &arguments[0]);
        }
        self.world
            .value(&object.node, name, &arguments[0], self.server)
    }

    /// The value of a field that another subgraph owns. The caller sent it, a path provides it, or it is part
    /// of a key.
    fn external(
        &self,
        object: &SelectedObject<'a>,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Failure> {
        if let Some(value) = object.node.representation.get(name) {
            return Ok(value.clone());
        }
        let keys = &self.schema.types[&object.ty].keys;
        if object.provided.names(name)
            || keys.iter().any(|key| key.fields.mentions(name))
            || keys.is_empty()
        {
            return self.world.value(&object.node, name, arguments, self.server);
        }
        let message = format!("`{}.{name}` is external and was not provided", object.ty);
        Err(Failure {
            message,
            extensions: Map::new(),
        })
    }

    fn settle(
        &mut self,
        ty: &Type,
        value: Result<Value, Failure>,
        sets: &[&'a SelectionSet],
        provided: &FieldSet,
    ) -> Result<Output, Bubble> {
        let output = match value {
            Ok(value) => self.complete(ty, &value, sets, provided),
            Err(failure) => {
                self.fail(failure.message, failure.extensions);
                Err(Bubble)
            }
        };
        match output {
            Err(Bubble) if ty.nullable => Ok(Output::Null),
            output => output,
        }
    }

    fn complete(
        &mut self,
        ty: &Type,
        value: &Value,
        sets: &[&'a SelectionSet],
        provided: &FieldSet,
    ) -> Result<Output, Bubble> {
        if value.is_null() {
            if ty.nullable {
                return Ok(Output::Null);
            }
            self.fail(format!("`{ty}` must not be null"), Map::new());
            return Err(Bubble);
        }
        match &ty.base {
            BaseType::List(inner) => {
                let Some(values) = value.as_array() else {
                    self.fail(format!("{value} is no list"), Map::new());
                    return Err(Bubble);
                };
                let mut outputs = Vec::new();
                let mut is_whole = true;
                for (index, value) in values.iter().enumerate() {
                    self.path.push(index.into());
                    // An element that is itself `{"$error": …}` fails alone.
                    let value = self
                        .world
                        .value(&wrapped(value), "it", &Map::new(), self.server);
                    // The other elements are completed too, so that their errors are also reported.
                    match self.settle(inner, value, sets, provided) {
                        Ok(output) => outputs.push(output),
                        Err(Bubble) => is_whole = false,
                    }
                    self.path.pop();
                }
                if is_whole {
                    Ok(Output::List(outputs))
                } else {
                    Err(Bubble)
                }
            }
            BaseType::Named(name) => self.complete_named(name, value, sets, provided),
        }
    }

    fn complete_named(
        &mut self,
        name: &str,
        value: &Value,
        sets: &[&'a SelectionSet],
        provided: &FieldSet,
    ) -> Result<Output, Bubble> {
        let definition = &self.schema.types[name];
        let problem = match definition.kind {
            Kind::Enum
                if !value
                    .as_str()
                    .is_some_and(|text| definition.values.iter().any(|known| known == text)) =>
            {
                format!("{value} is no `{name}`")
            }
            kind if !kind.is_composite() => return Ok(Output::Leaf(value.clone())),
            _ => match self.world.node(value, name) {
                None => format!("{value} is no object"),
                Some(mut node) => match self.type_here(&node.concrete, name) {
                    None => format!("`{}` is no `{name}` here", node.concrete),
                    Some(ty) => {
                        // A value from the caller has only the fields that the caller sent.
                        if value.get("$ref").is_none() {
                            node.representation.clone_from(&node.fields);
                        }
                        if let Some(Value::Object(said)) = value.get(REPRESENTATION) {
                            node.representation.clone_from(said);
                        }
                        return self.object(&ty, node, sets, provided);
                    }
                },
            },
        };
        self.fail(problem, Map::new());
        Err(Bubble)
    }

    /// The type name of an object on this server. An interface object stands for all its implementing types.
    fn type_here(&self, concrete: &str, declared: &str) -> Option<String> {
        // An unknown object type may still have an interface object on this server.
        if self.schema.kind(concrete) == Some(Kind::Object) {
            let is_fit = declared == "_Entity" || self.schema.is_a(concrete, declared);
            return is_fit.then(|| concrete.to_owned());
        }
        let stands_for = |name: &str| {
            self.schema
                .types
                .get(name)
                .is_some_and(|definition| definition.is_interface_object)
                && self.world.all(name).any(|node| node.concrete == concrete)
        };
        if stands_for(declared) {
            return Some(declared.to_owned());
        }
        self.schema
            .possible
            .get(declared)?
            .iter()
            .find(|name| stands_for(name))
            .cloned()
    }

    fn fail(&mut self, message: String, extensions: Map<String, Value>) {
        let path = self.path.clone();
        self.errors.push(FieldError {
            message,
            path,
            extensions,
        });
    }
}

/// Key that attaches the caller's representation to an entity.
pub(crate) const REPRESENTATION: &str = "representation of the caller";

fn wrapped(value: &Value) -> Node {
    Node {
        fields: Map::from_iter([("it".to_owned(), value.clone())]),
        ..Node::default()
    }
}

fn below(provided: &FieldSet, name: &str) -> FieldSet {
    let found = provided.0.iter().filter(|(known, _)| known == name);
    FieldSet(found.flat_map(|(_, below)| below.0.clone()).collect())
}

fn given(
    arguments: &[(Positioned<async_graphql::Name>, Positioned<Literal>)],
) -> impl Iterator<Item = (&str, &Literal)> {
    let by_name: BTreeMap<&str, &Literal> = arguments
        .iter()
        .map(|(name, value)| (name.node.as_str(), &value.node))
        .collect();
    by_name.into_iter()
}
