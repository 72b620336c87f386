//! A session: a chain of runs in one directory. The first run has the session's id, the next ones `ID.2`, `ID.3` and so
//! on, so that the chain can be found in the journal by another process.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AvailableCommandsUpdate, ConfigOptionUpdate, CurrentModeUpdate, Error, PromptResponse,
    SessionConfigOption, SessionModeState, SessionUpdate, StopReason,
};
use fusee::ApprovalMode;
use fusee::approval::OutsideAnswer;
use fusee::engine::run::settings_of;
use fusee::engine::tools::OpenDocuments;
use fusee::journal::{Journal, RunId, RunRow, RunStatus};
use fusee::launch::{LaunchMcpServer, LaunchRequest, LaunchWork, Launcher, NamedTask, ResumeRequest};
use fusee::model::{CancellationToken, Image};
use parking_lot::Mutex;

use crate::command::{self, Meaning};
use crate::connection::{Connection, failed, invalid};
use crate::permission::ClientApprover;
use crate::prompt::PromptText;
use crate::report::{self, SessionReport};
use crate::session_output::SessionOutput;
use crate::settings::SessionSettings;
use crate::turn::{RunInProgress, TurnEnd};
use crate::update::{UpdateMapper, Viewing, chunk};

/// Events read from the journal at a time.
const PAGE: usize = 256;
/// Prompts of a session that wait for the one before.
const MAX_TURNS: usize = 8;

/// A conversation with a client.
pub(crate) struct Session {
    cwd: PathBuf,
    /// MCP servers of the client.
    servers: Vec<LaunchMcpServer>,
    /// What is open in the client's editor, if the client offers that.
    documents: Option<Arc<dyn OpenDocuments>>,
    launcher: Arc<dyn Launcher>,
    output: SessionOutput,
    state: Mutex<SessionState>,
    /// Held by the turn that works.
    work: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct SessionState {
    settings: SessionSettings,
    /// The run that the next one continues.
    last: Option<RunId>,
    /// Runs of the session so far.
    runs: u32,
    /// Turns that work or wait, by what cancels them.
    turns: Vec<CancellationToken>,
    /// A run whose question the next prompt answers.
    asked: Option<Box<RunInProgress>>,
}

/// A turn that was announced; it ends when this is dropped.
pub(crate) struct TurnTicket {
    session: Arc<Session>,
    cancel: CancellationToken,
}

impl Drop for TurnTicket {
    fn drop(&mut self) {
        // A token is recognised by being cancelled: nobody else looks at it afterwards.
        self.cancel.cancel();
        self.session.state.lock().turns.retain(|token| !token.is_cancelled());
    }
}

impl Session {
    /// A new session without runs.
    pub(crate) fn new(
        id: String,
        cwd: PathBuf,
        servers: Vec<LaunchMcpServer>,
        launcher: Arc<dyn Launcher>,
        connection: Arc<Connection>,
        documents: Option<Arc<dyn OpenDocuments>>,
    ) -> Arc<Self> {
        let (state, work) = (Mutex::default(), tokio::sync::Mutex::default());
        let output = SessionOutput { connection, session: id };
        Arc::new(Self { cwd, servers, documents, launcher, output, state, work })
    }

    /// Announces a turn, so that it can be cancelled from now on.
    pub(crate) fn announce(self: &Arc<Self>) -> Result<TurnTicket, Error> {
        let mut state = self.state.lock();
        if state.turns.len() >= MAX_TURNS {
            return Err(invalid("too many prompts wait for this session"));
        }
        let cancel = CancellationToken::new();
        state.turns.push(cancel.clone());
        Ok(TurnTicket { session: Arc::clone(self), cancel })
    }

    /// Cancels all turns.
    pub(crate) fn cancel(&self) {
        let mut state = self.state.lock();
        state.turns.iter().for_each(CancellationToken::cancel);
        if let Some(asked) = state.asked.take() {
            asked.handle.cancel();
        }
    }

    async fn update(&self, update: SessionUpdate) {
        self.output.update(update).await;
    }

    /// The config options as the client shows them.
    pub(crate) fn options(&self) -> Vec<SessionConfigOption> {
        // Without the list of models the client can still choose everything else.
        let models = self.launcher.models(&self.cwd).unwrap_or_default();
        self.state.lock().settings.options(&models, self.approval())
    }

    /// The modes as the client shows them.
    pub(crate) fn modes(&self) -> SessionModeState {
        self.state.lock().settings.modes(self.approval())
    }

    /// The configured approval mode.
    fn approval(&self) -> ApprovalMode {
        // A configuration that cannot be read is reported when a run starts.
        self.launcher.approval(&self.cwd).unwrap_or_default()
    }

