//! The limits of services without a setting for them.

/// Deepest nesting that is ever accepted: of brackets in the text, and of selection sets with their
/// fragments. The parser goes no deeper.
pub const NESTING_MAX: usize = 64;

/// Deepest nesting if a service has no setting for it.
///
/// The introspection query of GraphiQL needs 15.
pub const DEPTH_MAX: usize = 32;

/// Maximum number of tokens in one document if a service has no setting for it.
pub const TOKENS_MAX: usize = 4_000;

/// Maximum number of fields in one operation if a service has no setting for it. Fragments count once for
/// each spread.
pub const FIELDS_MAX: usize = 4_000;

/// Longest name in a document, in bytes. A response may repeat a name for each object in a list.
pub const NAME_BYTES_MAX: usize = 256;
