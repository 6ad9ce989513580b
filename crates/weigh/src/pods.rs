//! Labs whose systems and generators are pods of a cluster.
//!
//! | what | where |
//! |---|---|
//! | what cannot be had there | [`refusal`] |
//! | pods of what is weighed | [`systems`] |
//! | what generators are told | [`told`] |
//! | how they meet | [`meeting`] |
//! | how their results come back | [`result`] |

pub(crate) mod meeting;
pub(crate) mod result;
pub(crate) mod told;
