//! The bytes of chat completions.
