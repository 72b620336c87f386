//! Benchmarks of models, prompts and flows.
pub mod case;
pub mod language;
pub mod machine;
pub mod statistics;
pub mod suite;
