//! The retry policy and the two forms of `Retry-After`.
