//! Selects the UI of a command from its flags, the configuration and whether its streams are terminals.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fusee::engine::agent::TaskOutcome;
use fusee::engine::agent::flow::{BenchmarkSettings, OutputMode, PhaseLog};
use fusee::engine::approval::{AnsweredOutside, ApprovalMode, Approver, NonInteractive};
use fusee::engine::model::CancellationToken;
use fusee::engine::model::Price;
use fusee::engine::run::RunSpec;
use fusee::engine::text::render::Colour;

use super::Ui;
use super::json::JsonLines;
use super::notifier::Notifier;
use super::phases::PhaseUi;
use super::plain::PlainUi;
use super::terminal::{ASCII, Appearance, Glyphs, TerminalUi, UNICODE, size_of_stderr};
use crate::config::Config;
use crate::process::environment::Environment;
use crate::process::stdio;
use crate::project::saved_rules::SavedRules;
use crate::ui::benchmark;
use crate::ui::stdin_approver::StdinApprover;

/// Properties of a run that a UI needs before the first event.
#[derive(Clone, Debug)]
pub(crate) struct RunHeader {
    /// The directory the run works in, if a UI may read the files that a call changes.
    pub(crate) workspace: Option<Arc<Path>>,
    pub(crate) max_turns: u32,
    pub(crate) max_tokens: u64,
    /// Whether the summary is a single line.
    pub(crate) brief: bool,
    pub(crate) answer: AnswerStyle,
    /// Price of the model's tokens, if known.
    pub(crate) price: Option<Price>,
}

/// How the final answer relates to the model's last message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerStyle {
    /// The message is the answer.
    #[default]
    Verbatim,
    /// The message is JSON, and the answer is rendered from it.
    Rendered,
}

impl RunHeader {
    /// Derives the header from a run's settings.
    pub(crate) fn from_spec(settings: &RunSpec) -> Self {
        Self {
            workspace: Some(settings.workspace.as_path().into()),
            max_turns: settings.limits.max_turns,
            max_tokens: settings.limits.max_tokens,
            brief: settings.flow.output == OutputMode::Runtime,
            answer: if settings.code_review.is_some() {
                AnswerStyle::Rendered
            } else {
                AnswerStyle::Verbatim
            },
            price: settings.price,
        }
    }

    /// Whether this message is only the JSON that the answer is rendered from.
    pub(crate) fn is_draft(&self, words: &str) -> bool {
        self.answer == AnswerStyle::Rendered && words.trim_start().starts_with(['{', '`'])
    }
}

/// How a command presents its output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UiOptions {
    kind: UiKind,
    /// Whether stderr is coloured.
    pub(crate) colour: bool,
    glyphs: &'static Glyphs,
    stdin_is_terminal: bool,
    stdout_is_terminal: bool,
    /// If set, stdout carries only the benchmark's result line.
    benchmark: Option<BenchmarkSettings>,
    /// Where phase events are written.
    phase_log: PhaseLog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UiKind {
    Json,
    Plain,
    /// Like `PlainUi`, but without the answer on stdout.
    Quiet,
    Live,
    /// Nothing is displayed or said: another front end does that.
    Silent,
    /// Nothing is displayed: the run works in the background, and questions wait for an answer from outside. What is
    /// said before it starts reaches the terminal.
    Detached,
}

impl UiOptions {
    /// Selects the mode from the `--json` flag, the configuration and the environment.
    pub(crate) fn new(json: bool, config: &Config, environment: &Environment) -> Self {
        let terminals = environment.terminals();
        let dumb = environment.text("TERM") == Some("dumb");
        // A CI log is read later as text, even if its stream looks like a terminal.
        let live = terminals.stderr && !dumb && environment.variable("CI").is_none();
        let kind = match (json, live) {
            (true, _) => UiKind::Json,
            (false, true) => UiKind::Live,
            (false, false) => UiKind::Plain,
        };
        Self {
            kind,
            colour: colour(config, environment, terminals.stderr),
            glyphs: if supports_unicode(environment) { &UNICODE } else { &ASCII },
            stdin_is_terminal: terminals.stdin,
            stdout_is_terminal: terminals.stdout,
            benchmark: None,
            phase_log: PhaseLog::Off,
        }
    }

    /// For a command whose stdout is its result: with `json`, nothing else is written there.
    pub(crate) fn for_result(json: bool, config: &Config, environment: &Environment) -> Self {
        let show = Self::new(false, config, environment);
        if json { Self { kind: UiKind::Quiet, ..show } } else { show }
    }

    /// For a run that another front end presents.
    pub(crate) fn silent(config: &Config, environment: &Environment) -> Self {
        Self { kind: UiKind::Silent, ..Self::new(false, config, environment) }
    }

    /// For a run that works in the background, if it is one.
    #[must_use]
    pub(crate) fn in_background(self, detached: bool) -> Self {
        if detached { Self { kind: UiKind::Detached, ..self } } else { self }
    }

    /// Whether the run works in the background.
    pub(crate) fn is_detached(&self) -> bool {
        self.kind == UiKind::Detached
    }

    /// Whether nothing is displayed or said.
    pub(crate) fn is_silent(&self) -> bool {
        self.kind == UiKind::Silent
    }

    /// For a benchmark task: stdout carries only the result line.
    #[must_use]
    pub(crate) fn for_benchmark(self, benchmark: Option<BenchmarkSettings>) -> Self {
        Self { benchmark, ..self }
    }

