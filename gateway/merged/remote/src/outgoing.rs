//! Writes the operation for a service, in the service's own names.

use gateway_federation::{Fragments, OperationKind, Schema};
use gateway_template::write_text;
use graphql_tools::parser::query::{
    Directive, Field, FragmentDefinition, Selection, SelectionSet, TypeCondition, Value,
    VariableDefinition,
};
use graphql_tools::parser::schema::Type;

use crate::names::Names;

pub(crate) type Set = SelectionSet<'static, String>;
pub(crate) type AskedField = Field<'static, String>;
pub(crate) type Conditions = [Directive<'static, String>];

/// A root field of an operation, at its place in the client's document.
#[derive(Clone)]
pub(crate) struct Occurrence<'a> {
    pub(crate) field: &'a AskedField,
    /// The conditions of the fragments around it, outermost first.
    pub(crate) around: Vec<&'a Conditions>,
}

impl Occurrence<'_> {
    pub(crate) fn key(&self) -> &str {
        self.field.alias.as_deref().unwrap_or(&self.field.name)
    }
}

/// The root fields of a selection set, with its fragments resolved.
pub(crate) fn occurrences<'a>(set: &'a Set, fragments: &Fragments<'a>) -> Vec<Occurrence<'a>> {
    let mut found = Vec::new();
    collect(set, fragments, &mut Vec::new(), &mut found);
    found
}

/// Adds the fields of a set. `around` contains the conditions on the way to the set.
pub(crate) fn collect<'a>(
    set: &'a Set,
    fragments: &Fragments<'a>,
    around: &mut Vec<&'a Conditions>,
    found: &mut Vec<Occurrence<'a>>,
) {
    for selection in &set.items {
        let (directives, inner): (&Conditions, &Set) = match selection {
            Selection::Field(field) => {
                found.push(Occurrence {
                    field,
                    around: around.clone(),
                });
                continue;
            }
            Selection::InlineFragment(it) => (&it.directives, &it.selection_set),
            Selection::FragmentSpread(it) => match fragments.get(it.fragment_name.as_str()) {
                Some(fragment) => (&it.directives, &fragment.selection_set),
                None => continue,
            },
        };
        let depth = around.len();
        // A fragment without directives has no effect, so its fields are selected directly.
        if !directives.is_empty() {
            around.push(directives);
        }
        collect(inner, fragments, around, found);
        around.truncate(depth);
    }
}

/// An operation for a service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    /// Names of its variables, in the order of their declaration.
    pub(crate) variables: Vec<String>,
}

/// The content of an operation.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: OperationKind,
    pub(crate) name: Option<&'a str>,
    pub(crate) declared: &'a [VariableDefinition<'static, String>],
    pub(crate) fields: &'a [Occurrence<'a>],
    /// The parent type of the fields, in the merged schema.
    pub(crate) parent: &'a str,
}

/// Writes an operation in the service's names.
pub(crate) fn write(
    wanted: &Wanted<'_>,
    schema: &Schema,
    names: &Names,
    fragments: &Fragments<'_>,
) -> Outgoing {
    let mut writer = Writer {
        schema,
        names,
        text: String::new(),
        is_after_word: false,
        spread: Vec::new(),
        variables: Vec::new(),
    };
    writer.mark("{");
    // Each root field is wrapped separately in the conditions of its fragments, because other fields of the
    // fragment may belong to another service.
    for occurrence in wanted.fields {
        for directives in &occurrence.around {
            writer.mark("...");
            writer.directives(directives);
            writer.mark("{");
        }
        writer.field(wanted.parent, occurrence.field);
        for _ in &occurrence.around {
            writer.mark("}");
        }
    }
    writer.mark("}");
    let mut done = 0;
    // By index, because writing a fragment may add further fragments to the list.
    while let Some(name) = writer.spread.get(done).cloned() {
        done += 1;
        if let Some(fragment) = fragments.get(name.as_str()) {
            writer.fragment(fragment);
        }
    }
    let body = std::mem::take(&mut writer.text);
    writer.is_after_word = false;
    // Written before the head, because the variables of the operation are complete only now. A service
    // rejects unused variables.
    let used = std::mem::take(&mut writer.variables);
    let declared: Vec<_> = wanted
        .declared
        .iter()
        .filter(|it| used.contains(&it.name))
        .collect();
    writer.head(wanted, &declared);
    Outgoing {
        text: writer.text + &body,
        variables: declared.iter().map(|it| it.name.clone()).collect(),
    }
}

struct Writer<'a> {
    schema: &'a Schema,
    names: &'a Names,
    text: String,
    is_after_word: bool,
    /// Required fragments, in the order of their first use.
    spread: Vec<String>,
    variables: Vec<String>,
}

