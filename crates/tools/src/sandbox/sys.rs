//! System calls that the sandbox makes directly: namespaces, processes, process setup.

pub(crate) mod namespaces;
pub(crate) mod process;
pub(crate) mod process_setup;
