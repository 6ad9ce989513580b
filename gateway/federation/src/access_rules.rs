//! Access rules of a supergraph: `@authenticated`, `@requiresScopes` and `@policy`.
//!
//! Objects inherit the rules of their interfaces. The gateway itself reads keys and the fields of
//! `@requires`. Rules do not apply to them, because they never reach the client.

use std::collections::{BTreeSet, HashMap};

use graphql_tools::parser::schema::{Definition, Document, TypeDefinition, Value};

use crate::features::Names;
use crate::schema::type_name;
use crate::sdl::{self, Applied, Written};
use crate::supergraph_error::SupergraphError;

/// A requirement for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand<'a> {
    /// The request must have claims of any kind.
    Authenticated,
    /// The claims must contain this scope.
    Scope(&'a str),
    /// A script or coprocessor must have granted this policy.
    Policy(&'a str),
}

/// The demands that a request meets. Requests with equal grants get the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants(String);

impl Grants {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Atom {
    Authenticated,
    Scope(String),
    Policy(String),
}

/// Alternatives. Each is a list of atoms that must all be granted.
type Clause = Vec<Vec<usize>>;

/// Clauses that must all hold.
pub(crate) type Rule = Vec<Clause>;

/// The rules of the types and fields of a supergraph.
#[derive(Debug)]
pub(crate) struct Rules {
    atoms: Vec<Atom>,
    types: HashMap<String, Rule>,
    fields: HashMap<String, HashMap<String, Rule>>,
}

/// The atoms that a request must have for everything in an operation, ascending.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Demands(Vec<usize>);

impl Demands {
    /// Creates demands from these atoms.
    pub(crate) fn of(atoms: BTreeSet<usize>) -> Demands {
        Demands(atoms.into_iter().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn weight(&self) -> usize {
        self.0.len() * size_of::<usize>()
    }
}

impl Rules {
    /// Reads the rules of a supergraph. `None` if it has no rules.
    pub(crate) fn read(
        document: &Document<'static, String>,
        names: &Names,
    ) -> Result<Option<Rules>, SupergraphError> {
        let mut reader = Reader {
            names,
            atoms: HashMap::new(),
        };
        let (mut types, mut fields) = (HashMap::new(), HashMap::new());
        for definition in &document.definitions {
            let Definition::TypeDefinition(definition) = definition else {
                continue;
            };
            let (directives, own) = match definition {
                TypeDefinition::Scalar(it) => (&it.directives, &[][..]),
                TypeDefinition::Enum(it) => (&it.directives, &[][..]),
                TypeDefinition::Union(it) => (&it.directives, &[][..]),
                TypeDefinition::Object(it) => (&it.directives, &it.fields[..]),
                TypeDefinition::Interface(it) => (&it.directives, &it.fields[..]),
                TypeDefinition::InputObject(_) => continue,
            };
            let name = type_name(definition);
            let rule = reader.rule(name, directives)?;
            if !rule.is_empty() {
                types.insert(name.to_owned(), rule);
            }
            for field in own {
                let rule = reader.rule(&format!("{name}.{}", field.name), &field.directives)?;
                if !rule.is_empty() {
                    let fields: &mut HashMap<_, _> = fields.entry(name.to_owned()).or_default();
                    fields.insert(field.name.clone(), rule);
                }
            }
        }
        if types.is_empty() && fields.is_empty() {
            return Ok(None);
        }
        let mut atoms: Vec<(Atom, usize)> = reader.atoms.into_iter().collect();
        // Sorted, because rules name atoms by their index and a map has no order.
        atoms.sort_by_key(|(_, index)| *index);
        let mut rules = Rules {
            atoms: atoms.into_iter().map(|(atom, _)| atom).collect(),
            types,
            fields,
        };
        rules.forget_derived(document);
        rules.inherit(document);
        Ok(Some(rules))
    }

    /// Removes interface rules that only repeat the rules of their objects. Composition gives an interface
    /// the combined rules of all its objects. Each object has its own rules, and must not pass them on to the
    /// other objects.
    fn forget_derived(&mut self, document: &Document<'static, String>) {
        let mut objects: HashMap<&str, Vec<&str>> = HashMap::new();
        for definition in &document.definitions {
            if let Definition::TypeDefinition(TypeDefinition::Object(object)) = definition {
                for interface in &object.implements_interfaces {
                    objects.entry(interface).or_default().push(&object.name);
                }
            }
        }
        for (interface, objects) in objects {
            let own = objects.iter().filter_map(|name| self.types.get(*name));
            if let Some(rule) = self.types.get(interface)
                && is_sum(rule, own)
            {
                self.types.remove(interface);
            }
            let Some(mut fields) = self.fields.remove(interface) else {
                continue;
            };
            fields.retain(|field, rule| {
                let own = objects
                    .iter()
                    .filter_map(|it| self.fields.get(*it)?.get(field));
                !is_sum(rule, own)
            });
            self.fields.insert(interface.to_owned(), fields);
        }
    }

    /// Copies the rules of interfaces to their objects. Otherwise a query on the object type could read a
    /// protected field of an interface.
    fn inherit(&mut self, document: &Document<'static, String>) {
        // Reads from a copy, because each type lists all its interfaces, including the interfaces of its
        // interfaces.
        let (types, fields) = (self.types.clone(), self.fields.clone());
        for definition in &document.definitions {
            let Some(composite) = sdl::composite(definition) else {
                continue;
            };
            let name = composite.name;
            for interface in composite.interfaces {
                if let Some(rule) = types.get(interface) {
                    add(self.types.entry(name.to_owned()).or_default(), rule);
                }
                for (field, rule) in fields.get(interface).into_iter().flatten() {
                    let own = self.fields.entry(name.to_owned()).or_default();
                    add(own.entry(field.clone()).or_default(), rule);
                }
            }
        }
    }

    pub(crate) fn of_type(&self, name: &str) -> Option<&Rule> {
        self.types.get(name)
    }

    pub(crate) fn of_field(&self, parent: &str, field: &str) -> Option<&Rule> {
        self.fields.get(parent)?.get(field)
    }

    pub(crate) fn is_ruled(&self, name: &str) -> bool {
        self.types.contains_key(name) || self.fields.contains_key(name)
    }

    /// The demands of an operation, one by one.
    pub(crate) fn demanded<'a>(&'a self, of: &'a Demands) -> impl Iterator<Item = Demand<'a>> {
        of.0.iter().map(|index| match &self.atoms[*index] {
            Atom::Authenticated => Demand::Authenticated,
            Atom::Scope(name) => Demand::Scope(name),
            Atom::Policy(name) => Demand::Policy(name),
        })
    }

    /// Returns a mark for each demand that a request meets or misses, or `None` if it meets every demand.
    pub(crate) fn grants(
        &self,
        of: &Demands,
        meets: impl FnMut(Demand<'_>) -> bool,
    ) -> Option<Grants> {
        let met = self.demanded(of).map(meets);
        let text: String = met.map(|met| if met { '1' } else { '0' }).collect();
        text.contains('0').then_some(Grants(text))
    }

    /// Returns true or false for each atom of the supergraph, for granted or not.
    pub(crate) fn granted(&self, of: &Demands, grants: &Grants) -> Vec<bool> {
        let mut granted = vec![false; self.atoms.len()];
        for (index, met) in of.0.iter().zip(grants.0.bytes()) {
            granted[*index] = met == b'1';
        }
        granted
    }
}

fn add(rule: &mut Rule, more: &Rule) {
    for clause in more {
        if !rule.contains(clause) {
            rule.push(clause.clone());
        }
    }
}

/// True if these atoms meet all clauses of a rule.
pub(crate) fn holds(rule: &Rule, granted: &[bool]) -> bool {
    let mut clauses = rule.iter();
    clauses.all(|alternatives| {
        let mut alternatives = alternatives.iter();
        alternatives.any(|atoms| atoms.iter().all(|atom| granted[*atom]))
    })
}

/// Maximum number of different atoms in rules that are compared.
const COMPARED_MAX: usize = 12;

/// True if a rule is equal to all other rules together, in any spelling. False if the comparison takes too
/// long.
fn is_sum<'a>(rule: &Rule, others: impl Iterator<Item = &'a Rule>) -> bool {
    let others: Vec<&Rule> = others.collect();
    let mut atoms = BTreeSet::new();
    collect_atoms(rule, &mut atoms);
    others
        .iter()
        .for_each(|other| collect_atoms(other, &mut atoms));
    if others.is_empty() || atoms.len() > COMPARED_MAX {
        return false;
    }
    let mut granted = vec![false; atoms.last().map_or(0, |last| last + 1)];
    (0..1_usize << atoms.len()).all(|bits| {
        for (position, atom) in atoms.iter().enumerate() {
            granted[*atom] = bits >> position & 1 == 1;
        }
        holds(rule, &granted) == others.iter().all(|other| holds(other, &granted))
    })
}

/// Adds the atoms of a rule.
pub(crate) fn collect_atoms(rule: &Rule, into: &mut BTreeSet<usize>) {
    into.extend(rule.iter().flatten().flatten());
}

struct Reader<'a> {
    names: &'a Names,
    atoms: HashMap<Atom, usize>,
}

impl Reader<'_> {
    fn rule(&mut self, place: &str, directives: &[Applied]) -> Result<Rule, SupergraphError> {
        let mut rule = Rule::new();
        for directive in directives {
            let wrong = || SupergraphError::Authorization {
                place: place.to_owned(),
                directive: directive.name.clone(),
            };
            if self.names.authenticated.contains(&directive.name) {
                rule.push(vec![vec![self.atom(Atom::Authenticated)]]);
            } else if self.names.requires_scopes.contains(&directive.name) {
                let lists = lists(directive, "scopes").ok_or_else(wrong)?;
                rule.push(self.clause(lists, Atom::Scope));
            } else if self.names.policy.contains(&directive.name) {
                let lists = lists(directive, "policies").ok_or_else(wrong)?;
                rule.push(self.clause(lists, Atom::Policy));
            }
        }
        Ok(rule)
    }

    fn clause(&mut self, lists: Vec<Vec<String>>, atom: fn(String) -> Atom) -> Clause {
        let lists = lists.into_iter();
        let lists = lists.map(|list| list.into_iter().map(|it| self.atom(atom(it))).collect());
        lists.collect()
    }

    fn atom(&mut self, atom: Atom) -> usize {
        let next = self.atoms.len();
        *self.atoms.entry(atom).or_insert(next)
    }
}

/// A list of lists of strings. As everywhere in GraphQL, a single value counts as a list with one item. An
/// empty list of alternatives is a mistake, because it can mean that all requests may pass or that no request
/// may.
fn lists(directive: &Applied, name: &str) -> Option<Vec<Vec<String>>> {
    let value = sdl::argument(directive, name)?;
    let text = |value: &Written| match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    let inner = |value: &Written| match value {
        Value::List(items) => items.iter().map(text).collect(),
        one => Some(vec![text(one)?]),
    };
    let lists: Vec<Vec<String>> = match value {
        Value::List(items) => items.iter().map(inner).collect::<Option<_>>()?,
        one => vec![inner(one)?],
    };
    (!lists.is_empty()).then_some(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_known_however_it_is_written() {
        let (one, other): (Rule, Rule) = (vec![vec![vec![0]]], vec![vec![vec![1]]]);
        let in_one_clause: Rule = vec![vec![vec![1, 0]]];
        let in_two_clauses: Rule = vec![vec![vec![0]], vec![vec![1]]];
        let either: Rule = vec![vec![vec![0], vec![1]]];
        for sum in [&in_one_clause, &in_two_clauses] {
            assert!(is_sum(sum, [&one, &other].into_iter()));
            assert!(is_sum(sum, [&one, &either, &other].into_iter()));
            assert!(!is_sum(sum, [&one].into_iter()));
        }
        assert!(!is_sum(&one, [&one, &other].into_iter()));
        assert!(!is_sum(&either, [&one, &other].into_iter()));
        assert!(!is_sum(&one, [].into_iter()));
        // One atom more than the comparison accepts.
        let many: Rule = (0..=COMPARED_MAX).map(|atom| vec![vec![atom]]).collect();
        assert!(!is_sum(&many, [&many].into_iter()));
    }
}
