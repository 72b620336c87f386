//! `fusee templates`: list, show and create templates.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};

use clap::{Args, Subcommand};
use fusee::engine::run::ExitStatus;
use fusee::engine::template::{RegisteredTemplate, SKELETON, Template, TemplateInput, TemplateRegistry};
use fusee::engine::text::Source;
use serde_json::{Value, json};

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::template_source;

/// List, show and create templates.
///
/// A template is a task for a model in an XML file: instructions, inputs, tools, limits, and the expected
/// form of the answer. The project's templates are in .fusee/templates, yours in ~/.config/fusee/templates.
/// Project templates shadow yours, and both shadow built-in templates of the same name.
#[derive(Args)]
pub(crate) struct TemplatesArgs {
    #[command(subcommand)]
    command: Option<TemplatesCommand>,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum TemplatesCommand {
    /// List all templates
    List(ListArgs),
    /// Show a template's text
    Show(ShowArgs),
    /// Create a new template in .fusee/templates
    New(NewArgs),
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ShowArgs {
    /// Template name, or atomic:SUBTYPE
    name: String,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print JSON: the fields of `list`, and the text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct NewArgs {
    /// Name of the new template
    name: String,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print JSON: its name and file
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn templates(args: TemplatesArgs, process: &Process) -> Result<ExitStatus, CliError> {
    match args.command {
        None => list(&args.directory, args.json, process),
        Some(TemplatesCommand::List(list_args)) => {
            let directory =
                DirectoryFlag { directory: list_args.directory.directory.or(args.directory.directory) };
            list(&directory, list_args.json || args.json, process)
        }
        Some(TemplatesCommand::Show(mut show_args)) => {
            show_args.directory.directory = show_args.directory.directory.or(args.directory.directory);
            show_args.json |= args.json;
            show(&show_args, process)
        }
        Some(TemplatesCommand::New(mut new_args)) => {
            new_args.directory.directory = new_args.directory.directory.or(args.directory.directory);
            new_args.json |= args.json;
            new(&new_args, process)
        }
    }
}

fn list(directory: &DirectoryFlag, json: bool, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(directory.directory.as_deref(), &process.environment)?;
    let loaded = template_source::gather(&project, &process.environment);
    template_source::warn(&loaded);
    let registry = &loaded.registry;
    let text = if json { format!("{}\n", described(registry)) } else { table(registry) };
    stdio::print_as(json, &text)?;
    Ok(ExitStatus::Completed)
}

fn described(registry: &TemplateRegistry) -> Value {
    registry.all().into_iter().map(|registered| one_described(registry, registered)).collect()
}

fn one_described(registry: &TemplateRegistry, registered: &RegisteredTemplate) -> Value {
    let template = &registered.template;
    json!({
        "name": template.name,
        "subtype": template.subtype(),
        "description": template.description,
        "layer": registered.layer.as_str(),
        "file": registered.text.file,
        "inputs": template.inputs,
        "shadows": shadows(registry, registered),
    })
}

fn shadows(registry: &TemplateRegistry, registered: &RegisteredTemplate) -> Vec<String> {
    let hidden = registry.shadowed().iter().filter(|other| other.template.name == registered.template.name);
    hidden.map(|other| other.text.file.clone()).collect()
}

fn table(registry: &TemplateRegistry) -> String {
    let all = registry.all();
    let name_width = all.iter().map(|known| known.template.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for known in all {
        let template = &known.template;
        let one_line = template.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let (name, layer) = (&template.name, known.layer.as_str());
        text.push_str(&format!("{name:<name_width$}  {layer:<8}  {one_line}\n"));
        for file in shadows(registry, known) {
            text.push_str(&format!("{:<name_width$}  {:<8}  shadows {file}\n", "", ""));
        }
    }
    text.push_str(
        "\n`fusee task NAME --help` shows the inputs of a template, `fusee task NAME key=value…` runs it.\n",
    );
    text
}

fn show(args: &ShowArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let loaded = template_source::gather(&project, &process.environment);
    template_source::warn(&loaded);
    let found =
        loaded.registry.find_template(&args.name).map_err(|missing| CliError::usage(missing.to_string()))?;
    if args.json {
        let mut described = one_described(&loaded.registry, found);
        described["text"] = found.text.text.as_str().into();
        stdio::print_json(&format!("{described}\n"))?;
        return Ok(ExitStatus::Completed);
    }
    let inputs = inputs_help(&found.template.inputs);
    stdio::error(&format!("{} ({})\n{inputs}", found.text.file, found.layer.as_str()));
    stdio::print_exact(&format!("{}\n", found.text.text.trim_end()))?;
    Ok(ExitStatus::Completed)
}

fn new(args: &NewArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let text = SKELETON.replace("NAME", &args.name);
    let (template, problems) = Template::read(&Source::new("new", text.as_str()));
    if template.is_none() {
        let why = problems.iter().next().map(|problem| problem.message.clone()).unwrap_or_default();
        return Err(CliError::usage(format!("invalid template name `{}`: {why}", args.name))
            .help("names consist of letters, digits, `_`, `-`, `.`, `:`"));
    }
    let folder = project.home().join(".fusee/templates");
    let path = folder.join(format!("{}.xml", args.name.replace(':', "-")));
    let written = fs::create_dir_all(&folder)
        .and_then(|()| OpenOptions::new().write(true).create_new(true).open(&path))
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(
                CliError::usage(format!("{} already exists", path.display())).help("choose another name")
            );
        }
        Err(error) => return Err(CliError::failed(format!("cannot write {}: {error}", path.display()))),
    }
    let written = match args.json {
        true => json!({ "name": args.name, "file": path.display().to_string() }).to_string(),
        false => path.display().to_string(),
    };
    stdio::print(&format!("{written}\n"))?;
    stdio::error(&format!("next: edit it, then `fusee check {}`\n", path.display()));
    Ok(ExitStatus::Completed)
}

/// The inputs of a template as help lines.
pub(crate) fn inputs_help(inputs: &[TemplateInput]) -> String {
    let width = inputs.iter().map(|input| input.name.len()).max().unwrap_or(0);
    let line = |input: &TemplateInput| {
        let (name, kind) = (&input.name, input.kind.as_str());
        let need = match &input.default {
            None => "required".to_owned(),
            Some(default) => format!("default {default}"),
        };
        let about = input.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        format!("  {name:<width$}  {kind} ({need}){about}\n")
    };
    inputs.iter().map(line).collect()
}
