//! Decides what the user left open: the flow (`auto`), from the model and the request, and the command that
//! verifies the work (`verify = "auto"`), from the project's files. Both are decided once, when a run starts,
//! and stored in its settings.

use fusee_journal::event::LocatedFile;
use fusee_text::test_report::TestReport;
use fusee_tools::Workspace;
use fusee_tools::test_command::test_commands;
use serde::{Deserialize, Serialize};

use super::branched::read_only_verb;
use super::fallback::FallbackMethod;
use super::location::Located;
use super::preload::{self, RequestTargets};
use super::request_files::RequestFiles;
use super::samples::{SMALL_MODEL_REPAIRS, SMALL_MODEL_SAMPLES};
use super::settings::{FlowMode, FlowSettings};

/// Value of `verify` that stands for the project's own tests.
pub const VERIFY_AUTO: &str = "auto";

/// Value of `verify` that stands for none.
pub const VERIFY_OFF: &str = "off";

/// Words that begin a question.
const QUESTION: &str = "what why how when where which who whose is are was were does do did can could should would explain \
    describe summarise summarize tell show compare";

/// Words that begin a request for an action other than a change of files, or no request at all.
const OTHER: &str = "bench benchmark build check commit compile deploy execute install launch measure profile pull push run \
    start stop test verify hello hey hi thanks thank";

/// Verbs of requests that certainly ask for a change of files.
const CHANGE: &str = "add adjust change complete convert correct create delete edit extend extract finish fix implement improve \
    insert make migrate modify move optimise optimize patch port refactor remove rename repair replace resolve rewrite simplify \
    solve update write";

/// Words before the verb of a request.
const POLITE: &str = "please kindly now then just";

/// Maximum number of files in a workspace that are looked at.
const MAX_FILES: usize = 20_000;

/// A flow that the runtime chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowChoice {
    /// What `auto` resolved to.
    pub flow: FlowMode,
    /// Why this flow was chosen.
    pub reason: String,
}

/// What is known of a run when its flow is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunTraits<'a> {
    /// The user's request.
    pub(crate) request: &'a str,
    /// Whether the model is small.
    pub(crate) small: bool,
    /// Whether the run has requirements that only a session with tools meets: an earlier conversation, a prompt
    /// of its own, review mode, a schema for the answer.
    pub(crate) needs_session: bool,
}

/// Settles `auto` in the settings of a run that starts.
pub(crate) fn resolve_auto(flow: &mut FlowSettings, run: RunTraits<'_>, workspace: &Workspace) {
    if flow.mode == FlowMode::Auto {
        let choice = if flow.stages.is_empty() { choose(flow, run, workspace) } else { configured() };
        flow.mode = choice.flow;
        // The ordinary case needs no explanation.
        flow.chosen = Some(choice).filter(|choice| choice.flow != FlowMode::Flat);
    }
    if run.small && flow.stages.is_empty() && matches!(flow.mode, FlowMode::Direct | FlowMode::Branched) {
        flow.take_samples();
    }
    let one_session = matches!(flow.mode, FlowMode::Flat | FlowMode::Staged);
    if run.small && one_session && !run.needs_session && flow.stages.is_empty() {
        let change = asks_for_change(run.request) && begins_with(run.request, CHANGE);
        flow.second_method = Some(if change { FallbackMethod::Direct } else { FallbackMethod::Answer });
    }
    let wanted = match flow.verify.as_deref() {
        Some(VERIFY_OFF) => {
            flow.verify = None;
            false
        }
        Some(VERIFY_AUTO) => true,
        Some(_) => false,
        None => flow.is_direct(),
    };
    if wanted {
        flow.find_verification(run.request, workspace);
    }
}

/// The settings of `direct` for a task that was first tried in another way.
pub(crate) fn direct_settings(mut flow: FlowSettings, request: &str, workspace: &Workspace) -> FlowSettings {
    (flow.mode, flow.second_method) = (FlowMode::Direct, None);
    flow.take_samples();
    if flow.verify.is_none() {
        flow.find_verification(request, workspace);
    }
    flow
}

