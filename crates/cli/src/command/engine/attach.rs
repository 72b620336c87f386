//! `fusee attach` and `fusee resume` of a run on an engine.

use fusee::engine::journal::RunId;
use fusee::engine::run::{ExitStatus, RunSpec};

use super::{OpenEngine, answer};
use crate::command::run_session;
use crate::command::run_setup::StartedRun;
use crate::config::Config;
use crate::config::flags::EngineFlags;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::saved_rules::SavedRules;
use crate::ui::{RunHeader, UiOptions};

/// How often a run without a worker is looked at.
const POLL: std::time::Duration = std::time::Duration::from_millis(500);

/// The settings of a run. Waits until a worker has begun with it.
async fn settings(engine: &OpenEngine, run: &RunId) -> Result<RunSpec, CliError> {
    let mut announced = false;
    loop {
        if let Some(settings) = engine.engine.settings(run).await? {
            return Ok(settings);
        }
        if !std::mem::replace(&mut announced, true) {
            stdio::error(&format!("run {run} waits for a worker\n"));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Shows a run from its beginning. The engine resumes runs by itself.
pub(crate) async fn follow(
    flags: &EngineFlags,
    run: Option<&str>,
    json: bool,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let Some(engine) = OpenEngine::open(flags, process).await? else { return Ok(ExitStatus::Usage) };
    let config = Config::gather(None, &process.environment, Vec::new())?;
    let ui_options = UiOptions::new(json, &config, &process.environment);
    let run = engine.named(run).await?;
    let header = RunHeader::from_spec(&settings(&engine, &run).await?);
    let (running, copy) = engine.follow(engine.remote(&run), "").await?;
    let environment = &process.environment;
    let rules = || Ok::<_, CliError>(SavedRules::new(&Project::find(None, environment)?, environment));
    let approver = if ui_options.can_ask() { Some(ui_options.approver(rules()?)) } else { None };
    answer::converse(engine.remote(&run), running.events(), approver);
    let started = StartedRun { running, header, readers: Vec::new(), copy: Some(copy) };
    let (exit, _) = run_session::watch(started, &ui_options, &[]).await?;
    Ok(exit)
}
