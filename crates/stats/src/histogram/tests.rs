//! Claims about histogram.
