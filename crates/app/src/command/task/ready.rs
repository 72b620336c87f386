//! What a conversation runs after `/task`: the same that `fusee task` would, found and checked without a word printed.

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

/// A task that can run.
pub(crate) struct Ready {
    pub(crate) work: Work,
    /// The model that its template asks for.
    pub(crate) model: Option<String>,
    /// The templates as they are now.
    pub(crate) loaded: Loaded,
    /// What is odd and stops nothing.
    pub(crate) notes: Vec<String>,
}

/// Finds what a line means and checks it as a whole.
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
        return Err(Failure::usage("there is no task: what is to be run?")
            .help("a template or workflow with its inputs: /task NAME key=value, or /task (+ 1 2)"));
    };
    if named == "-" {
        return Err(Failure::usage("stdin belongs to the conversation").help("name a .fusee file"));
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