    /// Writes phase events where the run's settings request them.
    #[must_use]
    pub(crate) fn with_phases(self, phase_log: PhaseLog) -> Self {
        Self { phase_log, ..self }
    }

    /// The benchmark's result line for stdout, if this is a benchmark task.
    pub(crate) fn last_line(&self, outcome: &TaskOutcome) -> Option<String> {
        self.benchmark.map(|benchmark| benchmark::line(benchmark, outcome))
    }

    /// Prints the configuration's warnings to stderr.
    pub(crate) fn warn(&self, config: &Config) {
        if self.is_silent() {
            return;
        }
        let colour = if self.colour { Colour::Always } else { Colour::Never };
        if let Some(text) = config.warnings(colour) {
            stdio::error_styled(&text);
        }
    }

    /// Warns that calls which need approval will be refused.
    pub(crate) fn warn_if_nobody_can_be_asked(&self, approve: ApprovalMode) {
        if approve == ApprovalMode::Ask && !self.can_ask() && !self.is_silent() {
            stdio::error(
                "warning: there is no terminal to ask on, so every call that needs approval will be refused \
                 (--approve ask); --approve auto runs what the sandbox confines\n",
            );
        }
    }

    /// Whether output is live on a terminal, so that the first ctrl-c should be explained.
    pub(crate) fn is_live(&self) -> bool {
        self.kind == UiKind::Live
    }

    /// Creates the UI for a run.
    pub(crate) fn open_ui(&self, plan: RunHeader, cancel: CancellationToken) -> Box<dyn Ui> {
        let ui = self.base_ui(plan, cancel);
        if !matches!(self.phase_log, PhaseLog::Stdout | PhaseLog::Both) {
            return ui;
        }
        match self.kind {
            // Stdout is taken: by events, which include the phases anyway, by a result, or by a benchmark's line.
            UiKind::Silent | UiKind::Detached => ui,
            UiKind::Json => Box::new(PhaseUi::beside(io::stderr(), ui)),
            UiKind::Quiet => Box::new(PhaseUi::new(io::stderr(), ui)),
            UiKind::Plain if self.benchmark.is_some() => Box::new(PhaseUi::new(io::stderr(), ui)),
            // The terminal is taken by the live view, which shows them itself.
            UiKind::Live if self.stdout_is_terminal || self.benchmark.is_some() => ui,
            UiKind::Plain | UiKind::Live => Box::new(PhaseUi::new(io::stdout(), ui)),
        }
    }

    fn base_ui(&self, plan: RunHeader, cancel: CancellationToken) -> Box<dyn Ui> {
        match self.kind {
            UiKind::Silent | UiKind::Detached => Box::new(JsonLines::new(io::sink())),
            UiKind::Json if self.benchmark.is_some() => Box::new(JsonLines::new(io::stderr())),
            UiKind::Json => Box::new(JsonLines::new(io::stdout())),
            UiKind::Plain if self.benchmark.is_some() => {
                Box::new(PlainUi::new(io::sink(), io::BufWriter::new(io::stderr()), plan))
            }
            UiKind::Plain => {
                Box::new(PlainUi::new(stdio::ExactStdout, io::BufWriter::new(io::stderr()), plan))
            }
            UiKind::Quiet => Box::new(PlainUi::new(io::sink(), io::BufWriter::new(io::stderr()), plan)),
            UiKind::Live => {
                let appearance = Appearance {
                    colour: self.colour,
                    glyphs: self.glyphs,
                    answer_shows: self.stdout_is_terminal || self.benchmark.is_some(),
                };
                Box::new(TerminalUi::new(io::stderr(), plan, appearance, cancel, size_of_stderr))
            }
        }
    }

    /// Who is told that a run needs the user or has ended. Runs of other front ends notify nobody.
    pub(crate) fn notifier(&self, config: &Config) -> Notifier {
        match self.kind {
            UiKind::Silent => Notifier::default(),
            UiKind::Live => Notifier::new(config),
            UiKind::Detached | UiKind::Json | UiKind::Plain | UiKind::Quiet => {
                Notifier::new(config).without_terminal()
            }
        }
    }

    /// The glyph set that the terminal supports.
    pub(crate) fn glyphs(&self) -> &'static Glyphs {
        self.glyphs
    }

    /// Whether a user can be asked questions.
    pub(crate) fn can_ask(&self) -> bool {
        self.is_detached() || self.kind == UiKind::Live && self.stdin_is_terminal
    }

    /// The approver for runs. Without a terminal, requests are refused; in the background, they wait for an answer from
    /// outside.
    pub(crate) fn approver(&self, approvals: SavedRules) -> Arc<dyn Approver> {
        match self.kind {
            UiKind::Detached => Arc::new(AnsweredOutside),
            _ if self.can_ask() => Arc::new(StdinApprover::new(approvals)),
            _ => Arc::new(NonInteractive),
        }
    }
}

/// Whether a stream is coloured.
pub(crate) fn colour(config: &Config, environment: &Environment, is_terminal: bool) -> bool {
    match config.text("color") {
        Some("always") => true,
        Some("never") => false,
        _ => {
            let dumb = environment.text("TERM") == Some("dumb");
            is_terminal && !dumb && environment.variable("NO_COLOR").is_none()
        }
    }
}

fn supports_unicode(environment: &Environment) -> bool {
    // The first variable that is set decides. No locale at all usually means a container with a UTF-8
    // terminal.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| environment.text(name));
    locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}
