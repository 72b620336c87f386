//! One call of a server's tool, with the questions that the server asks on the way: as requests of its own until
//! revision 2025-11-25, as results that ask for input since 2026-07-28.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ElicitRequestParams, ElicitResult, ErrorData,
    InputRequest, InputRequiredResult, InputResponses, ServerResult,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::McpClient;
use super::failure::RequestFailure;
use super::request::{Arrival, Patience, PendingRequest};

/// Maximum time for a call, whatever progress it reports.
const MAX_CALL: Duration = Duration::from_secs(3600);
/// Maximum results of a call that ask for input.
const MAX_ROUNDS: u32 = 10;
/// Wait before a call is repeated whose result asks for time only.
const ROUND_PAUSE: Duration = Duration::from_secs(1);

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
    ) -> Result<Self, RequestFailure> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
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
                self.params.input_responses = Some(std::mem::take(&mut self.responses));
                self.pending = send(&self.server, &self.params).await?;
            }
            let patience = Patience { silence: self.server.settings.timeout, until: self.until };
            match self.server.next(&mut self.pending, patience, progress).await? {
                Arrival::Question(question, reply) => {
                    return Ok(CallStep::Question(question, ReplyTo::Request(reply)));
                }
                Arrival::Answer(result) => match *result {
                    ServerResult::InputRequiredResult(result) => self.repeat(result).await?,
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

    /// Prepares the repetition that a result asks for.
    async fn repeat(&mut self, result: InputRequiredResult) -> Result<(), RequestFailure> {
        let refused = |why: &str| RequestFailure::Refused(ErrorData::invalid_request(why.to_owned(), None));
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(refused("it asks for input again and again"));
        }
        self.params.request_state = result.request_state;
        self.params.input_responses = None;
        for (key, request) in result.input_requests.unwrap_or_default() {
            match request {
                InputRequest::Elicitation(request) => self.inputs.push_back((key, Box::new(request.params))),
                InputRequest::ListRoots(_) => {
                    self.responses.insert(key, json!({ "roots": [] }));
                }
                _ => return Err(refused("it asks for input that this client does not offer")),
            }
        }
        if self.inputs.is_empty() && self.responses.is_empty() {
            tokio::time::sleep(ROUND_PAUSE).await;
            self.pending = send(&self.server, &self.params).await?;
        }
        Ok(())
    }
}

async fn send(server: &McpClient, params: &CallToolRequestParams) -> Result<PendingRequest, RequestFailure> {
    server.send(ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))).await
}
