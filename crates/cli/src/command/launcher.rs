//! Starts runs for the front ends that are crates of their own (benchmarks, protocols, web page): a
//! [`LaunchRequest`] becomes the flags of `fusee run` and takes the same path as they do.

mod plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fusee::engine::approval::rules::ApprovalRule;
use fusee::engine::approval::{AnsweredOutside, ApprovalMode};
use fusee::engine::journal::{BoxFuture, Journal, RunId};
use fusee::engine::lang::Callable;
use fusee::engine::review::CodeReview;
use fusee::engine::run::{self, ExitStatus, RunHandle};
use fusee::engine::template::{LoadedTemplates, Template};
use fusee::launch::{
    LaunchError, LaunchErrorKind, LaunchMcpServer, LaunchMcpTransport, LaunchPlan, LaunchRequest, LaunchWork,
    Launcher, NamedTask, NamedTaskKind, PromptPart, ResumeRequest, RunExport,
};
use serde_json::{Map, Value, json};

use super::resume;
use super::run::{ContinuedRun, Presentation, RunArgs, prepare};
use super::run_export::{self, cassette};
use super::run_setup::RunTarget;
use super::task;
use crate::config::flags::{ApprovalFlags, FlowFlags, LimitFlags, ModelFlags, RunIdFlag};
use crate::config::{self, Config, LoginEntry, McpEntry, McpTransport, ValueOrigin};
use crate::model_selection;
use crate::process::Process;
use crate::process::error::CliError;
use crate::project::saved_rules::SavedRules;
use crate::project::{Project, fork_worktrees, markdown_commands, template_source, workflow_registry};

/// Time limit of a server that a request brings along, as for a configured one.
const MCP_TIMEOUT_S: u64 = 60;

/// Flags of the command that runs the front end; they apply to every run that does not set the same itself.
#[derive(Args, Clone, Default)]
pub(crate) struct LaunchFlags {
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    #[command(flatten)]
    pub(crate) approval: ApprovalFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// Load agent settings from this TOML or JSON file
    #[arg(long, value_name = "FILE", help_heading = "Flow")]
    pub(crate) agent: Option<PathBuf>,
}

/// Starts runs for front ends with the flags and configuration of this process.
pub(crate) struct CommandLauncher {
    process: Process,
    directory: PathBuf,
    flags: LaunchFlags,
}

impl CommandLauncher {
    /// A launcher for a command that was started in `directory` with these flags.
    pub(crate) fn new(
        process: &Process,
        directory: Option<&Path>,
        flags: LaunchFlags,
    ) -> Result<Self, CliError> {
        let directory = Project::find(directory, &process.environment)?.directory;
        Ok(Self { process: process.clone(), directory, flags })
    }

    fn project(&self, directory: &Path) -> Result<Project, CliError> {
        Project::find(Some(directory), &self.process.environment)
    }

    /// The configuration of runs in a directory that set nothing themselves.
    fn config(&self, directory: &Path) -> Result<Config, CliError> {
        let LaunchFlags { model, approval, limits, agent } = &self.flags;
        let flags = [model.values(), approval.values(), limits.values()].concat();
        let project = self.project(directory)?;
        let (file, environment) = (project.config_file(), &self.process.environment);
        Config::gather_for(Some(&file), agent.as_deref(), environment, flags)
    }

    /// Requests that the server of this model works on at once, if it tells.
    pub(crate) async fn slots(&self, model: &ModelFlags, agent: Option<&Path>) -> Option<u32> {
        let (file, environment) =
            (self.project(&self.directory).ok()?.config_file(), &self.process.environment);
        let config = Config::gather_for(Some(&file), agent, environment, model.values()).ok()?;
        let resolved = model_selection::find(&config, environment).await.ok()?;
        model_selection::open(&resolved, None).ok()?.slots().await
    }

