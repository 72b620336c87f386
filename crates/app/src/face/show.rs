//! Which face a command has: by its flags, the configuration and what is at the other end of its streams.

use std::io;
use std::sync::Arc;

use fusee_engine::agent::TaskOutcome;
use fusee_engine::approval::{Approver, Nobody};
use fusee_engine::flow::{Benchmark, OutputMode, PhaseLog};
use fusee_engine::model::CancellationToken;
use fusee_engine::model::Price;
use fusee_engine::run::Settings;
use fusee_engine::text::render::Colour;

use super::Face;
use super::json::Json;
use super::phases::Phases;
use super::plain::Plain;
use super::terminal::{ASCII, Glyphs, Looks, Terminal, UNICODE, size_of_stderr};
use crate::approvals::Approvals;
use crate::approver::Person;
use crate::benchmark;
use crate::config::Config;
use crate::environment::Environment;
use crate::output;

/// What a face knows of a run beforehand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) max_turns: u32,
    pub(crate) max_tokens: u64,
    /// Whether its last words are one line.
    pub(crate) brief: bool,
    pub(crate) answer: Wording,
    /// What its tokens cost, where that is known.
    pub(crate) price: Option<Price>,
}

/// What becomes of the model's last words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wording {
    /// They are the answer.
    #[default]
    AsSaid,
    /// They are JSON, and the answer is written from it.
    Anew,
}

impl Plan {
    /// Of a run with these settings.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            max_turns: settings.limits.max_turns,
            max_tokens: settings.limits.max_tokens,
            brief: settings.flow.output == OutputMode::Runtime,
            answer: if settings.code_review.is_some() { Wording::Anew } else { Wording::AsSaid },
            price: settings.price,
        }
    }

    /// Whether these words of the model are only what the answer is written from.
    pub(crate) fn is_draft(&self, words: &str) -> bool {
        self.answer == Wording::Anew && words.trim_start().starts_with(['{', '`'])
    }
}

/// How a command shows things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    kind: Kind,
    /// Whether stderr gets colours.
    pub(crate) colour: bool,
    glyphs: &'static Glyphs,
    stdin_is_terminal: bool,
    stdout_is_terminal: bool,
    /// Then stdout belongs to one line.
    benchmark: Option<Benchmark>,
    /// Where phase events are shown.
    phase_log: PhaseLog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Plain,
    /// As plain, without the answer.
    Quiet,
    Live,
}

impl Show {
    /// Decides.
    pub(crate) fn new(json: bool, config: &Config, environment: &Environment) -> Self {
        let terminals = environment.terminals();
        let dumb = environment.text("TERM") == Some("dumb");
        // A log of a build that looks like a terminal is read later, as text.
        let live = terminals.stderr && !dumb && environment.variable("CI").is_none();
        let kind = match (json, live) {
            (true, _) => Kind::Json,
            (false, true) => Kind::Live,
            (false, false) => Kind::Plain,
        };
        Self {
            kind,
            colour: colour(config, environment, terminals.stderr),
            glyphs: if knows_unicode(environment) { &UNICODE } else { &ASCII },
            stdin_is_terminal: terminals.stdin,
            stdout_is_terminal: terminals.stdout,
            benchmark: None,
            phase_log: PhaseLog::Off,
        }
    }

    /// For a command whose stdout is a result: with `json`, nothing but that is written there.
    pub(crate) fn for_result(json: bool, config: &Config, environment: &Environment) -> Self {
        let show = Self::new(false, config, environment);
        if json { Self { kind: Kind::Quiet, ..show } } else { show }
    }

    /// The same for a task of a benchmark: stdout is left to its line.
    #[must_use]
    pub(crate) fn for_benchmark(self, benchmark: Option<Benchmark>) -> Self {
        Self { benchmark, ..self }
    }

    /// The same with phase events where the run's settings want them.
    #[must_use]
    pub(crate) fn with_phases(self, phase_log: PhaseLog) -> Self {
        Self { phase_log, ..self }
    }

    /// What stdout gets at the end of a task of a benchmark.
    pub(crate) fn last_line(&self, outcome: &TaskOutcome) -> Option<String> {
        self.benchmark.map(|benchmark| benchmark::line(benchmark, outcome))
    }

    /// Tells what is odd in the configuration.
    pub(crate) fn warn(&self, config: &Config) {
        let colour = if self.colour { Colour::Always } else { Colour::Never };
        if let Some(text) = config.warnings(colour) {
            output::error(&text);
        }
    }

    /// Whether somebody sees it live, and a first ctrl-c should be explained.
    pub(crate) fn is_live(&self) -> bool {
        self.kind == Kind::Live
    }

    /// The face for a run.
    pub(crate) fn face(&self, plan: Plan, cancel: CancellationToken) -> Box<dyn Face> {
        let face = self.usual_face(plan, cancel);
        if self.phases_go_to_stdout() { Box::new(Phases::new(io::stdout(), face)) } else { face }
    }

    /// Not where stdout is taken: by events, which hold phases anyway, by a result, by a benchmark's line, or by the
    /// terminal that a live view is drawn on.
    fn phases_go_to_stdout(&self) -> bool {
        let free = match self.kind {
            Kind::Json | Kind::Quiet => false,
            Kind::Plain => true,
            Kind::Live => !self.stdout_is_terminal,
        };
        free && self.benchmark.is_none() && matches!(self.phase_log, PhaseLog::Stdout | PhaseLog::Both)
    }

    fn usual_face(&self, plan: Plan, cancel: CancellationToken) -> Box<dyn Face> {
        match self.kind {
            Kind::Json if self.benchmark.is_some() => Box::new(Json::new(io::stderr())),
            Kind::Json => Box::new(Json::new(io::stdout())),
            Kind::Plain if self.benchmark.is_some() => {
                Box::new(Plain::new(io::sink(), io::BufWriter::new(io::stderr()), plan))
            }
            Kind::Plain => Box::new(Plain::new(io::stdout(), io::BufWriter::new(io::stderr()), plan)),
            Kind::Quiet => Box::new(Plain::new(io::sink(), io::BufWriter::new(io::stderr()), plan)),
            Kind::Live => {
                let looks = Looks {
                    colour: self.colour,
                    glyphs: self.glyphs,
                    answer_shows: self.stdout_is_terminal || self.benchmark.is_some(),
                };
                Box::new(Terminal::new(io::stderr(), plan, looks, cancel, size_of_stderr))
            }
        }
    }

    /// The signs that the terminal knows.
    pub(crate) fn glyphs(&self) -> &'static Glyphs {
        self.glyphs
    }

    /// Whether there is a person to ask.
    pub(crate) fn can_ask(&self) -> bool {
        self.kind == Kind::Live && self.stdin_is_terminal
    }

    /// Who is asked. Without a terminal there is nobody.
    pub(crate) fn approver(&self, approvals: Approvals) -> Arc<dyn Approver> {
        if self.can_ask() { Arc::new(Person::new(approvals)) } else { Arc::new(Nobody) }
    }
}

/// Whether a stream gets colours.
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

fn knows_unicode(environment: &Environment) -> bool {
    // The first of these that is set decides, and no locale at all is most often a container that shows it well.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| environment.text(name));
    locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}
