//! The limits that hold if a service has no setting for them.

/// Deepest nesting that is ever followed: of brackets in the text, and of selection sets with
/// fragments followed. The parser goes no deeper.
pub const NESTING_MAX: usize = 64;

/// Deepest nesting where a service has no setting for it.
///
/// The introspection query of GraphiQL needs 15.
pub const DEPTH_MAX: usize = 32;

/// Most tokens in one document where a service has no setting for it.
pub const TOKENS_MAX: usize = 4_000;

/// Most fields in one operation, fragments counted once for each place that spreads them, where a
/// service has no setting for it.
pub const FIELDS_MAX: usize = 4_000;

/// Longest name in a document, in bytes: a name can stand in an answer as often as there are objects
/// in a list.
pub const NAME_BYTES_MAX: usize = 256;
