//! Responses in several parts: deferred fragments and subscriptions.

pub(crate) mod deferred;
pub(crate) mod drain;
pub(crate) mod parts;
pub(crate) mod subscription;
