//! Lab files: YAML to a checked experiment, with all mistakes at once.
