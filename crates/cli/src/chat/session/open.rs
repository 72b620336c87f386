//! Opens a chat: builds a [`Chat`] from flags and configuration, and finds the run that an earlier chat
//! left behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fusee::engine::approval::NonInteractive;
use fusee::engine::journal::{Journal, RunId, RunRow, RunStatus};
use fusee::engine::run::{self, CarryOver, PromptText};

use super::Chat;
use crate::command::run_setup::RunSetup;
use crate::config::{Config, FlagValue};
use crate::model_selection;
use crate::process::Process;
use crate::process::error::CliError;
use crate::project::Project;
use crate::project::find_run;
use crate::project::template_source::ReloadingTemplates;
use crate::ui::{UiOptions, activity};

/// Maximum number of runs that are searched for one in this directory.
const MAX_RUNS: usize = 200;

/// Parameters of a new chat.
pub(crate) struct ChatOptions<'a> {
    pub(crate) directory: Option<&'a Path>,
    pub(crate) flags: Vec<FlagValue>,
    /// The run to continue; an empty name is the newest finished run in this directory.
    pub(crate) continues: Option<&'a str>,
    /// The prompt of the chat's tasks.
    pub(crate) prompt: Option<PromptText>,
}

/// The newest run of an earlier chat.
pub(crate) struct InterruptedRun {
    pub(crate) run: RunId,
    pub(crate) title: String,
    pub(crate) age_ms: i64,
    /// Whether the run was interrupted and can be resumed.
    pub(crate) open: bool,
}

impl<'p> Chat<'p> {
    /// Opens a chat.
    pub(crate) async fn open(beginning: ChatOptions<'_>, process: &'p Process) -> Result<Self, CliError> {
        let environment = &process.environment;
        let project = Project::find(beginning.directory, environment)?;
        let flags = beginning.flags;
        let config = Config::gather(Some(&project.config_file()), environment, flags.clone())?;
        config.check_tools()?;
        let ui_options = UiOptions::new(false, &config, environment);
        ui_options.warn(&config);
        let earlier = match beginning.continues {
            None => None,
            Some(name) => {
                let journal = project.journal_with_runs()?;
                project.check_owner()?;
                let row = match name {
                    "" => find_run::newest_ended(&journal, &project.directory, |_| true)?,
                    name => find_run::named(&journal, name)?,
                };
                Some((row.id.clone(), run::settings_of(&journal, &row.id)?))
            }
        };
        let resolved = match &earlier {
            Some((_, settings)) => model_selection::continued(settings, &config, environment)?,
            None => model_selection::select(&config, environment).await?,
        };
        let setup = RunSetup::open(project, config, ui_options, resolved, None, process).await?;
        let (continues, prompt) = earlier.map(|(run, settings)| (run, settings.prompt)).unzip();
        Ok(Self {
            approve: setup.config.approve(),
            flags,
            setup,
            approver: Arc::new(NonInteractive),
            continues,
            pick: beginning.continues == Some(""),
            carry: CarryOver::Whole,
            prompt: beginning.prompt.clone().or(prompt.flatten()),
            given_prompt: beginning.prompt,
            opened: BTreeSet::new(),
            plan: None,
            plan_draft: None,
            plan_mode: false,
            commands: Vec::new(),
            templates: ReloadingTemplates::default(),
            #[cfg(feature = "serve")]
            web: super::web_page::WebPage::default(),
        })
    }

    /// The newest run in this directory that a chat could continue.
    pub(crate) fn resumable_run(&self) -> Option<InterruptedRun> {
        // An unreadable journal is reported when the first run starts.
        let row = newest(&self.setup.journal, &self.setup.project.directory).ok().flatten()?;
        let age_ms = self.setup.journal.now_ms() - row.ended_ms.unwrap_or(row.started_ms);
        let open = row.status == RunStatus::Open && !activity::is_ready(&self.setup.journal, &row);
        Some(InterruptedRun { open, run: row.id, title: row.title, age_ms })
    }
}

/// The newest run whose workspace is this directory and that no other process works on.
pub(super) fn newest(journal: &Journal, directory: &Path) -> Result<Option<RunRow>, CliError> {
    let here = |row: &RunRow| {
        let is_here =
            run::settings_of(journal, &row.id).is_ok_and(|settings| settings.workspace == directory);
        is_here && !(row.status == RunStatus::Open && journal.is_active(&row.id))
    };
    Ok(journal.runs()?.into_iter().take(MAX_RUNS).find(here))
}
