//! Whole-system claims.
