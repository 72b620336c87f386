//! Tool calls: starting runs, waiting for them, answering them. `wait.rs` does the waiting.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fusee::launch::{LaunchRequest, LaunchWork};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, ErrorData,
    InputRequiredResult, JsonObject,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::arguments::{
    AnswerArguments, NamedRunArguments, ReplyArguments, ReviewArguments, RunArguments, RunsArguments,
    WaitArguments, default_wait, wait,
};
use crate::call_result::result;
use crate::question::given_answer;
use crate::run_state::RunProgress;
use crate::runs::{FollowedRun, RunList, Runs};
use crate::task_tools::task_tools;
use crate::tasks;
use crate::tool_list::FixedTool;
use crate::wait::{OnCancel, Waiting, can_ask_by_result, has_tasks};

/// Prefix of the request state that names the run of a repeated call.
const RUN_STATE: &str = "run:";
/// How long a client that polls tasks waits for a run that ends at once.
const TASK_GRACE: Duration = Duration::from_millis(300);
/// How long a cancelled run may take to end before its state is returned.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// Performs the tool calls of a server.
pub(crate) struct ToolCalls {
    runs: Arc<Runs>,
    room: Semaphore,
}

/// A run that a call has started or found, and how to wait for it.
struct Target {
    run: Arc<FollowedRun>,
    limit: Duration,
    on_cancel: OnCancel,
    /// Whether the answer is JSON that belongs into the result.
    has_output: bool,
}

impl ToolCalls {
    pub(crate) fn new(runs: Arc<Runs>, room: Semaphore) -> Self {
        Self { runs, room }
    }

