//! The web tools of a run: `fetch_url` where hosts can be reached, `web_search` where a service is configured.

use std::sync::Arc;

use fusee_model::Connection;
use fusee_tools::host_proxy::HostRules;
use fusee_tools::sandbox::Network;
use fusee_tools::tool::fetch_url::FetchUrl;
use fusee_tools::tool::web_search::WebSearch;
use fusee_tools::web::{ClientFactory, RobotsPolicy, SearchSettings, WebClient};
use fusee_tools::{Tool, Toolbox};
use serde::{Deserialize, Serialize};

use super::RunSpec;
use super::host_gate::RunGate;

/// Web tools that a run offers, journaled with its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSettings {
    /// Whether `fetch_url` is offered. It reaches the hosts that commands can reach.
    pub fetch: bool,
    /// Whether it obeys `robots.txt`.
    #[serde(default)]
    pub robots: RobotsPolicy,
    /// The search service, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSettings>,
}

impl WebSettings {
    /// Whether no tool is offered.
    #[must_use]
    pub fn is_off(&self) -> bool {
        !self.fetch && self.search.is_none()
    }
}

/// What the process provides for the web tools.
#[derive(Clone, Debug, Default)]
pub struct WebDeps {
    /// How HTTPS connections are made: certificates and nothing else.
    pub connection: Connection,
    /// Key of the search service.
    pub search_key: Option<String>,
}

/// Adds the web tools of a run.
pub(super) fn add(toolbox: &mut Toolbox, settings: &RunSpec, deps: WebDeps, gate: &RunGate) {
    let WebSettings { fetch, robots, search } = settings.web.clone();
    let WebDeps { connection, search_key } = deps;
    let clients: ClientFactory = Arc::new(move |url, addresses| {
        let client = match addresses {
            [] => fusee_model::http_client(url.as_str(), &connection),
            addresses => fusee_model::http_client_at(url, addresses, &connection),
        };
        client.map_err(|error| error.to_string())
    });
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if fetch {
        let gate = Arc::new(gate.for_tool("fetch_url"));
        let client = WebClient::new(rules(settings), gate, robots, Arc::clone(&clients));
        tools.push(Arc::new(FetchUrl::new(Arc::new(client))));
    }
    if let Some(search) = search {
        let gate = Arc::new(gate.for_tool("web_search"));
        tools.push(Arc::new(WebSearch::new(search, search_key, clients, gate)));
    }
    for tool in tools {
        // A tool of this name that the user brings is preferred.
        let _ = toolbox.insert(tool);
    }
}

/// The hosts that commands can reach: all of them where the network is open.
fn rules(settings: &RunSpec) -> HostRules {
    let options = &settings.sandbox_options;
    match options.network {
        Network::Machine => HostRules { allow: vec!["*".to_owned()], ask: false },
        Network::Own | Network::Hosts => options.hosts.clone(),
    }
}
