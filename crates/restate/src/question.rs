//! Questions of a run to its user. They are durable promises of the run's workflow, so an answer from any machine
//! reaches the worker that works on the run then, and the first answer counts. Both ends derive the name of the promise
//! from the run's events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fusee::approval::{ApprovalQuestion, OutsideAnswer, signal_name};
use fusee::engine::run::RunControl;
use fusee::journal::{Branch, Event, EventRecord, EventStream, Journal, JournalError, RunId};
use fusee::{Approver, system};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::{Engine, EngineError, RemoteRun};

/// Name of the questions that are answered with a text.
const ASK_USER: &str = "ask_user";

/// Events read at a time.
const PAGE: usize = 256;

/// How often an answer is offered to a program that has not come to its question yet.
const OFFER: Duration = Duration::from_millis(20);

/// A question is put to the user after this time: events of the past may show that it was answered.
const SETTLE: Duration = Duration::from_millis(200);

/// A question that waits for an answer.
#[derive(Clone, Debug)]
pub struct RemoteQuestion {
    /// The task that asks.
    pub task: Branch,
    /// What it asks.
    pub question: ApprovalQuestion,
    /// How many questions about the same call were answered before.
    round: u64,
}

impl RemoteQuestion {
    /// Whether it is answered with a text, and not with an approval.
    pub fn is_text(&self) -> bool {
        self.question.name == ASK_USER
    }

    /// Name of the promise that holds the answer. A worker that takes the run over asks again under the same name.
    fn promise(&self) -> String {
        format!("answer {} {} {}", self.round, self.task, self.question.call_id)
    }
}

/// The open questions of a run, from its events.
#[derive(Clone, Debug, Default)]
pub struct QuestionList {
    open: Vec<RemoteQuestion>,
    answered: HashMap<(Branch, String), u64>,
    seq: u64,
}

impl QuestionList {
    /// Reads all events of a journal.
    pub fn read(journal: &Journal, run: &RunId) -> Result<Self, JournalError> {
        let mut list = Self::default();
        loop {
            let events = journal.events(run, list.seq, u64::MAX, PAGE)?;
            if events.is_empty() {
                return Ok(list);
            }
            events.iter().for_each(|event| list.add(event));
        }
    }

    /// The open questions, oldest first.
    pub fn open(&self) -> &[RemoteQuestion] {
        &self.open
    }

    /// Adds the next event.
    pub fn add(&mut self, record: &EventRecord) {
        self.seq = self.seq.max(record.seq);
        let task = &record.task;
        match &record.event {
            Event::ApprovalRequested { call_id, name, arguments, reason } => {
                let key = (task.clone(), call_id.clone());
                let round = self.answered.get(&key).copied().unwrap_or_default();
                self.close(task, call_id);
                let question = ApprovalQuestion {
                    call_id: call_id.clone(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    reason: reason.clone(),
                };
                self.open.push(RemoteQuestion { task: task.clone(), question, round });
            }
            Event::ApprovalResolved { call_id, .. } => {
                *self.answered.entry((task.clone(), call_id.clone())).or_default() += 1;
                self.close(task, call_id);
            }
            Event::TaskComplete(_) if *task == Branch::main() => self.open.clear(),
            _ => {}
        }
    }

    fn close(&mut self, task: &Branch, call_id: &str) {
        self.open.retain(|open| open.task != *task || open.question.call_id != call_id);
    }
}

/// An answer on its way to a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GivenAnswer {
    /// Name of the promise.
    pub(crate) promise: String,
    /// Tells this answer from others to the same question.
    pub(crate) id: String,
    /// The answer; nothing if the question is over without one.
    pub(crate) value: Option<Value>,
}

impl RemoteRun {
    /// Answers a question. Returns false if it was answered before, or is over.
    pub async fn answer(
        &self,
        question: &RemoteQuestion,
        answer: &OutsideAnswer,
    ) -> Result<bool, EngineError> {
        let value =
            serde_json::to_value(answer).map_err(|error| EngineError::Unreadable(error.to_string()))?;
        self.engine.answer(&self.run, &given(question, Some(value))?).await
    }

