//! Claims about signed_rank.