impl Writer<'_> {
    fn word(&mut self, word: &str) {
        if self.is_after_word {
            self.text.push(' ');
        }
        self.text.push_str(word);
        self.is_after_word = true;
    }

    fn mark(&mut self, mark: &str) {
        self.text.push_str(mark);
        self.is_after_word = false;
    }

    fn head(&mut self, wanted: &Wanted<'_>, declared: &[&VariableDefinition<'static, String>]) {
        if wanted.kind == OperationKind::Query && wanted.name.is_none() && declared.is_empty() {
            return;
        }
        self.word(wanted.kind.as_str());
        if let Some(name) = wanted.name {
            self.word(name);
        }
        if declared.is_empty() {
            return;
        }
        self.mark("(");
        for variable in declared {
            self.mark("$");
            self.word(&variable.name);
            self.mark(":");
            self.kind(&variable.var_type);
            if let Some(default) = &variable.default_value {
                self.mark("=");
                self.value(default);
            }
        }
        self.mark(")");
    }

    fn kind(&mut self, of: &Type<'static, String>) {
        match of {
            Type::NamedType(name) => {
                let old = self.names.old_type(name).to_owned();
                self.word(&old);
            }
            Type::ListType(inner) => {
                self.mark("[");
                self.kind(inner);
                self.mark("]");
            }
            Type::NonNullType(inner) => {
                self.kind(inner);
                self.mark("!");
            }
        }
    }

    fn fragment(&mut self, fragment: &FragmentDefinition<'static, String>) {
        self.word("fragment");
        self.word(&fragment.name);
        let TypeCondition::On(on) = &fragment.type_condition;
        self.condition(on);
        self.directives(&fragment.directives);
        self.set(on, &fragment.selection_set);
    }

    fn condition(&mut self, on: &str) {
        let old = self.names.old_type(on).to_owned();
        self.word("on");
        self.word(&old);
    }

    fn set(&mut self, parent: &str, set: &Set) {
        self.mark("{");
        for selection in &set.items {
            match selection {
                Selection::Field(field) => self.field(parent, field),
                Selection::FragmentSpread(it) => {
                    self.mark("...");
                    self.word(&it.fragment_name);
                    self.directives(&it.directives);
                    if !self.spread.contains(&it.fragment_name) {
                        self.spread.push(it.fragment_name.clone());
                    }
                }
                Selection::InlineFragment(it) => {
                    self.mark("...");
                    let mut inner = parent;
                    if let Some(TypeCondition::On(on)) = &it.type_condition {
                        self.condition(on);
                        inner = on;
                    }
                    self.directives(&it.directives);
                    self.set(inner, &it.selection_set);
                }
            }
        }
        self.mark("}");
    }

    fn field(&mut self, parent: &str, field: &AskedField) {
        // The client's key stays the key of the response. If names differ, an alias keeps it.
        let key = field.alias.as_deref().unwrap_or(&field.name);
        let old = self.names.old_field(parent, &field.name).to_owned();
        if key != old {
            self.word(key);
            self.mark(":");
        }
        self.word(&old);
        self.arguments(&field.arguments);
        self.directives(&field.directives);
        if !field.selection_set.items.is_empty() {
            let schema = self.schema;
            if let Some(kind) = schema.field_type(parent, &field.name) {
                self.set(kind, &field.selection_set);
            }
        }
    }

    fn directives(&mut self, directives: &Conditions) {
        for directive in directives {
            self.mark("@");
            self.word(&directive.name);
            self.arguments(&directive.arguments);
        }
    }

    fn arguments(&mut self, arguments: &[(String, Value<'static, String>)]) {
        if arguments.is_empty() {
            return;
        }
        self.mark("(");
        for (name, value) in arguments {
            self.word(name);
            self.mark(":");
            self.value(value);
        }
        self.mark(")");
    }

    fn value(&mut self, value: &Value<'static, String>) {
        match value {
            Value::Variable(name) => {
                self.mark("$");
                self.word(name);
                if !self.variables.contains(name) {
                    self.variables.push(name.clone());
                }
            }
            Value::List(items) => {
                self.mark("[");
                for item in items {
                    self.value(item);
                }
                self.mark("]");
            }
            Value::Object(members) => {
                self.mark("{");
                for (name, value) in members {
                    self.word(name);
                    self.mark(":");
                    self.value(value);
                }
                self.mark("}");
            }
            Value::String(text) => {
                let mut quoted = Vec::new();
                write_text(text, &mut quoted);
                let quoted = String::from_utf8_lossy(&quoted).into_owned();
                // A quote after a quote would begin a block string.
                self.is_after_word = self.text.ends_with('"');
                self.word(&quoted);
            }
            Value::Int(number) => {
                let number = number
                    .as_i64()
                    .expect("the parser reads integers as 64-bit");
                self.word(&number.to_string());
            }
            // Without a fraction, a float would become an integer for a custom scalar.
            Value::Float(number) => self.word(&format!("{number:?}")),
            Value::Boolean(flag) => self.word(if *flag { "true" } else { "false" }),
            Value::Null => self.word("null"),
            Value::Enum(name) => self.word(name),
        }
    }
}
