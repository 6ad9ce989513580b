//! Builds, starts, limits, readies, watches and stops systems.