    async fn launch(&self, request: LaunchRequest) -> Result<RunHandle, CliError> {
        let LaunchRequest { work, continues, background, tools, approver, .. } = &request;
        let directory = request.directory.as_deref().unwrap_or(&self.directory);
        let project = match &request.project {
            None => self.project(directory)?,
            Some(project) => self.project(project)?,
        };
        let project = project.working_in(directory, request.shown_at.clone())?;
        let earlier = continues.as_ref().map(|run| earlier(run, &project)).transpose()?;
        let target = target(work, &project, &self.process)?;
        let mut args = self.args(&request)?;
        args.background.clone_from(background);
        args.images.clone_from(&request.images);
        let (tools, approver) = (tools.clone(), approver.clone());
        let documents = request.documents.clone();
        let mut run = prepare(args, target, earlier, Presentation::Elsewhere, project, &self.process).await?;
        if run.builder.spec.images.len() < request.images.len() {
            return Err(CliError::usage("this model does not accept images"));
        }
        if request.benchmark_try.is_some() {
            run = run.with_own_script()?;
        }
        if let (Some(attempt), Some(benchmark)) =
            (request.benchmark_try, &mut run.builder.spec.flow.benchmark)
        {
            benchmark.attempt = attempt;
            run.builder.spec.flow.protected_files.clone_from(&request.protected_files);
        }
        run.builder.deps.extra_tools.extend(tools);
        run.builder.deps.approver = approver.unwrap_or_else(|| Arc::new(AnsweredOutside));
        run.builder.deps.documents = documents;
        Ok(run.start().await?.started.running)
    }

    /// The flags of `fusee run` that a request stands for.
    fn args(&self, request: &LaunchRequest) -> Result<RunArgs, CliError> {
        let LaunchFlags { model, approval, limits, agent } = self.flags.clone();
        let api = match &request.api {
            None => model.api,
            Some(word) => Some(config::word(word).ok_or_else(|| unknown_api(word))?),
        };
        // A server belongs to its model: another model does not inherit it.
        let base_url = match (&request.model, &request.base_url) {
            (None, None) => model.base_url,
            (_, own) => own.clone(),
        };
        let given = request.limits;
        Ok(RunArgs {
            mcp: request.mcp_servers.iter().map(mcp_entry).collect(),
            reasoning_effort: request.reasoning_effort.clone(),
            name: RunIdFlag { run_id: request.run.clone() },
            model: ModelFlags { model: request.model.clone().or(model.model), base_url, api },
            flow: FlowFlags {
                agent: request.agent.clone().or(agent),
                flow: request.flow.clone(),
                verify: request.verify.clone(),
                benchmark: request.benchmark_try.is_some(),
            },
            approval: ApprovalFlags { approve: request.approve.or(approval.approve), ..approval },
            limits: LimitFlags {
                max_turns: given.max_turns.or(limits.max_turns),
                max_tokens: given.max_tokens.or(limits.max_tokens),
                timeout: given.timeout_s.or(limits.timeout),
                patience: given.patience_s.or(limits.patience),
                budget_usd: given.budget_usd.or(limits.budget_usd),
            },
            ..RunArgs::default()
        })
    }
}

