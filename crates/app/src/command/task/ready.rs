//! Resolves and checks the task after `/task` in the chat, like `fusee task` but without printing anything.

use fusee_engine::dispatch;
use fusee_engine::lang::{Limits, Machine};
use fusee_engine::run::{Work, Workflow};
use fusee_engine::template::Loaded;

use super::template::{self, Asked};
use super::{source, told};
use crate::command::Process;
use crate::failure::Failure;
use crate::project::Project;
use crate::templates::Standing;

/// A checked task.
pub(crate) struct Ready {
    pub(crate) work: Work,
    /// The model its template requests.
    pub(crate) model: Option<String>,
    /// The templates as loaded for it.
    pub(crate) loaded: Loaded,
    /// Warnings that do not prevent the run.
    pub(crate) notes: Vec<String>,
}

/// Resolves a line to a task and checks it completely.
pub(crate) fn ready(
    line: &str,
    standing: &mut Standing,
    project: &Project,
    process: &Process,
) -> Result<Ready, Failure> {
    let line = line.trim();
    let words = match line.starts_with('(') {
        true => vec![line.to_owned()],
        false => {
            dispatch::split(line).map_err(|problem| Failure::usage(format!("`/task {line}`: {problem}")))?
        }
    };
    let Some((named, inputs)) = words.split_first() else {
        return Err(Failure::usage("missing task")
            .help("name a template or workflow and its inputs: /task NAME key=value, or /task (+ 1 2)"));
    };
    if named == "-" {
        return Err(Failure::usage("stdin is used by the chat").help("name a .fusee file"));
    }
    let (loaded, said) = standing.gather(project, &process.environment);
    let notes: Vec<String> = said.into_iter().collect();
    if source::is_workflow(named, project, process) {
        return workflow(named, inputs, loaded, notes, project, process);
    }
    match template::asked(named, inputs, &loaded, &source::names(project, process))? {
        Asked::Workflow(text) => workflow(&text, &[], loaded, notes, project, process),
        Asked::Tool(name) => {
            workflow(&template::tool_call(&name, inputs)?, &[], loaded, notes, project, process)
        }
        Asked::Template { found, words, guessed } => {
            let mut notes = notes;
            notes.extend(guessed.then(|| template::guess(&found)));
            let work = template::work(&found, &words)?;
            let model = template::model(&found.template);
            Ok(Ready { work, model, loaded, notes })
        }
    }
}

fn workflow(
    named: &str,
    words: &[String],
    loaded: Loaded,
    mut notes: Vec<String>,
    project: &Project,
    process: &Process,
) -> Result<Ready, Failure> {
    let checked = source::checked(named, project, &loaded, process)?;
    let checked = checked.map_err(|problems| Failure::rendered(problems.rendered()))?;
    notes.extend(checked.oddities());
    let wrong = |message: String| Failure::usage(message).help(told::INPUTS_HELP);
    let inputs = source::inputs(words, &checked.program).map_err(wrong)?;
    if let Err(problems) = Machine::start(&checked.program, &inputs, Limits::default()) {
        let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        return Err(wrong(messages.join("; ")));
    }
    let work = Work::Workflow(Box::new(Workflow { inputs, ..checked.workflow }));
    Ok(Ready { work, model: None, loaded, notes })
}
