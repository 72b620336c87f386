//! One call of a server's tool, with the questions that the server asks on the way: as requests of its own until
//! revision 2025-11-25, as results that ask for input since 2026-07-28.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelTaskParams, CancelTaskRequest, ClientRequest, DetailedTask,
    ElicitRequestParams, ElicitResult, ErrorData, GetTaskParams, GetTaskRequest, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, RequestParamsMeta, ServerResult, Task, TaskPayload,
    UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::McpClient;
use super::failure::RequestFailure;
use super::handler::MAX_LINE;
use super::request::{Arrival, CANCEL_TIMEOUT, Patience, PendingRequest};

/// Maximum time for a call, whatever progress it reports.
const MAX_CALL: Duration = Duration::from_secs(3600);
/// Maximum results of a call that ask for input.
const MAX_ROUNDS: u32 = 10;
/// Wait before a call is repeated whose result asks for time only, and between two looks at a task unless the server
/// says otherwise.
const ROUND_PAUSE: Duration = Duration::from_secs(1);
/// Minimum and maximum time between two looks at a task, whatever the server says.
const TASK_PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));

/// A call in progress; dropping it cancels it.
pub(super) struct Call {
    server: Arc<McpClient>,
    params: CallToolRequestParams,
    pending: PendingRequest,
    /// Questions of the last result that are not answered yet.
    inputs: VecDeque<(String, Box<ElicitRequestParams>)>,
    responses: InputResponses,
    rounds: u32,
    until: Instant,
    /// The task that the server works on instead of answering the call (Tasks extension).
    task: Option<Task>,
    /// Questions of the task that were asked. A server repeats them until it has seen the answers.
    asked: HashSet<String>,
    /// Whether the request in progress is the one that gives answers to the task.
    is_updating: bool,
}

/// What a call has come to.
pub(super) enum CallStep {
    /// The `result` of the response.
    Done(Value),
    /// A question to the user.
    Question(Box<ElicitRequestParams>, ReplyTo),
}

/// Where the answer to a question goes.
pub(super) enum ReplyTo {
    /// To the request of the server.
    Request(oneshot::Sender<ElicitResult>),
    /// Into the repeated call, under this key.
    Input(String),
}