impl FlowSettings {
    /// Takes several answers, unless configured otherwise.
    fn take_samples(&mut self) {
        self.samples = self.samples.or(Some(SMALL_MODEL_SAMPLES));
        // `replan_max` is the old name of this limit.
        let most = if self.replan_max > 0 { self.replan_max } else { u32::MAX };
        self.repairs = self.repairs.or(Some(SMALL_MODEL_REPAIRS.min(most)));
    }

    /// Finds the command that runs the project's own tests.
    fn find_verification(&mut self, request: &str, workspace: &Workspace) {
        let mut commands = verify_commands(request, workspace).into_iter();
        self.verify = commands.next();
        self.verify_alternatives = commands.collect();
        self.verify_found = true;
    }

    /// Drops `auto` and `off`, which only a plain request has a use for.
    pub(crate) fn drop_verify_words(&mut self) {
        self.verify = self.verify.take().filter(|command| command != VERIFY_AUTO && command != VERIFY_OFF);
    }
}

fn configured() -> FlowChoice {
    FlowChoice { flow: FlowMode::Flat, reason: "the flow has its own stages".to_owned() }
}

fn choose(flow: &FlowSettings, run: RunTraits<'_>, workspace: &Workspace) -> FlowChoice {
    let flat = |reason: &str| FlowChoice { flow: FlowMode::Flat, reason: reason.to_owned() };
    if !run.small {
        return flat("the model is not small");
    }
    if run.needs_session || !flow.tools.is_empty() {
        return flat("the run needs a session with tools");
    }
    if !asks_for_change(run.request) {
        return flat("the request does not ask for a change");
    }
    let all = workspace.files(MAX_FILES);
    match preload::request_targets(run.request, workspace, &all) {
        RequestTargets { targets, .. } if targets.is_empty() => FlowChoice {
            flow: FlowMode::Direct,
            reason: "the model is small; the files of the request are located first".to_owned(),
        },
        RequestTargets { targets, tests } => {
            let files: Vec<&str> = targets.iter().chain(&tests).map(String::as_str).collect();
            let shown = match files.as_slice() {
                [first, second, third, rest @ ..] if !rest.is_empty() => {
                    format!("{first}, {second}, {third} and {} more", rest.len())
                }
                files => files.join(", "),
            };
            FlowChoice {
                flow: FlowMode::Direct,
                reason: format!("the model is small, and the request is about {shown}"),
            }
        }
    }
}

/// Whether a request asks for a change rather than for an answer. A description that begins like a question or like
/// another action ("Check whether a year …") does, if a later sentence says what to change.
pub(crate) fn asks_for_change(request: &str) -> bool {
    if begins_with(request, CHANGE) {
        return true;
    }
    let is_question = request.trim().ends_with('?') || begins_with(request, QUESTION);
    let is_other = is_question || begins_with(request, OTHER) || read_only_verb(request).is_some();
    !is_other || sentences(request).skip(1).any(is_instruction)
}

/// The sentences and lines of a text.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = [". ", "! ", "? ", ": ", "; "];
    let lines = text.lines().flat_map(move |line| {
        let mut parts = vec![line];
        for end in ends {
            parts = parts.into_iter().flat_map(|part| part.split(end)).collect();
        }
        parts
    });
    lines.filter(|sentence| !sentence.trim().is_empty())
}

/// Whether a sentence within a longer request asks for a change of code.
fn is_instruction(sentence: &str) -> bool {
    const CODE: &str =
        "class code exercise function functions implementation method methods module stub test tests";
    let mut words = sentence.split(|c: char| !c.is_alphanumeric() && !"._-/".contains(c));
    let names_code = words.any(|word| preload::is_source(word.trim_end_matches('.')) || is_in(CODE, word));
    begins_with(sentence, CHANGE) && names_code
}

