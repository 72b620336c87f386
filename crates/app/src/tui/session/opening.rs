//! Opens a chat: builds a [`Session`] from flags and configuration, and finds the run that an earlier chat
//! left behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fusee_engine::approval::Nobody;
use fusee_engine::journal::{Journal, RunId, RunRow, RunStatus};
use fusee_engine::run::{self, Carry, PromptText};

use super::Session;
use crate::choice::Choice;
use crate::command::Process;
use crate::config::{Config, FlagValue};
use crate::face::Show;
use crate::failure::Failure;
use crate::mcp;
use crate::project::Project;
use crate::selection;
use crate::templates::Standing;
use crate::work::Confinement;

/// Maximum number of runs that are searched for one in this directory.
const LOOKED_THROUGH: usize = 200;

/// Parameters of a new chat.
pub(crate) struct Beginning<'a> {
    pub(crate) directory: Option<&'a Path>,
    pub(crate) flags: Vec<FlagValue>,
    /// The run to continue; an empty name is the newest finished run in this directory.
    pub(crate) continues: Option<&'a str>,
    /// The prompt of the chat's tasks.
    pub(crate) prompt: Option<PromptText>,
}

/// The newest run of an earlier chat.
pub(crate) struct Cut {
    pub(crate) run: RunId,
    pub(crate) title: String,
    pub(crate) age_ms: i64,
    /// Whether the run was interrupted and can be resumed.
    pub(crate) open: bool,
}

impl<'p> Session<'p> {
    /// Opens a chat.
    pub(crate) async fn open(beginning: Beginning<'_>, process: &'p Process) -> Result<Self, Failure> {
        let environment = &process.environment;
        let project = Project::find(beginning.directory, environment)?;
        let flags = beginning.flags;
        let config = Config::gather(Some(&project.config_file()), environment, flags.clone())?;
        config.check_tools()?;
        let show = Show::new(false, &config, environment);
        show.warn(&config);
        let earlier = match beginning.continues {
            None => None,
            Some(name) => {
                let journal = project.journal_with_runs()?;
                project.check_owner()?;
                let row = match name {
                    "" => selection::newest_ended(&journal, &project.directory, |_| true)?,
                    name => selection::named(&journal, name)?,
                };
                Some((row.id.clone(), run::settings_of(&journal, &row.id)?))
            }
        };
        let choice = match &earlier {
            Some((_, settings)) => Choice::continued(settings, &config, environment)?,
            None => Choice::make(&config, environment).await?,
        };
        let model = choice.open(None)?;
        let confine = config.confine(environment);
        let confinement = Confinement::of(config.sandbox(), &confine, &project.directory, process).await;
        confinement.warn(&show);
        let servers = mcp::connect(&config, &project.directory, process).await;
        let journal = project.open_journal(config.journal())?;
        let (continues, prompt) = earlier.map(|(run, settings)| (run, settings.prompt)).unzip();
        let approve = config.approve();
        Ok(Self {
            process,
            project,
            config,
            flags,
            show,
            journal,
            confine,
            confinement,
            choice,
            model,
            approve,
            approver: Arc::new(Nobody),
            continues,
            carry: Carry::Whole,
            prompt: beginning.prompt.clone().or(prompt.flatten()),
            given_prompt: beginning.prompt,
            servers,
            opened: BTreeSet::new(),
            plan: None,
            plan_draft: None,
            templates: Standing::default(),
        })
    }

    /// The newest run in this directory that a chat could continue.
    pub(crate) fn left_behind(&self) -> Option<Cut> {
        // An unreadable journal is reported when the first run starts.
        let row = newest(&self.journal, &self.project.directory).ok().flatten()?;
        let age_ms = self.journal.now_ms() - row.ended_ms.unwrap_or(row.started_ms);
        Some(Cut { open: row.status == RunStatus::Open, run: row.id, title: row.title, age_ms })
    }
}

/// The newest run whose workspace is this directory.
pub(super) fn newest(journal: &Journal, directory: &Path) -> Result<Option<RunRow>, Failure> {
    let here = |row: &RunRow| {
        run::settings_of(journal, &row.id).is_ok_and(|settings| settings.workspace == directory)
    };
    Ok(journal.runs()?.into_iter().take(LOOKED_THROUGH).find(here))
}
