//! Errors that an edit brought into a file, found by the language's own checker: a configured command (`command`), or a
//! language server that is installed (`server`, `lsp`).
//!
//! Only errors that were not there before are reported, at most ten, and only if the checker answers in time. Checkers run
//! in the sandbox of commands.

mod command;
mod lsp;
mod server;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Workspace;
use crate::tool::shell::CommandSettings;
use lsp::LanguageServer;
use server::ServerKind;

/// Maximum number of errors that are reported after an edit.
const MAX_SHOWN: usize = 10;
/// Maximum number of errors that are read from a checker.
const MAX_READ: usize = 1000;
/// Maximum characters of a message.
const MAX_MESSAGE: usize = 300;
/// Maximum bytes of a file that is checked.
const MAX_FILE: u64 = 1 << 20;
/// Maximum number of files that are checked after one call.
const MAX_FILES: usize = 10;

/// Maximum time for which a server that was started for a file that is only read keeps a check waiting.
const WARM_UP: Duration = Duration::from_secs(20);

/// How edited files are checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiagnosticSettings {
    /// Commands by the extension of the file. `{file}` stands for its path; without it, the path is added at the end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, String>,
    /// Maximum time of a check, in seconds.
    pub timeout_s: f64,
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundError {
    /// Position, counted from 1; 0 if it is not known.
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) message: String,
}

/// Checks the files that a run edits.
pub struct EditChecker {
    settings: DiagnosticSettings,
    commands: CommandSettings,
    /// Language servers that were started; `None` if one cannot be used.
    servers: Mutex<HashMap<ServerKind, Option<Arc<LanguageServer>>>>,
    /// Ends what goes on in the background when the run ends.
    ended: DropGuard,
}

/// State of files before an edit.
#[derive(Debug)]
pub struct BeforeEdit(Vec<CheckedFile>);

#[derive(Debug)]
struct CheckedFile {
    path: String,
    /// Content before the edit; empty if the file did not exist.
    text: String,
    /// Errors before the edit, if a command found them in time. A language server is asked afterwards.
    errors: Option<Vec<FoundError>>,
}

impl EditChecker {
    /// Checkers with these settings; `commands` says how programs run.
    #[must_use]
    pub fn new(settings: DiagnosticSettings, commands: CommandSettings) -> Self {
        Self { settings, commands, servers: Mutex::default(), ended: CancellationToken::new().drop_guard() }
    }

    /// Starts the language server of a file that the model reads, and lets it check that file, without waiting for it.
    ///
    /// The first answer of a server takes seconds, longer than an edit is held up for it. A file is read before it is edited,
    /// and the model needs time for the edit.
    pub async fn file_is_read(&self, workspace: &Workspace, path: &str) {
        let Some(kind) = ServerKind::from_path(path).filter(|_| self.command_for(path).is_none()) else {
            return;
        };
        let Ok(located) = workspace.locate(path) else { return };
        let mut servers = self.servers.lock().await;
        let TextFile::Text(text) = read(workspace, path) else { return };
        if servers.contains_key(&kind) {
            return;
        }
        let started = self.start(kind, workspace);
        servers.insert(kind, started.clone());
        let Some(server) = started else { return };
        let (path, ended) = (workspace.root().join(located.as_path()), self.ended.token().clone());
        tokio::spawn(async move {
            let check = tokio::time::timeout(WARM_UP, server.check(&path, kind, "", &text));
            ended.run_until_cancelled(check).await;
        });
    }

    /// Looks at files that are about to be edited.
    pub async fn before(&self, workspace: &Arc<Workspace>, paths: &[String]) -> BeforeEdit {
        let mut files = Vec::new();
        for path in paths.iter().filter(|path| self.is_checked(path)).take(MAX_FILES) {
            let text = match read(workspace, path) {
                TextFile::Text(text) => text,
                TextFile::Absent => String::new(),
                TextFile::Other => continue,
            };
            let errors = match self.command_for(path) {
                Some(_) if text.is_empty() => Some(Vec::new()),
                Some(command) => self.run_command(workspace, command, path).await,
                None => None,
            };
            files.push(CheckedFile { path: path.clone(), text, errors });
        }
        BeforeEdit(files)
    }

    /// Compares with the state before the edit. Returns a note for the model, if there are new errors.
    pub async fn after(&self, workspace: &Arc<Workspace>, before: BeforeEdit) -> Option<String> {
        let mut lines = Vec::new();
        for file in before.0 {
            let TextFile::Text(text) = read(workspace, &file.path) else { continue };
            if text == file.text {
                continue;
            }
            let new = match self.command_for(&file.path) {
                Some(command) => {
                    let Some(earlier) = file.errors else { continue };
                    let Some(now) = self.run_command(workspace, command, &file.path).await else { continue };
                    new_errors(&earlier, now)
                }
                None => match self.ask_server(workspace, &file, text).await {
                    Some((earlier, now)) => new_errors(&earlier, now),
                    None => continue,
                },
            };
            lines.extend(new.iter().map(|error| shown(&file.path, error)));
        }
        note(&lines)
    }

