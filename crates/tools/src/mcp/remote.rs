//! Exposes a server's tool as a [`Tool`].

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::answer::answer;
use super::server::LinkFault;
use super::{Offered, Server};
use crate::tool::{CallContext, Definition, Prepared, Repeat, Settled, Tool, ToolOutput};

/// A tool provided by an MCP server.
pub struct Remote {
    definition: Definition,
    offered: Offered,
    /// `None` if the server is unavailable: in replays, and in runs whose server is no longer configured.
    server: Option<Arc<Server>>,
}

/// A prepared call.
struct Plan {
    server: Arc<Server>,
    arguments: Value,
}

impl Remote {
    /// Creates the tool for a connected server.
    #[must_use]
    pub fn new(offered: Offered, server: Arc<Server>) -> Self {
        Self { server: Some(server), ..Self::absent(offered) }
    }

    /// Creates the tool without a server; calls to it fail.
    #[must_use]
    pub fn absent(offered: Offered) -> Self {
        Self { definition: definition(&offered), offered, server: None }
    }
}

impl Tool for Remote {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn more_names(&self) -> Vec<String> {
        more_names(&self.offered)
    }

    /// The effects of the tool are unknown, so an interrupted call is never repeated.
    fn repeat(&self) -> Repeat {
        Repeat::Never
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
        let prepared = match &self.server {
            Some(server) => {
                let intent = json!({ "server": self.offered.server, "tool": self.offered.tool });
                Ok(Prepared::new(intent, Plan { server: Arc::clone(server), arguments }))
            }
            None => Err(ToolOutput::error(format!(
                "The server `{}` is not configured any more; go on without it.",
                self.offered.server
            ))),
        };
        Box::pin(async { prepared })
    }

    fn perform<'a>(&'a self, prepared: Prepared, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Plan { server, arguments } = match prepared.into_plan::<Plan>() {
                Ok(plan) => plan,
                Err(output) => return output,
            };
            let call = server.call(&self.offered.tool, &arguments);
            match context.cancel.run_until_cancelled(call).await {
                None => ToolOutput::aborted("Cancelled; what the server has done until then is not known."),
                Some(Ok(result)) => answer(&result, &context.limits),
                Some(Err(fault)) => ToolOutput::error(self.complaint(&fault)),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        _arguments: &'a Value,
        _intent: &'a Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Settled> {
        let words = format!(
            "The run was interrupted during this call of the server `{}`. Whether it happened is not known; it was not made again.",
            self.offered.server
        );
        Box::pin(async move { Settled::Unknown(ToolOutput { aborted: true, ..ToolOutput::error(words) }) })
    }
}

impl Remote {
    fn complaint(&self, fault: &LinkFault) -> String {
        let (server, words) = (&self.offered.server, fault.words());
        match fault {
            LinkFault::Refused(_) => format!("The server `{server}` refused: {words}"),
            LinkFault::Silent(_) => {
                format!("The server `{server}` gave {words}. Whether the call happened is not known.")
            }
            LinkFault::Gone(_) => format!(
                "The server `{server}` is not there: {words}. It is started again at the next call; whether this one happened is not known."
            ),
        }
    }
}

fn definition(offered: &Offered) -> Definition {
    Definition {
        name: Cow::Owned(offered.name.clone()),
        description: Cow::Owned(offered.description.clone()),
        parameters: offered.parameters.clone(),
        category: offered.category,
        aliases: &[],
        parameter_aliases: &[],
    }
}

/// Alternative spellings of the tool's name that models use.
fn more_names(offered: &Offered) -> Vec<String> {
    let Offered { server, tool, .. } = offered;
    vec![
        format!("{server}__{tool}"),
        format!("mcp__{server}__{tool}"),
        format!("{server}:{tool}"),
        format!("{server}.{tool}"),
        format!("{server}/{tool}"),
    ]
}
