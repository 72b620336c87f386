//! Runs on an engine: `--engine URL` of the commands, and the commands that only make sense with one. The work is
//! done by the crate `fusee-restate`.

pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod dev_engine;
pub(crate) mod pull;
pub(crate) mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fusee::engine::journal::{Journal, JournalOptions, RunId};
use fusee::engine::model::{Connection, http_client};
use fusee::engine::run::{ExitStatus, RunHandle, RunSpec};
use fusee::system::{self, SystemClock};
use fusee_restate::{BlobStore, Engine, RemoteRun, RunOrder};
use serde_json::json;
use tokio::task::AbortHandle;

use super::run::RunArgs;
use super::run_setup::{RunSetup, StartedRun};
use crate::config::flags::{EngineFlags, NewRunEngineFlags};
use crate::process::Process;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::{PhaseLogTarget, RunHeader};

/// How often a run that is followed is asked whether it waits.
const PROBLEMS: Duration = Duration::from_secs(3);

/// An engine that answers, and the blob store.
pub(crate) struct OpenEngine {
    engine: Engine,
    blobs: BlobStore,
    /// Whose runs are started.
    tenant: Option<String>,
    /// Where copies of journals are kept while a command shows them.
    copies: PathBuf,
}

/// A folder with the copy of a run's journal, removed with this value.
pub(crate) struct CopyFolder {
    path: PathBuf,
    /// Tells why the run waits, if it is followed.
    problems: Option<AbortHandle>,
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        // A folder that stays is only waste.
        let _ = std::fs::remove_dir_all(&self.path);
        if let Some(problems) = &self.problems {
            problems.abort();
        }
    }
}

impl OpenEngine {
    /// The engine of these flags, if they name one.
    pub(crate) async fn open(flags: &EngineFlags, process: &Process) -> Result<Option<Self>, CliError> {
        let Some(url) = &flags.engine else { return Ok(None) };
        let environment = &process.environment;
        let blobs = blob_store(flags, environment)?;
        let copies = environment.cache_folder().ok_or_else(no_home)?.join("engine");
        Ok(Some(Self { engine: Engine::connect(url).await?, blobs, tenant: None, copies }))
    }

    /// The engine of a new run. Rejects flags that a worker cannot honour.
    pub(crate) async fn of_run(
        args: &RunArgs,
        continues: bool,
        process: &Process,
    ) -> Result<Option<Self>, CliError> {
        let NewRunEngineFlags { place, tenant } = &args.engine;
        let Some(engine) = Self::open(place, process).await? else { return Ok(None) };
        let engine = Self { tenant: tenant.clone(), ..engine };
        let mut wrong = vec![
            ("--continue", continues, "the earlier run is in the journal of this machine"),
            ("--record", args.record.is_some(), "the file would be written on the worker"),
        ];
        #[cfg(feature = "serve")]
        wrong.push(("--serve", args.serve, "the page shows the runs of this machine"));
        match wrong.into_iter().find(|(_, given, _)| *given) {
            Some((flag, _, why)) => {
                Err(CliError::usage(format!("{flag} cannot be used with --engine: {why}")))
            }
            None => Ok(Some(engine)),
        }
    }

    /// Hands a run to the engine and follows it.
    pub(crate) async fn start(
        &self,
        setup: &RunSetup<'_>,
        spec: RunSpec,
        run: Option<RunId>,
    ) -> Result<StartedRun, CliError> {
        if !spec.hooks.is_empty() {
            // They would run on the worker, outside its sandbox. A worker refuses them as well.
            return Err(CliError::usage("hooks cannot be used with --engine")
                .help("remove the hooks, or run without --engine"));
        }
        let run = run.map_or_else(system::new_run_id, Ok).map_err(CliError::failed)?;
        let remote = self.remote(&run);
        let files = remote.store(&spec.workspace).await?;
        let (header, phases) = (RunHeader::from_spec(&spec), PhaseLogTarget::from_flow(&spec.flow));
        let (title, directory, tenant) = (spec.title(), spec.workspace.clone(), self.tenant.clone());
        let log = setup.log_file()?;
        fusee_restate::submit(&remote, &RunOrder { spec, directory, files, tenant }).await?;
        let (running, copy) = self.follow(remote.clone(), &title).await?;
        let approver = setup.ui_options.can_ask().then(|| setup.ui_options.approver(setup.saved_rules()));
        answer::converse(remote, running.events(), approver);
        let readers = setup.readers(&running, log, phases)?;
        Ok(StartedRun { running, header, readers, copy: Some(copy) })
    }

    /// Follows a run from its beginning.
    async fn follow(&self, remote: RemoteRun, title: &str) -> Result<(RunHandle, CopyFolder), CliError> {
        let (journal, mut folder) = self.copy_folder(&remote.run)?;
        let problems = tell_problems(remote.engine.clone(), remote.run.clone());
        let running = fusee_restate::follow(remote, &journal, title).await?;
        folder.problems = Some(tokio::spawn(problems).abort_handle());
        Ok((running, folder))
    }

