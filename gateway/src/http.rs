//! The HTTP side of a request, from its head to the bytes of its response.

pub(crate) mod account;
pub(crate) mod admission;
mod compression;
pub(crate) mod connections;
pub(crate) mod cors;
pub(crate) mod csrf;
pub(crate) mod detached;
pub(crate) mod entrance;
pub(crate) mod front;
pub(crate) mod health;
pub(crate) mod invalidation;
pub(crate) mod observed;
pub(crate) mod outgoing;
mod page;
pub(crate) mod path;
mod received_body;
pub(crate) mod reply;
pub(crate) mod spans;
pub(crate) mod summary;
pub(crate) mod tls;
