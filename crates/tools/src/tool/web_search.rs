//! `web_search`: results of the search service that the user configured. `crate::web` speaks to it.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fetch_url::enclose;
use crate::host_proxy::{HostGate, ProxyError};
use crate::tool::read_tool::typed;
use crate::tool::{Access, CallContext, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput};
use crate::web::{ClientFactory, SearchHit, SearchSettings};

/// Results unless the call sets a number, and the maximum.
const DEFAULT_COUNT: usize = 5;
const MAX_COUNT: usize = 20;

/// Asks the configured search service.
pub struct WebSearch {
    definition: ToolDefinition,
    settings: SearchSettings,
    key: Option<String>,
    clients: ClientFactory,
    gate: Arc<dyn HostGate>,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    count: Option<usize>,
}

impl WebSearch {
    /// The tool on a service. The user named its address, so no rule has to allow it; `gate` learns of it.
    #[must_use]
    pub fn new(
        settings: SearchSettings,
        key: Option<String>,
        clients: ClientFactory,
        gate: Arc<dyn HostGate>,
    ) -> Self {
        Self { definition: definition(), settings, key, clients, gate }
    }

    async fn search(&self, query: &str, count: usize) -> Result<Vec<SearchHit>, String> {
        let url = self.settings.endpoint().map_err(|error| error.to_string())?;
        let client = (self.clients)(&url, &[])?;
        let found = self.settings.search(&client, self.key.as_deref(), query, count).await;
        let reached = found.as_ref().map(drop).map_err(|error| ProxyError::Failed(error.to_string()));
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
        self.gate.report(host, port.unwrap_or_default(), &reached);
        found.map_err(|error| error.to_string())
    }
}

/// The tool as a model sees it.
#[must_use]
pub fn definition() -> ToolDefinition {
    ToolDefinition {
        name: Cow::Borrowed("web_search"),
        description: Cow::Borrowed("Searches the web: title, address and excerpt of each result."),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "minLength": 1, "description": "Words to search for" },
                "count": { "type": "integer", "minimum": 1, "maximum": MAX_COUNT, "description": "Most results, 5 if left out" }
            },
            "required": ["query"],
            "additionalProperties": false
        }),
        category: Access::Read,
        aliases: &["system:web_search", "WebSearch", "search_web"],
        parameter_aliases: &[("q", "query"), ("max_results", "count"), ("limit", "count")],
    }
}

impl Tool for WebSearch {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Idempotent
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async { Ok(PreparedCall::new(Value::Null, typed::<Arguments>(arguments)?)) })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Arguments { query, count } = match prepared.into_plan() {
                Ok(arguments) => arguments,
                Err(output) => return output,
            };
            let count = count.unwrap_or(DEFAULT_COUNT).min(MAX_COUNT);
            match context.cancel.run_until_cancelled(Box::pin(self.search(&query, count))).await {
                None => ToolOutput::aborted("Cancelled before there were results."),
                Some(Err(problem)) => ToolOutput::error(format!("Not searched: {problem}.")),
                Some(Ok(hits)) if hits.is_empty() => ToolOutput::done("Nothing was found; try other words."),
                Some(Ok(hits)) => ToolOutput::done(enclose(&listed(&hits))),
            }
        })
    }
}

fn listed(hits: &[SearchHit]) -> String {
    let entry =
        |(n, hit): (usize, &SearchHit)| format!("{}. {}\n   {}\n   {}", n + 1, hit.title, hit.url, hit.text);
    hits.iter().enumerate().map(entry).collect::<Vec<_>>().join("\n")
}
