//! The templates a command can use: the project's, the user's and the built-in ones.

use std::sync::Arc;

use fusee::engine::lang::Callable;
use fusee::engine::run::{RunKind, RunSpec, TemplateSource, callable};
use fusee::engine::template::{
    LoadedTemplates, TemplateFolder, TemplateLayer, TemplateRegistry, load, shipped,
};
use fusee::engine::text::render::{self, Colour};
use fusee::engine::text::{Diagnostic, Severity};

use crate::process::environment::Environment;
use crate::process::stdio;
use crate::project::Project;

/// Loads all templates. Invalid ones are skipped and reported in the result.
pub(crate) fn gather(project: &Project, environment: &Environment) -> LoadedTemplates {
    let mut folders = vec![TemplateFolder {
        path: project.home().join(".fusee/templates"),
        layer: TemplateLayer::Project,
        shown_below: Some(project.home().to_owned()),
    }];
    if let Some(folder) = environment.config_folder() {
        folders.push(TemplateFolder {
            path: folder.join("templates"),
            layer: TemplateLayer::User,
            shown_below: None,
        });
    }
    let mut loaded = load(&folders);
    for shipped in shipped() {
        // Built-in names are unique; a test reads them all.
        let _ = loaded.registry.register(shipped);
    }
    loaded
}

/// Templates of a long-lived session: reloaded for each task so that edits take effect at once. A template
/// broken by an edit keeps its last valid version, with a warning.
#[derive(Default)]
pub(crate) struct ReloadingTemplates {
    /// Templates loaded last.
    last: TemplateRegistry,
}

impl ReloadingTemplates {
    /// Loads all templates, and returns a warning about the invalid ones.
    pub(crate) fn gather(
        &mut self,
        project: &Project,
        environment: &Environment,
    ) -> (LoadedTemplates, Option<String>) {
        let mut loaded = gather(project, environment);
        let kept = loaded.keep(&self.last);
        self.last = loaded.registry.clone();
        let said = problems(&loaded).map(|said| match kept.as_slice() {
            [] => said,
            kept => format!("{said}still using the version before the last edit: `{}`\n", kept.join("`, `")),
        });
        (loaded, said)
    }
}

/// Templates in the form a run takes.
pub(crate) fn for_run(loaded: LoadedTemplates, project: &Project) -> TemplateSource {
    TemplateSource {
        registry: Arc::new(loaded.registry),
        memory_file: Some(project.memory_file(&project.directory)),
    }
}

/// The templates a run with these settings needs: none for a plain request, unless its prompt can delegate.
pub(crate) fn needed_by_run(
    settings: &RunSpec,
    project: &Project,
    environment: &Environment,
) -> TemplateSource {
    if settings.work == RunKind::Request && settings.prompt.is_none() {
        return TemplateSource::default();
    }
    for_run(gather(project, environment), project)
}

/// Warns about skipped templates on one line each, since the command may not need them.
pub(crate) fn warn(loaded: &LoadedTemplates) {
    let mut summary = String::new();
    let problems: Vec<_> = loaded.problems.iter().filter(|it| it.severity == Severity::Error).collect();
    for of_one in problems.chunk_by(|one, next| one.file == next.file) {
        let Diagnostic { file, message, start, .. } = of_one[0];
        let more = match of_one.len() - 1 {
            0 => String::new(),
            1 => " (and one more error)".to_owned(),
            more => format!(" (and {more} more errors)"),
        };
        let at = format!("{file}:{}:{}", start.line, start.column);
        summary.push_str(&format!(
            "warning: skipped {at}: {message}{more}; run `fusee check {file}` for details\n"
        ));
    }
    if !summary.is_empty() {
        stdio::error(&summary);
    }
}

/// Rendered diagnostics of the skipped templates, if any.
pub(crate) fn problems(loaded: &LoadedTemplates) -> Option<String> {
    let source = |file: &str| loaded.sources.iter().find(|source| &**source.name() == file);
    let text = render::terminal(&loaded.problems, source, Colour::Never);
    (!loaded.problems.is_empty()).then(|| format!("invalid templates are skipped:\n{text}"))
}

/// The templates as workflows call them.
pub(crate) fn callables(registry: &TemplateRegistry) -> Vec<Callable> {
    registry.all().into_iter().map(|known| callable(&known.template)).collect()
}