    /// Copies what is recorded of a run now into a journal.
    pub(crate) async fn copy(&self, name: Option<&str>) -> Result<(RunId, Journal, CopyFolder), CliError> {
        let run = self.named(name).await?;
        let (journal, folder) = self.copy_folder(&run)?;
        self.remote(&run).copy(&journal, "").await?;
        Ok((run, journal, folder))
    }

    /// The run with this id or this beginning of an id; the newest without one.
    async fn named(&self, name: Option<&str>) -> Result<RunId, CliError> {
        let runs = self.engine.runs().await?;
        let Some(name) = name.filter(|name| *name != "last") else {
            let newest = runs.first().ok_or_else(|| CliError::usage("no runs on the engine"))?;
            return newest.run.parse().map_err(CliError::failed);
        };
        let like: Vec<&str> =
            runs.iter().map(|listed| listed.run.as_str()).filter(|run| run.starts_with(name)).collect();
        match like.as_slice() {
            [run] => run.parse().map_err(CliError::failed),
            runs if runs.contains(&name) => name.parse().map_err(CliError::failed),
            [] => Err(fusee_restate::EngineError::NoSuchRun { run: name.to_owned() }.into()),
            _ => Err(CliError::usage(format!("several runs begin with `{name}`: {}", like.join(", ")))),
        }
    }

    fn remote(&self, run: &RunId) -> RemoteRun {
        RemoteRun { engine: self.engine.clone(), blobs: self.blobs.clone(), run: run.clone() }
    }

    fn copy_folder(&self, run: &RunId) -> Result<(Journal, CopyFolder), CliError> {
        let path = self.copies.join(format!("{run}-{}", std::process::id()));
        let folder = CopyFolder { path, problems: None };
        let file = folder.path.join("journal.db");
        let journal = Journal::open(&file, JournalOptions::default(), Arc::new(SystemClock))?;
        Ok((journal, folder))
    }
}

/// Tells why a run that is followed here waits, such as for a blob that its worker does not have. Each reason once.
async fn tell_problems(engine: Engine, run: RunId) {
    let mut told = None;
    loop {
        tokio::time::sleep(PROBLEMS).await;
        let Ok(Some(problem)) = engine.problem(&run).await else { continue };
        if told.as_ref() != Some(&problem) {
            stdio::error(&format!("warning: run {run} is waiting, and the engine retries: {problem}\n"));
            told = Some(problem);
        }
    }
}

/// The blob store of these flags.
fn blob_store(flags: &EngineFlags, environment: &Environment) -> Result<BlobStore, CliError> {
    let is_s3 = |place: &&String| place.starts_with("s3://");
    if let Some(url) = flags.blobs.as_ref().filter(is_s3) {
        let text = |value: &std::ffi::OsStr| value.to_str().map(str::to_owned);
        let variables = environment.variables().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let endpoint = environment.text("AWS_ENDPOINT_URL").unwrap_or("https://s3.amazonaws.com");
        let http = http_client(endpoint, &Connection::default())
            .map_err(|error| CliError::usage(format!("cannot use {endpoint}: {error}")))?;
        return Ok(BlobStore::s3(url, variables, http)?);
    }
    let directory = match &flags.blobs {
        Some(given) => environment.directory().join(given),
        None => environment.state_folder().ok_or_else(no_home)?.join("blobs"),
    };
    Ok(BlobStore::directory(Path::new(&directory))?)
}

fn no_home() -> CliError {
    CliError::usage("no location for engine files: HOME is not set")
}

/// The URL of commands that need one.
fn required(flags: &EngineFlags) -> Result<&str, CliError> {
    flags.engine.as_deref().ok_or_else(|| {
        CliError::usage("missing --engine URL").help("`fusee dev-engine` starts an engine on this machine")
    })
}

/// Cancels a run on an engine. The worker stops what the run is doing, and the run ends as cancelled.
pub(crate) async fn cancel(url: &str, run: &str) -> Result<ExitStatus, CliError> {
    let engine = Engine::connect(url).await?;
    let run = engine.run(run).await?;
    engine.cancel(&run).await?;
    stdio::error(&format!("run {run} is being cancelled\n"));
    Ok(ExitStatus::Completed)
}

/// Lists the runs that an engine knows.
pub(crate) async fn list(url: &str, json: bool) -> Result<ExitStatus, CliError> {
    let runs = Engine::connect(url).await?.runs().await?;
    if json {
        let rows: Vec<_> = runs
            .iter()
            .map(|run| {
                json!({ "run": run.run, "status": run.status, "title": run.title, "started": run.started,
                    "tenant": run.tenant })
            })
            .collect();
        stdio::print_json(&format!("{:#}\n", serde_json::Value::from(rows)))?;
        return Ok(ExitStatus::Completed);
    }
    let width = runs.iter().map(|run| run.run.len()).max().unwrap_or_default();
    let text: String =
        runs.iter().map(|run| format!("{:<width$}  {:<11}  {}\n", run.run, run.status, run.title)).collect();
    if text.is_empty() {
        stdio::error("no runs on the engine\n");
    }
    stdio::print(&text)?;
    Ok(ExitStatus::Completed)
}