    /// Sets the mode and tells the client about the option that shows the same.
    pub(crate) async fn set_mode(&self, mode: &str) -> Result<(), Error> {
        self.state.lock().settings.set_mode(mode)?;
        self.update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.options()))).await;
        Ok(())
    }

    /// Sets a config option.
    pub(crate) async fn set_option(&self, id: &str, value: &str) -> Result<Vec<SessionConfigOption>, Error> {
        let (before, after) = {
            let mut state = self.state.lock();
            let before = state.settings.approve;
            state.settings.set(id, value)?;
            (before, state.settings.approve)
        };
        if before != after {
            let mode = self.modes().current_mode_id;
            self.update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))).await;
        }
        Ok(self.options())
    }

    /// Tells the client which commands there are.
    pub(crate) async fn send_commands(&self) {
        let commands = command::available(&self.tasks(), &self.launcher.markdown_commands(&self.cwd));
        self.update(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))).await;
    }

    fn tasks(&self) -> Vec<NamedTask> {
        // Templates that cannot be read are reported by `fusee check`; the session works without them.
        self.launcher.tasks(&self.cwd).unwrap_or_default()
    }

    /// Answers a prompt.
    pub(crate) async fn prompt(
        self: &Arc<Self>,
        ticket: TurnTicket,
        prompt: PromptText,
    ) -> Result<PromptResponse, Error> {
        let cancel = ticket.cancel.clone();
        let Some(_work) = cancel.run_until_cancelled(self.work.lock()).await else {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        };
        let asked = self.state.lock().asked.take();
        if let Some(run) = asked {
            run.handle.answer(None, &OutsideAnswer::Text(prompt.text));
            return self.turn(*run, &cancel).await;
        }
        let commands = self.launcher.markdown_commands(&self.cwd);
        let work = match command::meaning(&prompt.text, &self.tasks(), &commands) {
            Meaning::Run(work) => work,
            Meaning::Markdown => {
                let request = self.launcher.expand_command(&self.cwd, &prompt.text);
                LaunchWork::Request(request.ok_or_else(|| failed("the command was removed"))?)
            }
            Meaning::Reply(text) => return Ok(self.reply(&text).await),
            Meaning::Report(report) => {
                let text = self.report(report).unwrap_or_else(|error| error.message);
                return Ok(self.reply(&text).await);
            }
            Meaning::Setting { id, value } => {
                let text = self.setting(id, value.as_deref()).await;
                return Ok(self.reply(&text).await);
            }
        };
        let run = self.start(work, prompt.background, prompt.images).await?;
        self.turn(run, &cancel).await
    }

    async fn reply(&self, text: &str) -> PromptResponse {
        self.update(SessionUpdate::AgentMessageChunk(chunk(text))).await;
        PromptResponse::new(StopReason::EndTurn)
    }

    async fn setting(&self, id: &'static str, value: Option<&str>) -> String {
        if let Some(value) = value
            && let Err(error) = self.set_option(id, value).await
        {
            return format!("{}: {value}", error.message);
        }
        let options = self.options();
        if value.is_some() {
            let update = ConfigOptionUpdate::new(options.clone());
            self.update(SessionUpdate::ConfigOptionUpdate(update)).await;
        }
        let shown = options.iter().find(|option| *option.id.0 == *id).map(|option| &option.kind);
        let value = serde_json::to_value(shown).unwrap_or_default();
        format!("{id}: {}", value["currentValue"].as_str().unwrap_or("default"))
    }

    fn report(&self, wanted: SessionReport) -> Result<String, Error> {
        let count = self.state.lock().runs;
        let runs = (1..=count).map(|number| self.run_id(number)).collect::<Result<Vec<RunId>, Error>>()?;
        match (wanted, runs.last()) {
            (SessionReport::Status, _) => Ok(self.status(runs.len())),
            (SessionReport::Cost | SessionReport::Undo, None) => {
                Ok("This session has no messages yet.".to_owned())
            }
            (SessionReport::Cost, Some(_)) => {
                report::cost(&self.journal()?, &runs).map_err(|error| failed(&error.to_string()))
            }
            (SessionReport::Undo, Some(last)) => report::undo(&*self.launcher, &self.cwd, last)
                .map_err(|why| failed(&format!("Nothing was undone: {why}."))),
        }
    }

    fn status(&self, messages: usize) -> String {
        let chosen = |option: &SessionConfigOption| {
            let value = serde_json::to_value(&option.kind).unwrap_or_default();
            format!("\n- {}: {}", option.name, value["currentValue"].as_str().unwrap_or("default"))
        };
        let options: String = self.options().iter().map(chosen).collect();
        let (session, cwd) = (&self.output.session, self.cwd.display());
        format!("Session: {session}\n- Directory: {cwd}\n- Messages: {messages}{options}")
    }

    async fn start(
        self: &Arc<Self>,
        work: LaunchWork,
        background: Option<String>,
        images: Vec<Image>,
    ) -> Result<RunInProgress, Error> {
        let (request, number) = {
            let state = self.state.lock();
            let request = LaunchRequest {
                work,
                background,
                images,
                directory: Some(self.cwd.clone()),
                run: Some(self.run_id(state.runs + 1)?),
                continues: state.last.clone(),
                approver: Some(self.approver()),
                mcp_servers: self.servers.clone(),
                documents: self.documents.clone(),
                ..LaunchRequest::default()
            };
            (state.settings.apply(request), state.runs + 1)
        };
        let handle = self.launcher.start(request).await.map_err(|error| failed(&error.to_string()))?;
        self.state.lock().runs = number;
        Ok(RunInProgress::new(handle, UpdateMapper::new(self.cwd.clone(), Viewing::Live)))
    }

    fn approver(&self) -> Arc<ClientApprover> {
        Arc::new(ClientApprover {
            connection: Arc::clone(&self.output.connection),
            session: self.output.session.clone(),
            workspace: self.cwd.clone(),
        })
    }

    /// Drives a run and remembers what follows from its end.
    async fn turn(&self, run: RunInProgress, cancel: &CancellationToken) -> Result<PromptResponse, Error> {
        let id = run.handle.id().clone();
        match Box::pin(run.drive(&self.output, cancel)).await {
            TurnEnd::Asked(run) => {
                self.state.lock().asked = Some(run);
                Ok(PromptResponse::new(StopReason::EndTurn))
            }
            TurnEnd::Ended(answer) => {
                let ended = self.journal()?.run(id.as_str()).is_ok_and(|row| row.status != RunStatus::Open);
                if ended {
                    self.state.lock().last = Some(id);
                }
                *answer
            }
        }
    }

    fn journal(&self) -> Result<Journal, Error> {
        let journal = self.launcher.journal(&self.cwd).map_err(|error| failed(&error.to_string()))?;
        journal.ok_or_else(|| failed("nothing has been run in this directory"))
    }

    fn run_id(&self, number: u32) -> Result<RunId, Error> {
        let session = &self.output.session;
        let id = if number == 1 { session.clone() } else { format!("{session}.{number}") };
        id.parse().map_err(|error: String| failed(&error))
    }

    /// Finds the runs of a stored session; with `replay`, sends its conversation to the client.
    pub(crate) async fn load(self: &Arc<Self>, replay: bool) -> Result<(), Error> {
        let unknown = || invalid("there is no such session in this directory");
        let journal = self.journal().map_err(|_| unknown())?;
        let mut interrupted = None;
        for number in 1.. {
            let id = self.run_id(number).map_err(|_| unknown())?;
            let Ok(row) = journal.run(id.as_str()) else { break };
            let images = settings_of(&journal, &row.id).map(|settings| settings.images).unwrap_or_default();
            let mut mapper = UpdateMapper::new(self.cwd.clone(), Viewing::Replay).with_images(images);
            if replay {
                self.replay(&journal, &row, &mut mapper).await?;
            }
            let mut state = self.state.lock();
            state.runs = number;
            interrupted = None;
            if row.status == RunStatus::Open {
                interrupted = Some((row.id, mapper));
            } else {
                state.last = Some(row.id);
            }
        }
        if self.state.lock().runs == 0 {
            return Err(unknown());
        }
        let last = self.state.lock().last.clone();
        let last = last.or_else(|| interrupted.as_ref().map(|(run, _)| run.clone()));
        if let Some(spec) = last.and_then(|run| settings_of(&journal, &run).ok()) {
            let models = self.launcher.models(&self.cwd).unwrap_or_default();
            self.state.lock().settings = SessionSettings::recorded(&spec, models.first());
        }
        if let Some((run, mapper)) = interrupted.filter(|(run, _)| !journal.is_active(run)) {
            self.go_on(run, mapper).await?;
        }
        Ok(())
    }

    async fn replay(&self, journal: &Journal, row: &RunRow, mapper: &mut UpdateMapper) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let page = journal.events(&row.id, after, u64::MAX, PAGE);
            let page = page.map_err(|error| failed(&error.to_string()))?;
            for record in &page {
                after = record.seq;
                for update in mapper.updates(record) {
                    self.update(update).await;
                }
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Continues an interrupted run. Its updates follow the answer to the request that loaded the session.
    async fn go_on(self: &Arc<Self>, run: RunId, mut mapper: UpdateMapper) -> Result<(), Error> {
        let ticket = self.announce()?;
        let with = ResumeRequest {
            approver: Some(self.approver()),
            mcp_servers: self.servers.clone(),
            documents: self.documents.clone(),
        };
        let resumed = self.launcher.resume(&self.cwd, &run, with).await;
        let handle = resumed.map_err(|error| failed(&error.to_string()))?;
        mapper.go_live();
        let run = RunInProgress::new(handle, mapper);
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let cancel = ticket.cancel.clone();
            let _work = session.work.lock().await;
            // How it ended is in the journal; the client gets its updates.
            let _ = session.turn(run, &cancel).await;
            drop(ticket);
        });
        Ok(())
    }
}
