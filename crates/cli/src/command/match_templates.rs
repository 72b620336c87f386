//! `fusee match`: finds the templates that match a request.

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee::engine::template::{MatchOptions, TemplateMatch};
use serde_json::{Value, json};

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::template_source;

/// Find the templates that match a request in plain words.
///
/// Nothing is run. Scores range from 0 to 1; templates below the threshold are not listed.
#[derive(Args)]
pub(crate) struct MatchArgs {
    /// The request
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Maximum number of templates to list
    #[arg(long, value_name = "N", default_value_t = MatchOptions::default().limit)]
    limit: usize,
    /// Lowest score to list
    #[arg(long, value_name = "SCORE", default_value_t = MatchOptions::default().threshold)]
    threshold: f64,
}

/// Runs the command.
pub(crate) fn matching(args: &MatchArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let loaded = template_source::gather(&project, &process.environment);
    template_source::warn(&loaded);
    let rule = MatchOptions { threshold: args.threshold, limit: args.limit };
    let found = loaded.registry.find_matching_tasks(&args.words.join(" "), &rule);
    if args.json {
        let list: Vec<Value> = found.iter().map(described).collect();
        stdio::print_json(&format!("{}\n", Value::from(list)))?;
    } else if found.is_empty() {
        stdio::error("no template matches; `fusee templates` lists all templates\n");
    } else {
        let lines = found.iter().map(|found| {
            let template = &found.registered.template;
            format!("{:.2}  {}  {}\n", found.score, template.name, template.description)
        });
        stdio::print(&lines.collect::<String>())?;
    }
    Ok(ExitStatus::Completed)
}

fn described(found: &TemplateMatch) -> Value {
    let template = &found.registered.template;
    json!({
        "score": found.score,
        "name": template.name,
        "subtype": template.subtype(),
        "description": template.description,
    })
}
