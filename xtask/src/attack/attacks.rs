//! The list of attacks.

use std::net::SocketAddr;

use super::dialect::Dialect;

/// What hostile clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Attack {
    /// Ordinary requests, as many as four connections carry: what the others are held against.
    Load,
    /// The requests of `slow-reader` from as many connections, whose answers are read: what
    /// `slow-reader` is held against.
    Crowd,
    /// More sockets than descriptors, each with a head that never ends.
    SlowHeader,
    /// The same with bodies.
    SlowBody,
    /// Requests whose answers are not read.
    SlowReader,
    /// More sockets than descriptors that send nothing.
    Silent,
    /// The same with the preface of HTTP/2 and nothing behind it.
    Http2Preface,
    /// Streams that are canceled at once.
    Http2Reset,
    /// Requests that two servers may take for different ones.
    Smuggling,
    /// One field under 10,000 names.
    Aliases,
    /// 20,000 levels.
    Depth,
    /// One field of a list under 3,000 names.
    Width,
    /// Types of fields of types of fields, by introspection.
    Introspection,
    /// 30 aliases over a fragment of 600 fields.
    PlanBomb,
    /// Short queries for answers of 120,000 fields and up to millions.
    LargeAnswer,
    /// Entities that link each other, eight levels deep.
    Entities,
    /// Numbers of 100,000 digits, in the text and in the variables.
    BigNumbers,
    /// Each key twice, and one 10,000 times.
    DuplicateKeys,
    /// Operations that differ, up to 100,000.
    Operations,
    /// Operation names of 500 KB.
    OperationNames,
    /// Aliases in lists and names of operations, of 90 KB and of 300 KB, which differ.
    LongNames,
    /// 1,000 operations in one request.
    Batch,
}

impl Attack {
    /// The value for `--attack`.
    pub(super) fn word(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// True for well-behaved clients. Attacks are compared with them.
    pub(super) fn is_honest(self) -> bool {
        matches!(self, Attack::Load | Attack::Crowd)
    }

    /// True if the attack makes sense without GraphQL.
    fn is_for_all(self) -> bool {
        matches!(
            self,
            Attack::Load
                | Attack::Crowd
                | Attack::SlowHeader
                | Attack::SlowBody
                | Attack::SlowReader
                | Attack::Silent
                | Attack::Http2Preface
                | Attack::Http2Reset
                | Attack::Smuggling
        )
    }

    /// True if the attack applies to a service with this dialect.
    pub(super) fn suits(self, dialect: Option<&Dialect>) -> bool {
        match dialect {
            None => self.is_for_all(),
            // Only a supergraph has entities.
            Some(dialect) => self != Attack::Entities || dialect.is_federated,
        }
    }
}

/// The attacked service.
pub(super) struct Victim<'a> {
    pub(super) address: SocketAddr,
    pub(super) path: &'a str,
    /// The body of a request that gets a good response.
    pub(super) body: &'a str,
    pub(super) dialect: Option<&'a Dialect>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn honest_clients_come_first_since_attacks_are_held_against_them() {
        use clap::ValueEnum as _;
        let all = Attack::value_variants();
        assert!(all.is_sorted_by_key(|attack| !attack.is_honest()));
        let honest: Vec<String> = all
            .iter()
            .filter(|it| it.is_honest())
            .map(|it| it.word())
            .collect();
        assert_eq!(honest, ["load", "crowd"]);
    }
}