impl Call {
    pub(super) async fn start(
        server: &Arc<McpClient>,
        tool: &str,
        arguments: Value,
        trace_parent: Option<&str>,
    ) -> Result<Self, RequestFailure> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        if let Some(parent) = trace_parent {
            params.set_traceparent(parent);
        }
        params.arguments = match arguments {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        };
        let pending = send(server, &params).await?;
        Ok(Self {
            server: Arc::clone(server),
            params,
            pending,
            inputs: VecDeque::new(),
            responses: InputResponses::new(),
            rounds: 0,
            until: Instant::now() + MAX_CALL,
            task: None,
            asked: HashSet::new(),
            is_updating: false,
        })
    }

    /// Waits for the result or the next question. Progress is passed on as lines.
    pub(super) async fn next(
        &mut self,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<CallStep, RequestFailure> {
        loop {
            if let Some((key, question)) = self.inputs.pop_front() {
                return Ok(CallStep::Question(question, ReplyTo::Input(key)));
            }
            if !self.responses.is_empty() {
                let responses = std::mem::take(&mut self.responses);
                self.pending = match &self.task {
                    Some(task) => {
                        self.is_updating = true;
                        let params = UpdateTaskParams::new(task.task_id.clone(), responses);
                        self.server
                            .send(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params)))
                            .await?
                    }
                    None => {
                        self.params.input_responses = Some(responses);
                        send(&self.server, &self.params).await?
                    }
                };
            }
            let patience = Patience { silence: self.server.settings.timeout, until: self.until };
            match self.server.next(&mut self.pending, patience, progress).await? {
                Arrival::Question(question, reply) => {
                    return Ok(CallStep::Question(question, ReplyTo::Request(reply)));
                }
                // The task has taken the answers to its questions.
                Arrival::Answer(_) if self.is_updating => {
                    self.is_updating = false;
                    if let Some(task) = self.task.clone() {
                        self.poll(task, progress).await?;
                    }
                }
                Arrival::Answer(result) => match *result {
                    ServerResult::InputRequiredResult(result) => self.repeat(result).await?,
                    ServerResult::CreateTaskResult(created) => self.poll(created.task, progress).await?,
                    ServerResult::GetTaskResult(found) => {
                        if let Some(result) = self.follow(found.task, progress).await? {
                            return Ok(CallStep::Done(result));
                        }
                    }
                    result => return Ok(CallStep::Done(serde_json::to_value(result).unwrap_or_default())),
                },
            }
        }
    }

    /// Answers a question.
    pub(super) fn reply(&mut self, to: ReplyTo, answer: ElicitResult) {
        match to {
            ReplyTo::Request(reply) => {
                // The server may have ended meanwhile; the call then says so.
                let _ = reply.send(answer);
            }
            ReplyTo::Input(key) => {
                self.responses.insert(key, serde_json::to_value(answer).unwrap_or_default());
            }
        }
    }

    /// Looks at a task after the pause that its server wants.
    async fn poll(
        &mut self,
        task: Task,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<(), RequestFailure> {
        let news = task.status_message.as_deref().and_then(|text| text.lines().next());
        let known = self.task.as_ref().and_then(|known| known.status_message.as_deref());
        if let Some(text) = news.filter(|_| known != task.status_message.as_deref()) {
            progress(&format!("{}\n", &text[..text.floor_char_boundary(MAX_LINE)]));
        }
        let pause = task.poll_interval_ms.map_or(ROUND_PAUSE, Duration::from_millis);
        let pause = pause.clamp(TASK_PAUSES.0, TASK_PAUSES.1);
        if Instant::now() + pause >= self.until {
            return Err(RequestFailure::Silent(MAX_CALL));
        }
        let params = GetTaskParams::new(task.task_id.clone());
        self.task = Some(task);
        tokio::time::sleep(pause).await;
        self.pending = self.server.send(ClientRequest::GetTaskRequest(GetTaskRequest::new(params))).await?;
        Ok(())
    }

    /// Continues according to the state of a task; its result once there is one.
    async fn follow(
        &mut self,
        found: DetailedTask,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Option<Value>, RequestFailure> {
        match found.payload {
            TaskPayload::Working => self.poll(found.task, progress).await?,
            TaskPayload::InputRequired { mut input_requests } => {
                input_requests.retain(|key, _| self.asked.insert(key.clone()));
                if !input_requests.is_empty() {
                    self.count_round()?;
                    self.take_inputs(input_requests)?;
                }
                if self.inputs.is_empty() && self.responses.is_empty() {
                    self.poll(found.task, progress).await?;
                }
            }
            TaskPayload::Completed { result } => {
                self.task = None;
                return Ok(Some(Value::Object(result)));
            }
            TaskPayload::Failed { error } => {
                self.task = None;
                let error = serde_json::from_value(Value::Object(error));
                return Err(error.map_or_else(|_| refused("its task failed"), RequestFailure::Refused));
            }
            _ => {
                self.task = None;
                return Err(refused("its task was cancelled"));
            }
        }
        Ok(None)
    }

    fn take_inputs(&mut self, requests: InputRequests) -> Result<(), RequestFailure> {
        for (key, request) in requests {
            match request {
                InputRequest::Elicitation(request) => self.inputs.push_back((key, Box::new(request.params))),
                InputRequest::ListRoots(_) => {
                    self.responses.insert(key, json!({ "roots": [] }));
                }
                _ => return Err(refused("it asks for input that this client does not offer")),
            }
        }
        Ok(())
    }

    fn count_round(&mut self) -> Result<(), RequestFailure> {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(refused("it asks for input again and again"));
        }
        Ok(())
    }

    /// Prepares the repetition that a result asks for.
    async fn repeat(&mut self, result: InputRequiredResult) -> Result<(), RequestFailure> {
        self.count_round()?;
        self.params.request_state = result.request_state;
        self.params.input_responses = None;
        self.take_inputs(result.input_requests.unwrap_or_default())?;
        if self.inputs.is_empty() && self.responses.is_empty() {
            tokio::time::sleep(ROUND_PAUSE).await;
            self.pending = send(&self.server, &self.params).await?;
        }
        Ok(())
    }
}

/// A task that nobody waits for any longer is cancelled on its server.
impl Drop for Call {
    fn drop(&mut self) {
        let (Some(task), Ok(runtime)) = (self.task.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let server = Arc::clone(&self.server);
        runtime.spawn(async move {
            let request = CancelTaskRequest::new(CancelTaskParams::new(task.task_id));
            let told = async {
                let mut pending = server.send(ClientRequest::CancelTaskRequest(request)).await?;
                let patience = Patience { silence: CANCEL_TIMEOUT, until: Instant::now() + CANCEL_TIMEOUT };
                server.next(&mut pending, patience, &|_| {}).await
            };
            // A server that does not read cannot be told.
            let _ = timeout(CANCEL_TIMEOUT, told).await;
        });
    }
}

fn refused(why: &str) -> RequestFailure {
    RequestFailure::Refused(ErrorData::invalid_request(why.to_owned(), None))
}

async fn send(server: &McpClient, params: &CallToolRequestParams) -> Result<PendingRequest, RequestFailure> {
    server.send(ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))).await
}
