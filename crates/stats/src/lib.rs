//! Quantiles, intervals and paired overhead: numbers in, numbers out.
