//! The fusee binary.

fn main() {}
