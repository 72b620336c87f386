//! Placeholder until this crate's first part lands.
