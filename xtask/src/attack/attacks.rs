//! The list of attacks.

use std::net::SocketAddr;

use super::dialect::Dialect;

/// Behavior of hostile clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Attack {
    /// Ordinary requests over four connections, as the reference for the attacks.
    Load,
    /// Requests of `slow-reader` over the same number of connections, with clients that read the
    /// responses. This is the reference for `slow-reader`.
    Crowd,
    /// More sockets than descriptors. Each sends a request head that never ends.
    SlowHeader,
    /// More sockets than descriptors. Each sends a request body that never ends.
    SlowBody,
    /// Requests from clients that do not read the responses.
    SlowReader,
    /// More sockets than descriptors, without any data.
    Silent,
    /// More sockets than descriptors. Each sends only the HTTP/2 preface.
    Http2Preface,
    /// HTTP/2 streams that the client cancels immediately.
    Http2Reset,
    /// Requests that two servers can interpret as different requests (request smuggling).
    Smuggling,
    /// One field under 10,000 aliases.
    Aliases,
    /// Operation with 20,000 levels.
    Depth,
    /// One field of a list under 3,000 aliases.
    Width,
    /// Introspection query for types of fields, nested many times.
    Introspection,
    /// 30 aliases over a fragment of 600 fields.
    PlanBomb,
    /// Short queries with responses of 120,000 to millions of fields.
    LargeAnswer,
    /// Entities that refer to each other, eight levels deep.
    Entities,
    /// Numbers of 100,000 digits, in the operation text and in the variables.
    BigNumbers,
    /// JSON objects with duplicate keys: each key twice, and one key 10,000 times.
    DuplicateKeys,
    /// Different operations, up to 100,000.
    Operations,
    /// Operation names of 500 KB.
    OperationNames,
    /// Different aliases in lists, and different operation names, of 90 KB and 300 KB.
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
