//! A session on a scripted model, for the tests of what works with one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use fusee_journal::{Clock, DurableRun, Journal, JournalOptions, SqliteRun};
use fusee_model::{Models, RequestOptions};
use fusee_tools::{CommandSettings, Secrets, Toolbox, Workspace};
use serde_json::{Map, Value};

use super::{Limits, Session, TurnInterrupt};
use crate::approval::rules::ApprovalRules;
use crate::approval::{ApprovalMode, ApprovalPolicy, NonInteractive};
use crate::hook::{HookPlace, HookRunner};

/// A clock that advances by one millisecond each time it is read.
pub(crate) struct TickingClock(AtomicI64);

impl TickingClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(0)))
    }
}

impl Clock for TickingClock {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A new run in a journal in `directory`.
pub(crate) async fn new_run(directory: &Path) -> Arc<dyn DurableRun> {
    let file = directory.join(".fusee/journal.db");
    let journal = Journal::open(&file, JournalOptions::default(), TickingClock::new()).expect("a journal");
    let run = "test".parse().expect("a run id");
    SqliteRun::begin(&journal, &run, "test").await.expect("a run")
}

/// A session whose model plays these replies, in `directory`, with all tools.
pub(crate) fn session(directory: &Path, replies: &[Value]) -> Arc<Session> {
    let script: String = replies.iter().map(|reply| format!("{reply}\n")).collect();
    let file = directory.join("script.jsonl");
    std::fs::write(&file, script).expect("a script");
    let name = format!("script:{}", file.display());
    let models = Models::new(|| std::time::UNIX_EPOCH);
    let model = models.open(&name, &fusee_model::Connection::default()).expect("a model");
    let commands = CommandSettings::default();
    let place =
        HookPlace { directory: directory.to_owned(), root: directory.to_owned(), trusts_project: false };
    Arc::new(Session {
        model,
        stage_models: std::collections::BTreeMap::new(),
        options: RequestOptions::default(),
        toolbox: Toolbox::standard(commands.clone()),
        workspace: Arc::new(Workspace::open(directory).expect("a workspace")),
        limits: Limits::default(),
        secrets: Secrets::default(),
        turn_stop: TurnInterrupt::default(),
        approval: ApprovalPolicy {
            approve: ApprovalMode::Never,
            commands_preapproved: false,
            rules: ApprovalRules::default(),
            approver: Arc::new(NonInteractive),
        },
        hooks: Arc::new(HookRunner::new(&[], commands.clone(), place, Map::new())),
        commands,
        diagnostics: None,
        policy_changes: Vec::new(),
        review: None,
        sandbox: "off".to_owned(),
        jitter: || 0.0,
        resumed: AtomicBool::new(false),
        continues: None,
    })
}
