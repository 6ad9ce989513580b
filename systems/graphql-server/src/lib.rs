//! Two GraphQL servers with the same answers.
