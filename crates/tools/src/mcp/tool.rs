//! Exposes a server's tool as a [`Tool`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::{Value, json};

use super::call::{Call, CallStep, ReplyTo};
use super::failure::RequestFailure;
use super::question::Form;
use super::result::answer;
use super::{McpClient, OfferedTool};
use crate::tool::{
    CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};

/// Shown once after a server announced other tools. The tools of a run are fixed when it starts, because what was sent
/// to a model is not edited.
const TOOLS_CHANGED: &str = "The tools of this server have changed; a new run will use them.\n";
/// Maximum questions of a server during one call; further ones are declined.
const MAX_QUESTIONS: u32 = 10;

/// A tool provided by an MCP server.
pub struct McpTool {
    definition: ToolDefinition,
    offered: OfferedTool,
    /// `None` if the server is unavailable: in replays, and in runs whose server is no longer configured.
    server: Option<Arc<McpClient>>,
    /// Calls that wait for the user, by their ids.
    waiting: WaitingCalls,
}

/// A prepared call.
struct McpCall {
    server: Arc<McpClient>,
    arguments: Value,
}

type WaitingCalls = Arc<Mutex<HashMap<String, WaitingCall>>>;

/// A call that waits for the user's answer.
struct WaitingCall {
    call: Call,
    form: Form,
    reply: ReplyTo,
    questions: u32,
}

/// The rest of a call whose server had a question.
struct AnsweredCall {
    definition: ToolDefinition,
    offered: OfferedTool,
    waiting: WaitingCalls,
    answer: Option<String>,
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
        Self { definition: definition(&offered), offered, server: None, waiting: WaitingCalls::default() }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn extra_aliases(&self) -> Vec<String> {
        extra_aliases(&self.offered)
    }

    fn is_deferred(&self) -> bool {
        self.offered.deferred
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
            if server.take_tools_changed().await {
                (context.progress)(TOOLS_CHANGED);
            }
            let call = async {
                let call =
                    Call::start(&server, &self.offered.tool, arguments, context.trace_parent.as_deref())
                        .await?;
                drive_call(call, 0, &self.offered, &self.waiting, context).await
            };
            ended(Box::pin(context.cancel.run_until_cancelled(call)).await, &self.offered)
        })
    }

    fn answered(&self, _call_id: &str, answer: Option<String>) -> Option<Arc<dyn Tool>> {
        let (definition, offered) = (self.definition.clone(), self.offered.clone());
        Some(Arc::new(AnsweredCall { definition, offered, waiting: Arc::clone(&self.waiting), answer }))
    }

    fn settle<'a>(
        &'a self,
        _arguments: &'a Value,
        _intent: &'a Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        let outcome = InterruptedOutcome::Unknown(interrupted(&self.offered));
        Box::pin(async move { outcome })
    }
}

impl Tool for AnsweredCall {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Never
    }

    fn prepare<'a>(
        &'a self,
        _arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        let waiting = self.waiting.lock().remove(&context.call_id);
        let intent = json!({ "server": self.offered.server, "tool": self.offered.tool });
        let prepared =
            waiting.map(|call| PreparedCall::new(intent, call)).ok_or_else(|| interrupted(&self.offered));
        Box::pin(async { prepared })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let WaitingCall { mut call, mut form, reply, questions } =
                match prepared.into_plan::<WaitingCall>() {
                    Ok(plan) => plan,
                    Err(output) => return output,
                };
            let Some(answer) = form.fill(self.answer.as_deref()) else {
                let waiting = WaitingCall { call, form, reply, questions };
                return ask(waiting, &self.offered, &self.waiting, context);
            };
            call.reply(reply, answer);
            let rest = drive_call(call, questions, &self.offered, &self.waiting, context);
            ended(Box::pin(context.cancel.run_until_cancelled(rest)).await, &self.offered)
        })
    }

    fn answered(&self, _call_id: &str, answer: Option<String>) -> Option<Arc<dyn Tool>> {
        let (definition, offered) = (self.definition.clone(), self.offered.clone());
        Some(Arc::new(Self { definition, offered, waiting: Arc::clone(&self.waiting), answer }))
    }

    fn settle<'a>(
        &'a self,
        _arguments: &'a Value,
        _intent: &'a Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        let outcome = InterruptedOutcome::Unknown(interrupted(&self.offered));
        Box::pin(async move { outcome })
    }
}

/// Waits for the result of a call, or until the server has a question.
async fn drive_call(
    mut call: Call,
    mut questions: u32,
    offered: &OfferedTool,
    waiting: &WaitingCalls,
    context: &CallContext,
) -> Result<ToolOutput, RequestFailure> {
    loop {
        let (question, reply) = match call.next(&*context.progress).await? {
            CallStep::Done(result) => return Ok(answer(&result, &context.limits)),
            CallStep::Question(question, reply) => (question, reply),
        };
        questions += 1;
        match Form::read(&question).filter(|_| questions <= MAX_QUESTIONS) {
            Some(form) => {
                return Ok(ask(WaitingCall { call, form, reply, questions }, offered, waiting, context));
            }
            None => call.reply(reply, ElicitResult::new(ElicitationAction::Decline)),
        }
    }
}

/// Lets the call wait for the user's answer.
fn ask(
    call: WaitingCall,
    offered: &OfferedTool,
    waiting: &WaitingCalls,
    context: &CallContext,
) -> ToolOutput {
    let content = call.form.question(&offered.server);
    waiting.lock().insert(context.call_id.clone(), call);
    ToolOutput { content, asks_user: true, ..ToolOutput::default() }
}

/// The output of a call that ended; `None` if it was cancelled.
fn ended(outcome: Option<Result<ToolOutput, RequestFailure>>, offered: &OfferedTool) -> ToolOutput {
    let (server, failure) = match outcome {
        None => {
            return ToolOutput::aborted("Cancelled; what the server has done until then is not known.");
        }
        Some(Ok(output)) => return output,
        Some(Err(failure)) => (&offered.server, failure),
    };
    let words = failure.describe();
    ToolOutput::error(match failure {
        RequestFailure::Refused(_) => format!("The server `{server}` refused: {words}"),
        RequestFailure::LoginRequired => {
            format!("The server `{server}` wants the user to log in; go on without it.")
        }
        RequestFailure::Silent(_) => {
            format!("The server `{server}` gave {words}. The call may or may not have run.")
        }
        RequestFailure::Gone(_) => format!(
            "The server `{server}` is unreachable: {words}. It is restarted at the next call; this call may or may not have run."
        ),
    })
}

fn interrupted(offered: &OfferedTool) -> ToolOutput {
    let words = format!(
        "The run was interrupted during this call of the server `{}`. It may or may not have run; it was not repeated.",
        offered.server
    );
    ToolOutput { aborted: true, ..ToolOutput::error(words) }
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
fn extra_aliases(offered: &OfferedTool) -> Vec<String> {
    let OfferedTool { server, tool, .. } = offered;
    vec![
        format!("{server}__{tool}"),
        format!("mcp__{server}__{tool}"),
        format!("{server}:{tool}"),
        format!("{server}.{tool}"),
        format!("{server}/{tool}"),
    ]
}
