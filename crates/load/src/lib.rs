//! Sends a plan and records what happened.
