//! The Tasks extension: a task is a run, and its id is the run's, so it outlives this process.

use rmcp::model::{
    DetailedTask, ElicitRequest, ElicitResult, ErrorData, GetTaskResult, InputRequest, InputRequests,
    InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};

use crate::call_result::result;
use crate::run_state::{RunProgress, RunState};
use crate::runs::{FollowedRun, Runs, rfc3339};

/// How often a client should ask.
const POLL_MS: u64 = 1000;

/// A run as a task.
pub(crate) fn task(state: &RunState) -> Task {
    let status = match state.status {
        RunProgress::Working | RunProgress::Interrupted => TaskStatus::Working,
        RunProgress::Waiting => TaskStatus::InputRequired,
        RunProgress::Completed | RunProgress::Failed => TaskStatus::Completed,
        RunProgress::Cancelled => TaskStatus::Cancelled,
    };
    let (created, updated) = (rfc3339(state.started_ms), rfc3339(state.updated_ms));
    let task = Task::new(&state.run, status, created, updated).with_poll_interval_ms(POLL_MS);
    match &state.doing {
        Some(doing) => task.with_status_message(doing),
        None => task,
    }
}

/// `tasks/get`. An interrupted run is continued.
pub(crate) async fn get(runs: &Runs, id: &str) -> Result<GetTaskResult, ErrorData> {
    let state = find(runs, id).await?.state();
    let payload = match state.status {
        RunProgress::Working | RunProgress::Interrupted => TaskPayload::Working,
        RunProgress::Waiting => TaskPayload::InputRequired { input_requests: input_requests(&state) },
        RunProgress::Cancelled => TaskPayload::Cancelled,
        RunProgress::Completed | RunProgress::Failed => {
            let result = serde_json::to_value(result(&state, true)).unwrap_or_default();
            let result = if let Value::Object(result) = result { result } else { JsonObject::new() };
            TaskPayload::Completed { result }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(&state), payload)))
}

/// `tasks/update`: answers to the questions of a run.
pub(crate) async fn update(runs: &Runs, id: &str, answers: &InputResponses) -> Result<(), ErrorData> {
    let run = find(runs, id).await?;
    apply_answers(&run, answers).await.map_err(|problem| ErrorData::invalid_params(problem, None))
}

/// `tasks/cancel`.
pub(crate) async fn cancel(runs: &Runs, id: &str) -> Result<(), ErrorData> {
    find(runs, id).await?.cancel().await.map_err(|problem| ErrorData::invalid_params(problem, None))
}

async fn find(runs: &Runs, id: &str) -> Result<std::sync::Arc<FollowedRun>, ErrorData> {
    let found = Box::pin(runs.find(id, None)).await;
    found.map_err(|problem| ErrorData::invalid_params(problem, Some(json!({ "taskId": id }))))
}

/// The open questions of a run as requests to the client, by the id of their calls.
pub(crate) fn input_requests(state: &RunState) -> InputRequests {
    let request = |question: &crate::question::OpenQuestion| {
        let request = InputRequest::Elicitation(ElicitRequest::new(question.form()?));
        Some((question.call.clone(), request))
    };
    state.waiting.iter().filter_map(request).collect()
}

/// Applies what the client answered. Answers to questions that are closed by now are ignored: the first one counted.
pub(crate) async fn apply_answers(run: &FollowedRun, answers: &InputResponses) -> Result<(), String> {
    let open = run.state().waiting;
    for (call, answer) in answers {
        let Some(question) = open.iter().find(|question| question.call == *call) else { continue };
        let result: ElicitResult = serde_json::from_value(answer.clone())
            .map_err(|error| format!("the answer to `{call}` is not an elicitation result: {error}"))?;
        if let Some(answer) = question.answer_of_form(&result) {
            run.answer(question, answer).await?;
        }
    }
    Ok(())
}
