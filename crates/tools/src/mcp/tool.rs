//! Exposes a server's tool as a [`Tool`].

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::client::RequestFailure;
use super::result::answer;
use super::{McpClient, OfferedTool};
use crate::tool::{
    CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};

/// A tool provided by an MCP server.
pub struct McpTool {
    definition: ToolDefinition,
    offered: OfferedTool,
    /// `None` if the server is unavailable: in replays, and in runs whose server is no longer configured.
    server: Option<Arc<McpClient>>,
}

/// A prepared call.
struct McpCall {
    server: Arc<McpClient>,
    arguments: Value,
}

impl McpTool {
    /// Creates the tool for a connected server.
    #[must_use]
    pub fn new(offered: OfferedTool, server: Arc<McpClient>) -> Self {
        Self { server: Some(server), ..Self::disconnected(offered) }
    }

    /// Creates the tool without a server; calls to it fail.
    #[must_use]
    pub fn disconnected(offered: OfferedTool) -> Self {
        Self { definition: definition(&offered), offered, server: None }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn more_names(&self) -> Vec<String> {
        more_names(&self.offered)
    }

    /// The effects of the tool are unknown, so an interrupted call is never repeated.
    fn repeat(&self) -> RetrySafety {
        RetrySafety::Never
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        let prepared = match &self.server {
            Some(server) => {
                let intent = json!({ "server": self.offered.server, "tool": self.offered.tool });
                Ok(PreparedCall::new(intent, McpCall { server: Arc::clone(server), arguments }))
            }
            None => Err(ToolOutput::error(format!(
                "The server `{}` is not configured any more; go on without it.",
                self.offered.server
            ))),
        };
        Box::pin(async { prepared })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let McpCall { server, arguments } = match prepared.into_plan::<McpCall>() {
                Ok(plan) => plan,
                Err(output) => return output,
            };
            let call = server.call(&self.offered.tool, &arguments);
            match context.cancel.run_until_cancelled(call).await {
                None => ToolOutput::aborted("Cancelled; what the server has done until then is not known."),
                Some(Ok(result)) => answer(&result, &context.limits),
                Some(Err(fault)) => ToolOutput::error(self.missing_reason(&fault)),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        _arguments: &'a Value,
        _intent: &'a Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        let words = format!(
            "The run was interrupted during this call of the server `{}`. Whether it happened is not known; it was not made again.",
            self.offered.server
        );
        Box::pin(async move {
            InterruptedOutcome::Unknown(ToolOutput { aborted: true, ..ToolOutput::error(words) })
        })
    }
}

impl McpTool {
    fn missing_reason(&self, fault: &RequestFailure) -> String {
        let (server, words) = (&self.offered.server, fault.describe());
        match fault {
            RequestFailure::Refused(_) => format!("The server `{server}` refused: {words}"),
            RequestFailure::Silent(_) => {
                format!("The server `{server}` gave {words}. Whether the call happened is not known.")
            }
            RequestFailure::Gone(_) => format!(
                "The server `{server}` is not there: {words}. It is started again at the next call; whether this one happened is not known."
            ),
        }
    }
}

fn definition(offered: &OfferedTool) -> ToolDefinition {
    ToolDefinition {
        name: Cow::Owned(offered.name.clone()),
        description: Cow::Owned(offered.description.clone()),
        parameters: offered.parameters.clone(),
        category: offered.category,
        aliases: &[],
        parameter_aliases: &[],
    }
}

/// Alternative spellings of the tool's name that models use.
fn more_names(offered: &OfferedTool) -> Vec<String> {
    let OfferedTool { server, tool, .. } = offered;
    vec![
        format!("{server}__{tool}"),
        format!("mcp__{server}__{tool}"),
        format!("{server}:{tool}"),
        format!("{server}.{tool}"),
        format!("{server}/{tool}"),
    ]
}
