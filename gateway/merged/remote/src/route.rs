//! Plans a checked operation: the requests to services and handlers, and the assembly of the response.

use bytes::Bytes;
use gateway_federation::{
    AnswerMember, Checked, Fragments, MemberSource, OperationKind, fragments,
};
use gateway_template::write_text;
use graphql_tools::parser::query::{Document, OperationDefinition, VariableDefinition};

use crate::answer::TypeNames;
use crate::literal::{Argument, Reader};
use crate::merge::{MergedSchema, Owner};
use crate::outgoing::{self, Occurrence, Wanted};

/// The request to one service, or to one handler.
#[derive(Debug)]
pub(crate) enum Part {
    Remote(RemotePart),
    Action(ActionPart),
}

/// The request to one service.
#[derive(Debug)]
pub(crate) struct RemotePart {
    /// Position of the remote schema in the configuration.
    pub(crate) remote: usize,
    /// The body up to the variables.
    pub(crate) prefix: Bytes,
    /// Variables by position, with their keys as JSON.
    pub(crate) variables: Vec<(usize, Vec<u8>)>,
    /// The members of the response, with their conditions.
    pub(crate) keys: Vec<(String, Option<usize>)>,
    /// The condition of the namespace that contains them.
    pub(crate) namespace_presence: Option<usize>,
    /// The first field, for paths of errors.
    pub(crate) field: String,
    pub(crate) type_names: Option<TypeNames>,
    pub(crate) is_idempotent: bool,
}

/// The request to one handler.
#[derive(Debug)]
pub(crate) struct ActionPart {
    /// Position of the action in the configuration.
    pub(crate) action: usize,
    /// Position of the member in the response's root.
    pub(crate) member: usize,
    pub(crate) arguments: Vec<(String, Argument)>,
    pub(crate) presence: Option<usize>,
}

/// A member of the response.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) opener: Box<[u8]>,
    pub(crate) presence: Option<usize>,
    pub(crate) content: Content,
}

/// The source of a response member.
#[derive(Debug)]
pub(crate) enum Content {
    Text(Box<[u8]>),
    /// Position of the member in the response's root.
    Introspection(usize),
    /// A member of a service's response.
    Member {
        part: usize,
        key: String,
    },
    /// The whole value of an action.
    Action(usize),
    Namespace(Vec<Item>),
}

/// The plan of an operation.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) parts: Vec<Part>,
    pub(crate) items: Vec<Item>,
    /// True if the response of the single service is passed on byte for byte.
    pub(crate) passes_through: bool,
}

/// The state while an operation is routed.
pub(crate) struct Routing<'a> {
    pub(crate) merged: &'a MergedSchema,
    pub(crate) checked: &'a Checked,
    declared: &'a [VariableDefinition<'static, String>],
    fragments: Fragments<'a>,
    fields: Vec<Occurrence<'a>>,
    route: Route,
    /// The response keys of each part for a service, or the namespace of its fields.
    places: Vec<Place>,
}

/// The location of a part's fields in the client's document.
#[derive(Clone)]
enum Place {
    /// At the root, under these response keys.
    Root(Vec<String>),
    /// Below the namespace with this response key.
    Below(String),
    /// The part is not for a service.
    Nowhere,
}

/// Plans the parts and the response of an operation.
pub(crate) fn route<'a>(
    merged: &'a MergedSchema,
    checked: &'a Checked,
    document: &'a Document<'static, String>,
    operation: &'a OperationDefinition<'static, String>,
) -> Route {
    let fragments = fragments(document);
    let (set, declared) = match operation {
        OperationDefinition::SelectionSet(set) => (set, &[][..]),
        OperationDefinition::Query(it) => (&it.selection_set, &it.variable_definitions[..]),
        OperationDefinition::Mutation(it) => (&it.selection_set, &it.variable_definitions[..]),
        OperationDefinition::Subscription(it) => (&it.selection_set, &it.variable_definitions[..]),
    };
    let fields = outgoing::occurrences(set, &fragments);
    let mut routing = Routing {
        merged,
        checked,
        declared,
        fragments,
        fields,
        route: Route {
            parts: Vec::new(),
            items: Vec::new(),
            passes_through: false,
        },
        places: Vec::new(),
    };
    for (position, member) in checked.root_members().enumerate() {
        let item = routing.item(position, member);
        routing.route.items.push(item);
    }
    // In a second pass, because a part's operation needs all of its fields.
    for index in 0..routing.places.len() {
        routing.write(index);
    }
    routing.finish()
}