impl Launcher for CommandLauncher {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn start(&self, request: LaunchRequest) -> BoxFuture<'_, Result<RunHandle, LaunchError>> {
        Box::pin(async move { Box::pin(self.launch(request)).await.map_err(LaunchError::from) })
    }

    fn resume<'a>(
        &'a self,
        directory: &'a Path,
        run: &'a RunId,
        with: ResumeRequest,
    ) -> BoxFuture<'a, Result<RunHandle, LaunchError>> {
        Box::pin(async move {
            let project = self.project(directory)?;
            let servers = with.mcp_servers.iter().map(mcp_entry).collect();
            Ok(resume::elsewhere(run, project, with, servers, &self.process).await?)
        })
    }

    fn journal(&self, directory: &Path) -> Result<Option<Journal>, LaunchError> {
        let project = self.project(directory)?;
        let Some(journal) = project.read_journal()? else { return Ok(None) };
        let config = Config::gather(Some(&project.config_file()), &self.process.environment, Vec::new())?;
        // Answers to questions are written; a journal that cannot be written can still be read.
        let open = || project.open_journal(config.journal());
        Ok(Some(self.process.journals.get_or_open(&project.journal, open).unwrap_or(journal)))
    }

    fn approval(&self, directory: &Path) -> Result<ApprovalMode, LaunchError> {
        Ok(self.config(directory)?.approve())
    }

    fn models(&self, directory: &Path) -> Result<Vec<String>, LaunchError> {
        let config = self.config(directory)?;
        let mut names: Vec<String> = config.text("model").map(str::to_owned).into_iter().collect();
        for entry in config.models() {
            if !names.contains(&entry.name) {
                names.push(entry.name.clone());
            }
        }
        Ok(names)
    }

    fn open_journal(&self, directory: &Path) -> Result<Journal, LaunchError> {
        let project = self.project(directory)?;
        project.check_owner()?;
        let config = Config::gather(Some(&project.config_file()), &self.process.environment, Vec::new())?;
        let open = || project.open_journal(config.journal());
        Ok(self.process.journals.get_or_open(&project.journal, open)?)
    }

    fn worktrees(&self, directory: &Path) -> Result<PathBuf, LaunchError> {
        Ok(fork_worktrees::folder(&self.project(directory)?, &self.process.environment)?)
    }

    fn save_rules(&self, directory: &Path, rules: Vec<ApprovalRule>) -> Result<(), LaunchError> {
        let saved = SavedRules::new(&self.project(directory)?, &self.process.environment);
        let failed = |error| CliError::failed(format!("cannot save the approval: {error}"));
        Ok(saved.add(rules).map_err(failed)?)
    }

    fn projects(&self) -> Vec<PathBuf> {
        let Ok(own) = self.project(&self.directory) else { return Vec::new() };
        let is_other = |directory: &PathBuf| {
            // A directory that has become part of another project has no journal of its own.
            let project = self.project(directory).ok().filter(|project| project.journal != own.journal);
            project.is_some_and(|project| project.home() == directory && project.has_own_runs())
        };
        let others = own.list().read().into_iter().filter(is_other);
        std::iter::once(self.directory.clone()).chain(others).collect()
    }

    fn tasks(&self, directory: &Path) -> Result<Vec<NamedTask>, LaunchError> {
        let project = self.project(directory)?;
        let loaded = template_source::gather(&project, &self.process.environment);
        let workflows = workflow_registry::workflows(&project, &self.process.environment);
        let described = loaded.registry.all().into_iter().map(|found| NamedTask {
            name: found.template.name.clone(),
            kind: NamedTaskKind::Template,
            description: found.template.description.clone(),
            inputs: run::callable(&found.template).params,
            output_schema: output_schema(&found.template, &project),
            text: found.text.text.clone(),
        });
        let mut tasks: Vec<NamedTask> = described.collect();
        for workflow in workflows {
            // A workflow hides a template of its name, as in `fusee task`.
            tasks.retain(|task| task.name != workflow.name);
            let Callable { params, .. } = workflow.callable();
            tasks.push(NamedTask {
                description: first_comment(&workflow.text),
                name: workflow.name,
                kind: NamedTaskKind::Workflow,
                inputs: params,
                output_schema: None,
                text: workflow.text,
            });
        }
        tasks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tasks)
    }

    fn markdown_commands(&self, directory: &Path) -> Vec<(String, String)> {
        markdown_commands::list(directory).into_iter().map(|found| (found.name, found.summary)).collect()
    }

    fn expand_command(&self, directory: &Path, line: &str) -> Option<String> {
        markdown_commands::expand(line, directory)
    }

    fn prompt(&self, directory: &Path) -> Result<Vec<PromptPart>, LaunchError> {
        Ok(plan::sections("", &self.project(directory)?, &self.config(directory)?)?)
    }

    fn plan(&self, request: LaunchRequest) -> BoxFuture<'_, Result<LaunchPlan, LaunchError>> {
        Box::pin(async move { Box::pin(self.planned(&request)).await.map_err(LaunchError::from) })
    }

    fn export(&self, directory: &Path, run: &RunId, format: RunExport) -> Result<String, LaunchError> {
        let journal = self.project(directory)?.journal_with_runs()?;
        Ok(match format {
            RunExport::Cassette => cassette::text(&journal, run)?,
            RunExport::Atif => run_export::trajectory(&journal, run)?,
        })
    }
}