    fn is_checked(&self, path: &str) -> bool {
        self.command_for(path).is_some() || ServerKind::from_path(path).is_some()
    }

    fn command_for(&self, path: &str) -> Option<&str> {
        let extension = Path::new(path).extension()?.to_str()?;
        self.settings.commands.get(extension).map(String::as_str)
    }

    fn limit(&self) -> Duration {
        Duration::try_from_secs_f64(self.settings.timeout_s).unwrap_or(Duration::from_secs(2))
    }

    /// The errors that a command finds; `None` if it does not end in time or cannot be run.
    async fn run_command(&self, workspace: &Workspace, command: &str, path: &str) -> Option<Vec<FoundError>> {
        command::run(&self.commands, workspace, command, path, self.limit()).await
    }

    /// The errors before and after an edit, from the language server of the file.
    async fn ask_server(
        &self,
        workspace: &Workspace,
        file: &CheckedFile,
        text: String,
    ) -> Option<(Vec<FoundError>, Vec<FoundError>)> {
        let kind = ServerKind::from_path(&file.path)?;
        let server = self.server(kind, workspace).await?;
        let path = workspace.root().join(&file.path);
        let check = server.check(&path, kind, &file.text, &text);
        match tokio::time::timeout(self.limit(), check).await {
            Ok(Some(found)) => Some(found),
            // It has ended.
            Ok(None) => {
                self.servers.lock().await.insert(kind, None);
                None
            }
            // It is still starting, or busy.
            Err(_) => None,
        }
    }

    async fn server(&self, kind: ServerKind, workspace: &Workspace) -> Option<Arc<LanguageServer>> {
        let mut servers = self.servers.lock().await;
        servers.entry(kind).or_insert_with(|| self.start(kind, workspace)).clone()
    }

    fn start(&self, kind: ServerKind, workspace: &Workspace) -> Option<Arc<LanguageServer>> {
        let command = kind.command(self.commands.environment.value("PATH"))?;
        LanguageServer::start(&command, workspace.root(), &self.commands).map(Arc::new)
    }
}

/// The errors of `now` that are not in `before`. Lines may have moved, so only messages are compared, each as often as it
/// occurs.
fn new_errors(before: &[FoundError], now: Vec<FoundError>) -> Vec<FoundError> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    before.iter().for_each(|error| *known.entry(&error.message).or_default() += 1);
    let mut is_new = |error: &FoundError| match known.get_mut(error.message.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    now.into_iter().filter(|error| is_new(error)).collect()
}

fn shown(path: &str, error: &FoundError) -> String {
    let message: String = error.message.chars().take(MAX_MESSAGE).collect();
    match error {
        FoundError { line: 0, .. } => format!("{path}: {message}"),
        FoundError { line, column: 0, .. } => format!("{path}:{line}: {message}"),
        FoundError { line, column, .. } => format!("{path}:{line}:{column}: {message}"),
    }
}

fn note(lines: &[String]) -> Option<String> {
    let shown = lines.get(..MAX_SHOWN.min(lines.len())).filter(|shown| !shown.is_empty())?.join("\n");
    let more = match lines.len().saturating_sub(MAX_SHOWN) {
        0 => String::new(),
        more => format!("\nand {more} more"),
    };
    Some(format!("\n[errors that were not there before this edit:\n{shown}{more}]"))
}

/// A file as far as it can be checked.
enum TextFile {
    Text(String),
    Absent,
    /// A directory, too large, or no text.
    Other,
}

fn read(workspace: &Workspace, path: &str) -> TextFile {
    match workspace.disk_state(path, MAX_FILE) {
        Ok(crate::workspace::DiskState::File { content, .. }) => {
            String::from_utf8(content).map_or(TextFile::Other, TextFile::Text)
        }
        Ok(crate::workspace::DiskState::Absent) => TextFile::Absent,
        _ => TextFile::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: u32, message: &str) -> FoundError {
        FoundError { line, column: 1, message: message.to_owned() }
    }

    #[test]
    fn only_errors_that_were_not_there_are_new() {
        let before = [error(3, "a"), error(9, "b")];
        let now = vec![error(4, "a"), error(5, "a"), error(10, "b"), error(11, "c")];
        assert_eq!(new_errors(&before, now), [error(5, "a"), error(11, "c")]);
    }

    #[test]
    fn at_most_ten_are_shown() {
        assert_eq!(note(&[]), None);
        let lines: Vec<String> = (0..12).map(|n| format!("a.py:{n}: x")).collect();
        let text = note(&lines).unwrap();
        assert!(text.starts_with("\n[errors that were not there before this edit:\na.py:0: x\n"), "{text}");
        assert!(text.ends_with("a.py:9: x\nand 2 more]"), "{text}");
    }
}