impl<'a> Routing<'a> {
    fn item(&mut self, position: usize, member: AnswerMember<'a>) -> Item {
        let content = match member.source() {
            MemberSource::Typename(text) => Content::Text(text.into()),
            MemberSource::Introspection => Content::Introspection(position),
            MemberSource::Field => self.field(position, member),
        };
        Item {
            opener: member.opener().into(),
            presence: member.presence(),
            content,
        }
    }

    fn field(&mut self, position: usize, member: AnswerMember<'a>) -> Content {
        match self.merged.owner(self.checked.kind(), member.field()) {
            Owner::Placeholder => Content::Text(b"null".as_slice().into()),
            Owner::Action(action) => self.action(action, position, member),
            Owner::Namespace(remote) => self.namespace(remote, member),
            Owner::Remote(remote) => {
                let part = self.part_at_root(remote, member);
                Content::Member {
                    part,
                    key: member.key().to_owned(),
                }
            }
        }
    }

    /// The part that requests a root field from a service. All root fields of a query for one service share
    /// one request. Root fields of a mutation share one only if they are adjacent.
    fn part_at_root(&mut self, remote: usize, member: AnswerMember<'a>) -> usize {
        // A mutation must keep the order of its root fields, so only adjacent fields of one service may share
        // a request.
        let is_query = self.checked.kind() == OperationKind::Query;
        let last = self.route.parts.len().wrapping_sub(1);
        let known = self.route.parts.iter().position(|part| match part {
            Part::Remote(it) => it.remote == remote && it.namespace_presence.is_none(),
            Part::Action(_) => false,
        });
        let mut fitting = known.filter(|_| is_query);
        if !is_query
            && let Some(Part::Remote(it)) = self.route.parts.get(last)
            && it.remote == remote
            && matches!(self.places[last], Place::Root(_))
        {
            fitting = Some(last);
        }
        // A part below a namespace requests other fields than the root.
        let fitting = fitting.filter(|index| matches!(self.places[*index], Place::Root(_)));
        let index = fitting.unwrap_or_else(|| {
            self.push_remote(remote, member.field(), None);
            self.places.push(Place::Root(Vec::new()));
            self.places.len() - 1
        });
        let key = member.key().to_owned();
        if let Some(Part::Remote(part)) = self.route.parts.get_mut(index) {
            part.keys.push((key.clone(), member.presence()));
        }
        if let Some(Place::Root(keys)) = self.places.get_mut(index) {
            keys.push(key);
        }
        index
    }

    fn push_remote(&mut self, remote: usize, field: &str, namespace_presence: Option<usize>) {
        self.route.parts.push(Part::Remote(RemotePart {
            remote,
            prefix: Bytes::new(),
            variables: Vec::new(),
            keys: Vec::new(),
            namespace_presence,
            field: field.to_owned(),
            type_names: None,
            is_idempotent: self.checked.kind() == OperationKind::Query,
        }));
    }

    fn namespace(&mut self, remote: usize, member: AnswerMember<'a>) -> Content {
        let checked = self.checked;
        let members: Vec<AnswerMember<'a>> = member
            .shape()
            .into_iter()
            .flat_map(|shape| checked.members_of(shape))
            .collect();
        // The index of the part that is added below, if the namespace has any field.
        let part = self.route.parts.len();
        let mut keys = Vec::new();
        let items = members.iter().map(|inner| Item {
            opener: inner.opener().into(),
            presence: inner.presence(),
            content: match inner.source() {
                MemberSource::Typename(text) => Content::Text(text.into()),
                _ => {
                    keys.push((inner.key().to_owned(), inner.presence()));
                    Content::Member {
                        part,
                        key: inner.key().to_owned(),
                    }
                }
            },
        });
        let items = items.collect();
        // A namespace of `__typename` alone needs no request.
        if !keys.is_empty() {
            self.push_remote(remote, member.field(), member.presence());
            if let Some(Part::Remote(part)) = self.route.parts.last_mut() {
                part.keys = keys;
            }
            self.places.push(Place::Below(member.key().to_owned()));
        }
        Content::Namespace(items)
    }