    /// Performs a call. A failure of the tool is a result with `isError`.
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_permit) = self.room.try_acquire() else {
            return Ok(error("too many tool calls are in progress; wait for some of them").into());
        };
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let arguments = arguments.unwrap_or_default();
        if FixedTool::named(&name) == Some(FixedTool::Runs) {
            return Ok(self.list(arguments).unwrap_or_else(|problem| error(&problem)).into());
        }
        let started = match request_state.as_deref().and_then(|state| state.strip_prefix(RUN_STATE)) {
            // The client repeats the call with the answers that it was asked for.
            Some(run) => self.repeated(run, &name, &input_responses.unwrap_or_default()).await,
            None => self.target(&name, arguments).await?,
        };
        match started {
            Ok(target) => Ok(respond(target, &context).await),
            Err(problem) => Ok(error(&problem).into()),
        }
    }

    /// The run that a call is about. The outer error is an unknown tool.
    async fn target(&self, name: &str, arguments: JsonObject) -> Result<Result<Target, String>, ErrorData> {
        let Some(tool) = FixedTool::named(name) else {
            return Box::pin(self.start_task(name, arguments)).await;
        };
        Ok(match tool {
            FixedTool::Run => self.run(arguments).await,
            FixedTool::Wait => self.wait(arguments).await,
            FixedTool::Reply => self.reply(arguments).await,
            FixedTool::Answer => self.answer(arguments).await,
            FixedTool::Review => self.review(arguments).await,
            FixedTool::Cancel => self.cancel(arguments).await,
            FixedTool::Status | FixedTool::Runs => self.status(arguments).await,
        })
    }

    async fn run(&self, arguments: JsonObject) -> Result<Target, String> {
        let RunArguments { request, directory, model, flow, verify, limits, wait_s } = parse(arguments)?;
        check_request(&request)?;
        let request = LaunchRequest {
            work: LaunchWork::Request(request),
            directory,
            model,
            flow,
            verify,
            limits: limits.unwrap_or_default(),
            ..LaunchRequest::default()
        };
        self.start(request, wait(wait_s)).await
    }

    async fn reply(&self, arguments: JsonObject) -> Result<Target, String> {
        let ReplyArguments { run, request, directory, wait_s } = parse(arguments)?;
        check_request(&request)?;
        let earlier = self.runs.find(&run, directory.as_deref()).await?;
        if !earlier.state().status.has_ended() {
            return Err(format!("run {} has not ended; wait for it or cancel it first", earlier.id()));
        }
        let request = LaunchRequest {
            work: LaunchWork::Request(request),
            directory,
            continues: Some(earlier.id().clone()),
            ..LaunchRequest::default()
        };
        self.start(request, wait(wait_s)).await
    }

    async fn review(&self, arguments: JsonObject) -> Result<Target, String> {
        let ReviewArguments { request, base, paths, directory, model, wait_s } = parse(arguments)?;
        let work = LaunchWork::Review { request: request.unwrap_or_default(), base, paths };
        let request = LaunchRequest { work, directory, model, ..LaunchRequest::default() };
        self.start(request, wait(wait_s)).await
    }

    /// Starts a template or workflow by the name of its tool.
    async fn start_task(&self, tool: &str, inputs: JsonObject) -> Result<Result<Target, String>, ErrorData> {
        let launcher = self.runs.launcher();
        let tools = match task_tools(launcher, launcher.directory()) {
            Ok(tools) => tools,
            Err(problem) => return Ok(Err(problem)),
        };
        let Some(found) = tools.into_iter().find(|known| known.name == tool) else {
            return Err(ErrorData::invalid_params(format!("unknown tool `{}`", shortened(tool)), None));
        };
        let has_output = found.task.output_schema.is_some();
        let work = LaunchWork::Named { name: found.task.name, inputs };
        let started = self.start(LaunchRequest { work, ..LaunchRequest::default() }, default_wait()).await;
        Ok(started.map(|target| Target { has_output, ..target }))
    }

    async fn start(&self, request: LaunchRequest, limit: Duration) -> Result<Target, String> {
        let run = Box::pin(self.runs.start(request)).await?;
        Ok(Target { run, limit, on_cancel: OnCancel::CancelRun, has_output: false })
    }

    async fn wait(&self, arguments: JsonObject) -> Result<Target, String> {
        let WaitArguments { run, directory, wait_s } = parse(arguments)?;
        self.found(&run, directory.as_deref(), wait(wait_s)).await
    }

    async fn status(&self, arguments: JsonObject) -> Result<Target, String> {
        let NamedRunArguments { run, directory } = parse(arguments)?;
        self.found(&run, directory.as_deref(), Duration::ZERO).await
    }

    async fn cancel(&self, arguments: JsonObject) -> Result<Target, String> {
        let NamedRunArguments { run, directory } = parse(arguments)?;
        let target = self.found(&run, directory.as_deref(), CANCEL_WAIT).await?;
        target.run.cancel().await?;
        Ok(target)
    }

    async fn answer(&self, arguments: JsonObject) -> Result<Target, String> {
        let AnswerArguments { run, call, approve, text, directory, wait_s } = parse(arguments)?;
        let target = self.found(&run, directory.as_deref(), wait(wait_s)).await?;
        let waiting = target.run.state().waiting;
        let question = match &call {
            Some(call) => waiting.iter().find(|question| question.call == *call),
            None => waiting.first(),
        };
        let Some(question) = question else {
            return Err(format!("run {} does not wait for this answer; it may have been given already", run));
        };
        let answer = given_answer(question, approve, text)?;
        if !target.run.answer(question, answer).await? {
            return Err(format!("the question of call {} has been answered already", question.call));
        }
        Ok(target)
    }

    async fn found(&self, run: &str, directory: Option<&Path>, limit: Duration) -> Result<Target, String> {
        let run = Box::pin(self.runs.find(run, directory)).await?;
        Ok(Target { run, limit, on_cancel: OnCancel::StopWaiting, has_output: false })
    }

    /// A call that the client repeats with the answers to the run's questions.
    async fn repeated(
        &self,
        run: &str,
        tool: &str,
        answers: &rmcp::model::InputResponses,
    ) -> Result<Target, String> {
        let target = self.found(run, None, default_wait()).await?;
        tasks::apply_answers(&target.run, answers).await?;
        let has_output = FixedTool::named(tool).is_none();
        Ok(Target { has_output, ..target })
    }

    fn list(&self, arguments: JsonObject) -> Result<CallToolResult, String> {
        let RunsArguments { directory, limit } = parse(arguments)?;
        let runs = self.runs.list(directory.as_deref(), limit.clamp(1, 200))?;
        let lines: Vec<String> = runs
            .iter()
            .map(|run| {
                let status = serde_json::to_value(run.status).unwrap_or_default();
                format!("{} {} {}", run.run, status.as_str().unwrap_or_default(), run.title)
            })
            .collect();
        let text = if lines.is_empty() { "No runs.".to_owned() } else { lines.join("\n") };
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = serde_json::to_value(RunList { runs }).ok();
        Ok(result)
    }
}

/// Waits for the run of a call and answers with its state.
async fn respond(target: Target, context: &RequestContext<RoleServer>) -> CallToolResponse {
    let Target { run, limit, on_cancel, has_output } = target;
    let as_task = has_tasks(context) && on_cancel == OnCancel::CancelRun;
    let limit = if as_task { limit.min(TASK_GRACE) } else { limit };
    let state = Waiting { run: &run, limit, on_cancel, context }.end().await;
    if as_task && !state.status.has_ended() {
        return CallToolResponse::Task(CreateTaskResult::new(tasks::task(&state)));
    }
    if state.status == RunProgress::Waiting && can_ask_by_result(context) {
        let requests = tasks::input_requests(&state);
        let request_state = Some(format!("{RUN_STATE}{}", state.run));
        return InputRequiredResult::new(Some(requests), request_state).into();
    }
    result(&state, has_output).into()
}

fn error(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

fn parse<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("invalid arguments: {error}"))
}

fn check_request(request: &str) -> Result<(), String> {
    if request.trim().is_empty() { Err("the request is empty".to_owned()) } else { Ok(()) }
}

/// A name from a client, made safe for a message.
fn shortened(name: &str) -> String {
    name.chars().take(100).map(|c| if c.is_control() { '?' } else { c }).collect()
}
