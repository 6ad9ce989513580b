//! Writes the planner's operations for subgraphs with the fewest characters.
//!
//! The form is the result of `stripIgnoredCharacters` of graphql-js. It has a space between two tokens that
//! would otherwise merge, and before a spread after a name. Fixtures that compare request bodies byte by byte
//! depend on it.

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::operation::VariableDefinition;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};
use hive_router_query_planner::ast::value::Value;

use crate::fetch::OperationKind;

/// Writes an operation under the given name.
pub(crate) fn render(document: &Document, kind: OperationKind, name: Option<&str>) -> String {
    let mut writer = Writer::default();
    let operation = &document.operation;
    let variables = operation.variable_definitions.as_deref().unwrap_or(&[]);
    // The short form `{…}` exists only for queries without name and variables.
    if kind != OperationKind::Query || name.is_some() || !variables.is_empty() {
        writer.word(kind.as_str());
    }
    if let Some(name) = name {
        writer.word(name);
    }
    if !variables.is_empty() {
        writer.punctuator("(");
        for variable in variables {
            writer.variable_definition(variable);
        }
        writer.punctuator(")");
    }
    writer.selection_set(&operation.selection_set);
    for fragment in &document.fragments {
        writer.word("fragment");
        writer.word(&fragment.name);
        writer.word("on");
        writer.word(&fragment.type_condition);
        writer.selection_set(&fragment.selection_set);
    }
    writer.text
}

/// The name of one fetch: `<operation>__<subgraph>__<n>`.
pub(crate) fn fetch_name(operation: &str, subgraph: &str, index: usize) -> String {
    // The name of a subgraph may contain any character, but a GraphQL name may not.
    let subgraph: String = subgraph
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect();
    format!("{operation}__{subgraph}__{index}")
}

#[derive(Default)]
struct Writer {
    text: String,
    after_word: bool,
}

impl Writer {
    fn word(&mut self, word: &str) {
        if self.after_word {
            self.text.push(' ');
        }
        self.text.push_str(word);
        self.after_word = true;
    }

    fn punctuator(&mut self, punctuator: &str) {
        if self.after_word && punctuator == "..." {
            self.text.push(' ');
        }
        self.text.push_str(punctuator);
        self.after_word = false;
    }

    fn variable_definition(&mut self, variable: &VariableDefinition) {
        self.punctuator("$");
        self.word(&variable.name);
        self.punctuator(":");
        // A type has no spaces. The next token needs a space only if the type ends in a name.
        let kind = variable.variable_type.to_string();
        self.text.push_str(&kind);
        self.after_word = !kind.ends_with(['!', ']']);
        if let Some(default) = &variable.default_value {
            self.punctuator("=");
            self.value(default);
        }
    }

    fn selection_set(&mut self, set: &SelectionSet) {
        self.punctuator("{");
        for item in &set.items {
            match item {
                SelectionItem::Field(field) => self.field(field),
                // The planner leaves empty fragments when it folds conditions.
                SelectionItem::InlineFragment(inline) if inline.selections.items.is_empty() => {}
                SelectionItem::InlineFragment(inline) => {
                    self.punctuator("...");
                    self.word("on");
                    self.word(&inline.type_condition);
                    self.conditions(inline.skip_if.as_deref(), inline.include_if.as_deref());
                    self.selection_set(&inline.selections);
                }
                SelectionItem::FragmentSpread(name) => {
                    self.punctuator("...");
                    self.word(name);
                }
            }
        }
        self.punctuator("}");
    }

    fn field(&mut self, field: &FieldSelection) {
        if let Some(alias) = field.alias.as_deref().filter(|alias| *alias != field.name) {
            self.word(alias);
            self.punctuator(":");
        }
        self.word(&field.name);
        if let Some(arguments) = field.arguments() {
            self.punctuator("(");
            for (name, value) in arguments {
                self.word(name);
                self.punctuator(":");
                self.value(value);
            }
            self.punctuator(")");
        }
        self.conditions(field.skip_if.as_deref(), field.include_if.as_deref());
        if !field.selections.is_empty() {
            self.selection_set(&field.selections);
        }
    }

    fn conditions(&mut self, skip_if: Option<&str>, include_if: Option<&str>) {
        for (directive, variable) in [("skip", skip_if), ("include", include_if)] {
            if let Some(variable) = variable {
                self.punctuator("@");
                self.word(directive);
                self.punctuator("(");
                self.word("if");
                self.punctuator(":");
                self.punctuator("$");
                self.word(variable);
                self.punctuator(")");
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Variable(name) => {
                self.punctuator("$");
                self.word(name);
            }
            Value::List(items) => {
                self.punctuator("[");
                for item in items {
                    self.value(item);
                }
                self.punctuator("]");
            }
            Value::Object(members) => {
                self.punctuator("{");
                for (name, value) in members {
                    self.word(name);
                    self.punctuator(":");
                    self.value(value);
                }
                self.punctuator("}");
            }
            // `{:?}` keeps the decimal point. A whole number would lose its type in a custom scalar.
            Value::Float(number) => self.word(&format!("{number:?}")),
            other => self.word(&other.to_string()),
        }
    }
}
