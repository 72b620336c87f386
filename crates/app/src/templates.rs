//! The templates a command can use: the project's, the user's and those of the product.

use std::sync::Arc;

use fusee_engine::lang::{Callable, Param, ParamType};
use fusee_engine::run::{Settings, Templates, Work};
use fusee_engine::template::{Folder, InputType, Layer, Loaded, Registry, Template, load, shipped};
use fusee_engine::text::render::{self, Colour};
use fusee_engine::text::{Diagnostic, Severity};

use crate::environment::Environment;
use crate::output;
use crate::project::Project;

/// Finds them all. One with mistakes is left out and told of.
pub(crate) fn gather(project: &Project, environment: &Environment) -> Loaded {
    let mut folders = vec![Folder {
        path: project.home().join(".fusee/templates"),
        layer: Layer::Project,
        shown_below: Some(project.home().to_owned()),
    }];
    if let Some(folder) = environment.config_folder() {
        folders.push(Folder { path: folder.join("templates"), layer: Layer::User, shown_below: None });
    }
    let mut loaded = load(&folders);
    for shipped in shipped() {
        // Their names differ; a test reads them all.
        let _ = loaded.registry.register_template(shipped);
    }
    loaded
}

/// The templates of something that lasts: read anew for each task, so that an edit holds at once. One that an edit broke
/// stays as it was, and that is said.
#[derive(Default)]
pub(crate) struct Standing {
    /// Those that were found last.
    last: Registry,
}

impl Standing {
    /// Finds them all, with what should be known of it.
    pub(crate) fn gather(
        &mut self,
        project: &Project,
        environment: &Environment,
    ) -> (Loaded, Option<String>) {
        let mut loaded = gather(project, environment);
        let kept = loaded.keep(&self.last);
        self.last = loaded.registry.clone();
        let said = problems(&loaded).map(|said| match kept.as_slice() {
            [] => said,
            kept => format!("{said}as before the last edit: `{}`\n", kept.join("`, `")),
        });
        (loaded, said)
    }
}

/// What a run is given of them.
pub(crate) fn for_run(loaded: Loaded, project: &Project) -> Templates {
    Templates {
        registry: Arc::new(loaded.registry),
        memory_file: Some(project.memory_file(&project.directory)),
    }
}

/// What a run with these settings is given: a plain request needs none, unless its prompt may hand parts over.
pub(crate) fn needed(settings: &Settings, project: &Project, environment: &Environment) -> Templates {
    if settings.work == Work::Request && settings.prompt.is_none() {
        return Templates::default();
    }
    for_run(gather(project, environment), project)
}

/// Says which were left out, a line each: who wants to use another one is not told all about them.
pub(crate) fn warn(loaded: &Loaded) {
    let mut told = String::new();
    let problems: Vec<_> = loaded.problems.iter().filter(|it| it.severity == Severity::Error).collect();
    for of_one in problems.chunk_by(|one, next| one.file == next.file) {
        let Diagnostic { file, message, start, .. } = of_one[0];
        let more = match of_one.len() - 1 {
            0 => String::new(),
            1 => " (and one more error)".to_owned(),
            more => format!(" (and {more} more errors)"),
        };
        let at = format!("{file}:{}:{}", start.line, start.column);
        told.push_str(&format!("warning: left out {at}: {message}{more}; `fusee check {file}` tells all\n"));
    }
    if !told.is_empty() {
        output::error(&told);
    }
}

/// What is wrong with those that were left out, if anything.
pub(crate) fn problems(loaded: &Loaded) -> Option<String> {
    let source = |file: &str| loaded.sources.iter().find(|source| &**source.name() == file);
    let text = render::terminal(&loaded.problems, source, Colour::Never);
    (!loaded.problems.is_empty()).then(|| format!("templates with mistakes are left out:\n{text}"))
}

/// The templates as a workflow sees them.
pub(crate) fn callables(registry: &Registry) -> Vec<Callable> {
    registry.all().into_iter().map(|known| callable(&known.template)).collect()
}

fn callable(template: &Template) -> Callable {
    let params = template.inputs.iter().map(|input| Param {
        name: input.name.clone(),
        kind: match input.kind {
            // Whatever can be shown is text enough for a template.
            InputType::String => ParamType::Any,
            InputType::Number => ParamType::Number,
            InputType::Boolean => ParamType::Boolean,
            InputType::Array => ParamType::Array,
            InputType::Object => ParamType::Object,
        },
        required: input.default.is_none(),
        default: input.default.clone(),
        doc: input.description.clone(),
        aliases: Vec::new(),
    });
    Callable::task(&template.name, params.collect::<Vec<_>>())
}