    fn action(&mut self, action: usize, position: usize, member: AnswerMember<'a>) -> Content {
        let reader = Reader {
            schema: &self.merged.schema,
            checked: self.checked,
            declared: self.declared,
        };
        // Fields with the same response key have equal arguments, as validation has checked. So the first
        // field is enough.
        let field = self.fields.iter().find(|it| it.key() == member.key());
        let root = self.checked.kind();
        let known = self.merged.arguments(root, member.field());
        let given = field.map_or(&[][..], |it| &it.field.arguments);
        let part = ActionPart {
            action,
            member: position,
            arguments: reader.arguments(given, known),
            presence: member.presence(),
        };
        self.route.parts.push(Part::Action(part));
        self.places.push(Place::Nowhere);
        Content::Action(self.places.len() - 1)
    }

    /// Writes the operation of a part, after all its fields are collected.
    fn write(&mut self, index: usize) {
        let kind = self.checked.kind();
        let root = match kind {
            OperationKind::Query => crate::merge::QUERY_ROOT,
            OperationKind::Mutation => crate::merge::MUTATION_ROOT,
            OperationKind::Subscription => unreachable!("{}", crate::merge::NO_SUBSCRIPTIONS),
        };
        let mut parent = root.to_owned();
        let fields: Vec<Occurrence<'a>> = match &self.places[index] {
            Place::Nowhere => return,
            Place::Root(keys) => {
                let is_ours = |it: &&Occurrence<'a>| keys.iter().any(|key| key == it.key());
                self.fields.iter().filter(is_ours).cloned().collect()
            }
            Place::Below(key) => {
                let mut found = Vec::new();
                // The namespace may be selected several times. One request contains all of its selections.
                for namespace in self.fields.iter().filter(|it| it.key() == key) {
                    let schema = &self.merged.schema;
                    if let Some(kind) = schema.field_type(root, &namespace.field.name) {
                        kind.clone_into(&mut parent);
                    }
                    let mut around = namespace.around.clone();
                    if !namespace.field.directives.is_empty() {
                        around.push(&namespace.field.directives);
                    }
                    let set = &namespace.field.selection_set;
                    outgoing::collect(set, &self.fragments, &mut around, &mut found);
                }
                // The type's name in the merged schema differs from the service's name. The gateway writes it
                // itself.
                found.retain(|it| it.field.name != "__typename");
                found
            }
        };
        let Part::Remote(part) = &mut self.route.parts[index] else {
            return;
        };
        let names = &self.merged.names[part.remote];
        let wanted = Wanted {
            kind,
            name: self.checked.operation_name(),
            declared: self.declared,
            fields: &fields,
            parent: &parent,
        };
        let outgoing = outgoing::write(&wanted, &self.merged.schema, names, &self.fragments);
        let mut prefix = b"{\"query\":".to_vec();
        write_text(&outgoing.text, &mut prefix);
        if let Some(name) = wanted.name {
            prefix.extend_from_slice(b",\"operationName\":");
            write_text(name, &mut prefix);
        }
        part.prefix = prefix.into();
        let variables = outgoing.variables.iter().filter_map(|name| {
            let mut opener = Vec::new();
            write_text(name, &mut opener);
            opener.push(b':');
            Some((self.checked.variable(name)?, opener))
        });
        part.variables = variables.collect();
        // Only then the gateway parses responses for names. Otherwise they are passed on as text.
        if names.renames_types() {
            part.type_names = TypeNames::of(&fields, &self.fragments);
        }
    }

    // One service with all members and no changed names: its body is the response, without parsing.
    fn finish(mut self) -> Route {
        let is_whole = |item: &Item| matches!(item.content, Content::Member { .. });
        self.route.passes_through = match self.route.parts.as_slice() {
            [Part::Remote(part)] => {
                part.type_names.is_none() && self.route.items.iter().all(is_whole)
            }
            _ => false,
        };
        self.route
    }
}
