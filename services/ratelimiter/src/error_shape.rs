//! The form of errors about invalid input.

/// Form of the error for an invalid address or e-mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ErrorShape {
    /// Form of the original, with the code `INTERNAL_SERVER_ERROR`.
    Compatible,
    /// Form that Apollo recommends, with the code `BAD_USER_INPUT`.
    Strict,
}