    /// Puts the questions of a run to the user of this process as they come, and sends the answers. Ends with the run.
    pub async fn converse(
        self,
        mut events: EventStream,
        approver: Arc<dyn Approver>,
    ) -> Result<(), EngineError> {
        let mut list = QuestionList::default();
        loop {
            let Some(question) = list.open().first().cloned() else {
                match events.next().await? {
                    Some(event) => list.add(&event),
                    None => return Ok(()),
                }
                continue;
            };
            let asked = async {
                tokio::time::sleep(SETTLE).await;
                ask(&question, &*approver).await
            };
            let mut asked = std::pin::pin!(asked);
            let promise = question.promise();
            loop {
                tokio::select! {
                    biased;
                    event = events.next() => match event? {
                        Some(event) => list.add(&event),
                        None => return Ok(()),
                    },
                    answer = &mut asked => {
                        // Nobody is there any more.
                        let Some(answer) = answer else { return Ok(()) };
                        self.answer(&question, &answer).await?;
                        list.close(&question.task, &question.question.call_id);
                    }
                }
                // Whoever answered: the next question may be asked.
                if !list.open().iter().any(|open| open.promise() == promise) {
                    break;
                }
            }
        }
    }
}

fn given(question: &RemoteQuestion, value: Option<Value>) -> Result<GivenAnswer, EngineError> {
    let id = system::new_run_id().map_err(|error| EngineError::Unreadable(error.to_string()))?;
    Ok(GivenAnswer { promise: question.promise(), id: id.to_string(), value })
}

async fn ask(question: &RemoteQuestion, approver: &dyn Approver) -> Option<OutsideAnswer> {
    if question.is_text() {
        let text = question.question.arguments["question"].as_str().unwrap_or_default();
        return approver.ask_user(text).await.map(OutsideAnswer::Text);
    }
    Some(OutsideAnswer::Approval(approver.ask(&question.question).await))
}

/// Fetches the answers to the questions of a run that this worker works on, until the run ends here.
pub(crate) async fn fetch_answers(engine: Engine, journal: Journal, control: RunControl) {
    let run = control.id().clone();
    let Ok(mut list) = QuestionList::read(&journal, &run) else { return };
    let mut events = control.events_after(list.seq);
    let mut waits: HashMap<String, OpenWait> = HashMap::new();
    loop {
        for question in list.open() {
            waits.entry(question.promise()).or_insert_with(|| {
                let fetch = fetch_answer(engine.clone(), control.clone(), question.clone());
                OpenWait { question: question.clone(), fetch: tokio::spawn(fetch).abort_handle() }
            });
        }
        let over: Vec<String> = waits.keys().filter(|name| !list.is_open(name)).cloned().collect();
        for wait in over.iter().filter_map(|name| waits.remove(name)) {
            // An answer that comes too late is told so, and nothing on the engine waits for it any more.
            if let Ok(closing) = given(&wait.question, None) {
                let (engine, run) = (engine.clone(), run.clone());
                tokio::spawn(async move { engine.answer(&run, &closing).await });
            }
        }
        match events.next().await {
            Ok(Some(event)) => list.add(&event),
            Ok(None) | Err(_) => return,
        }
    }
}

/// A question whose answer is being fetched. Dropping it stops that.
struct OpenWait {
    question: RemoteQuestion,
    fetch: AbortHandle,
}

impl Drop for OpenWait {
    fn drop(&mut self) {
        self.fetch.abort();
    }
}

impl QuestionList {
    fn is_open(&self, promise: &str) -> bool {
        self.open.iter().any(|open| open.promise() == promise)
    }
}

/// Waits for an answer and hands it to the program.
async fn fetch_answer(engine: Engine, control: RunControl, question: RemoteQuestion) {
    let Ok(Some(value)) = engine.answered(control.id(), &question.promise()).await else { return };
    let signal = signal_name(&question.task, &question.question.call_id);
    while !control.is_ended() && !control.answer_signal(&signal, &value) {
        tokio::time::sleep(OFFER).await;
    }
}

#[cfg(test)]
mod tests;