/// Whether a request asks for new or other tests, so that an answer may change them: a verb of making, then tests.
pub(crate) fn asks_for_tests(request: &str) -> bool {
    const MAKING: &str = "add change cover create extend rename replace rewrite update write";
    const BETWEEN: &str = "a an the some more new another missing unit regression";
    const TESTS: &str = "test tests testcase testcases unittest unittests";
    let words: Vec<&str> =
        request.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    (0..words.len()).any(|at| {
        let is_forbidden = at > 0 && is_in("not don't never", words[at - 1]);
        let mut rest = words[at + 1..].iter().skip_while(|word| is_in(BETWEEN, word));
        is_in(MAKING, words[at]) && !is_forbidden && rest.next().is_some_and(|word| is_in(TESTS, word))
    })
}

/// Whether the first word of a request, after words of politeness, is one of these.
fn begins_with(request: &str, list: &str) -> bool {
    let words = request.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| is_in(POLITE, word)).peekable();
    let first = words.next().unwrap_or_default();
    // "Can you fix …?" is no question.
    let asks = is_in("can could will would", first) && words.peek().is_some_and(|word| is_in("you", word));
    let verb = if asks { words.skip(1).find(|word| !is_in(POLITE, word)) } else { Some(first) };
    is_in(list, first) || verb.is_some_and(|verb| is_in(list, verb))
}

/// Whether a list of words contains a word, in any case.
fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known.eq_ignore_ascii_case(word))
}

/// The commands that may verify the work, best first.
fn verify_commands(request: &str, workspace: &Workspace) -> Vec<String> {
    let all = workspace.files(MAX_FILES);
    let RequestTargets { targets, tests } = preload::request_targets(request, workspace, &all);
    let read = |path: &str| preload::read_text(workspace, path);
    test_commands(&all, &targets, &tests, read).into_iter().map(|found| found.command).collect()
}

/// The test command and the files of a request that names a source with tests of its own.
pub(crate) fn own_tests(request: &str, workspace: &Workspace) -> Option<(String, Located)> {
    let RequestFiles { named, tests, .. } = RequestFiles::find(request, workspace);
    if named.is_empty() || tests.is_empty() {
        return None;
    }
    let all = workspace.files(MAX_FILES);
    let read = |path: &str| preload::read_text(workspace, path);
    let command = test_commands(&all, &named, &tests, read).into_iter().next()?.command;
    let target = |path: String| LocatedFile { path, reason: "named in the planned task".to_owned() };
    Some((command, Located { targets: named.into_iter().map(target).collect(), tests }))
}

/// Whether the output of a test command means that it cannot run here, or ran no test.
pub(crate) fn is_unusable(output: &str) -> bool {
    const CODES: &[&str] = &["[exit code 126]", "[exit code 127]"];
    const PHRASES: &[&str] = &[
        "No module named pytest",
        "no tests ran",
        "Ran 0 tests",
        "NO TESTS RAN",
        "Missing script: \"test\"",
        "no test specified",
        "No tests found",
        "[no test files]",
        "no such command: `test`",
        "npx canceled",
        "could not determine executable to run",
    ];
    // One of several packages may have no tests.
    let ran = TestReport::parse(output).is_some_and(|report| report.passed + report.failed > 0);
    !ran && CODES.iter().chain(PHRASES).any(|sign| output.contains(sign))
}

/// The Python module that tests could not import.
pub(crate) fn missing_module(output: &str) -> Option<&str> {
    let (_, rest) = output.split_once("No module named '")?;
    rest.split(['\'', '.']).next().filter(|module| !module.is_empty())
}

/// Whether a Python module is somewhere in the workspace.
pub(crate) fn has_module(workspace: &Workspace, module: &str) -> bool {
    let (file, folder) = (format!("{module}.py"), module);
    let is_it = |path: &String| path.split('/').any(|part| part == file || part == folder);
    workspace.files(MAX_FILES).iter().any(is_it)
}

#[cfg(test)]
mod tests;