/// A server of a request as if it were configured.
fn mcp_entry(server: &LaunchMcpServer) -> McpEntry {
    let reach = match server.transport.clone() {
        LaunchMcpTransport::Program { command, env } => McpTransport::Program { command, env },
        LaunchMcpTransport::Address { url, headers } => {
            McpTransport::Address { url, headers, login: LoginEntry::default() }
        }
    };
    McpEntry {
        name: server.name.clone(),
        reach,
        allow: None,
        block: Vec::new(),
        timeout_s: MCP_TIMEOUT_S,
        origin: ValueOrigin::BuiltIn,
    }
}

/// What a request asks to run, checked completely.
fn target(work: &LaunchWork, project: &Project, process: &Process) -> Result<RunTarget, CliError> {
    let loaded = || template_source::gather(project, &process.environment);
    let ready = |title: String, named: &str, words: &[String], loaded: LoadedTemplates| {
        let task = task::resolve(title, named, words, loaded, Vec::new(), project, process)?;
        Ok(RunTarget::Task(Box::new(task)))
    };
    match work {
        LaunchWork::Request(words) if words.trim().is_empty() => Err(CliError::usage("the request is empty")),
        LaunchWork::Request(words) => Ok(RunTarget::Request(words.clone())),
        LaunchWork::Workflow(text) => ready(text.clone(), text, &[], loaded()),
        LaunchWork::Named { name, inputs } => {
            let words = input_words(inputs);
            let title = std::iter::once(name).chain(&words).map(String::as_str).collect::<Vec<_>>().join(" ");
            ready(title, name, &words, loaded())
        }
        LaunchWork::Review { request, base, paths } => {
            let review = CodeReview { paths: paths.clone(), base: base.clone(), ..CodeReview::default() };
            let request = if request.trim().is_empty() { review.request() } else { request.clone() };
            Ok(RunTarget::Review(Box::new(review), request))
        }
    }
}

/// Inputs as the words of a command line.
fn input_words(inputs: &Map<String, Value>) -> Vec<String> {
    let word = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    inputs.iter().map(word).collect()
}

/// The run to continue, which must be one of the user's own.
fn earlier(run: &RunId, project: &Project) -> Result<ContinuedRun, CliError> {
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    Ok(ContinuedRun { settings: run::settings_of(&journal, run)?, run: run.clone() })
}

/// The JSON Schema that a template declares for its output: a type, or a file in the project.
fn output_schema(template: &Template, project: &Project) -> Option<Value> {
    let schema = template.output_format.as_ref()?.schema.as_deref()?;
    match schema {
        "array" | "object" | "string" | "number" | "boolean" => Some(json!({ "type": schema })),
        file => {
            let text = std::fs::read_to_string(project.home().join(file)).ok()?;
            serde_json::from_str(&text).ok()
        }
    }
}

/// The comment at the top of a workflow, as its description.
fn first_comment(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.trim_start().strip_prefix(';'));
    lines.map(|line| line.trim_start_matches(';').trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn unknown_api(word: &str) -> CliError {
    CliError::usage(format!("unknown API `{word}`")).help(format!("known APIs: {}", config::APIS.join(", ")))
}

impl From<CliError> for LaunchError {
    fn from(error: CliError) -> Self {
        let kind = match error.exit {
            ExitStatus::Usage => LaunchErrorKind::Usage,
            ExitStatus::Unreachable => LaunchErrorKind::Unreachable,
            _ => LaunchErrorKind::Failed,
        };
        Self { kind, message: error.message.trim_end().to_owned(), help: error.help }
    }
}
