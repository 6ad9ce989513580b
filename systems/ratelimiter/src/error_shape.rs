//! The form of errors about invalid input.

/// How an invalid address or e-mail is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ErrorShape {
    /// As the original does: code `INTERNAL_SERVER_ERROR`.
    Compatible,
    /// As Apollo advises: code `BAD_USER_INPUT`.
    Strict,
}
