//! `/web`: the web page of a chat, served by this process while the chat is open.

use fusee::engine::run::RunControl;
use fusee_serve::ServerHandle;

use super::Chat;
use crate::command::launcher::LaunchFlags;
use crate::command::run_setup::StartedRun;
use crate::command::serve;
use crate::process::error::CliError;
use crate::ui::line::{Style, StyledLine};

/// The page, once it was asked for, and the newest run.
#[derive(Default)]
pub(super) struct WebPage {
    server: Option<ServerHandle>,
    run: Option<RunControl>,
}

impl Chat<'_> {
    /// Notes a run that was started or resumed, so that the page can stop it and show what it is writing.
    pub(super) fn note_run(&mut self, started: &StartedRun) {
        let run = started.running.control();
        if let Some(server) = &self.web.server {
            server.add(run.clone(), &self.setup.project.journal);
        }
        self.web.run = Some(run);
    }

    /// Serves the page, if it is not served yet, and returns its URL.
    pub(super) fn web_page(&mut self) -> Result<Vec<StyledLine>, CliError> {
        if self.web.server.is_none() {
            let project = &self.setup.project;
            let server = serve::background(&project.directory, LaunchFlags::default(), self.setup.process)?;
            if let Some(run) = self.web.run.clone().filter(|run| !run.is_ended()) {
                server.add(run, &project.journal);
            }
            self.web.server = Some(server);
        }
        let run = self.web.run.as_ref().map(|run| run.id().clone()).or_else(|| self.continues.clone());
        let url = self.web.server.as_ref().map(|server| match &run {
            Some(run) => server.url_of(run),
            None => server.url(),
        });
        Ok(vec![StyledLine::styled(Style::Plain, &url.unwrap_or_default())])
    }
}
