//! Explains failures of commands that needed the network, which the sandbox blocks. The programs themselves only say that
//! a name cannot be resolved or a host cannot be reached, which sends a reader looking in the wrong place.

use crate::sandbox::Network;

/// The note, without its brackets.
pub const NETWORK_BLOCKED: &str = "the sandbox blocks the network: only the command's own loopback can be reached; \
    only the user can allow more, with sandbox.network = \"on\"";

/// The note where some hosts can be reached.
const HOST_BLOCKED: &str = "commands reach only the hosts that the user allows, through the proxy that http_proxy and \
    https_proxy name; only the user can allow more, with network.allow";

/// What programs print when a name or a host cannot be reached at all.
const SIGNS: &[&str] = &[
    "could not resolve",
    "couldn't resolve",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "no address associated with hostname",
    "failed to lookup address",
    "unable to resolve host",
    "no such host",
    "getaddrinfo",
    "eai_again",
    "enetunreach",
    "network is unreachable",
    "network unreachable",
    "is not one of the allowed hosts",
    "connect tunnel failed, response 403",
    "tunnel connection failed: 403",
];

/// Appends the note to the output of a failed command if the output shows that it needed the network.
pub(super) fn explain_block(network: Network, content: &mut String) {
    let note = match network {
        Network::Own => NETWORK_BLOCKED,
        Network::Hosts => HOST_BLOCKED,
        Network::Machine => return,
    };
    let said = content.to_lowercase();
    if SIGNS.iter().any(|sign| said.contains(sign)) {
        content.push_str(&format!("\n[{note}]"));
    }
}
