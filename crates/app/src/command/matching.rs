//! `fusee match`: finds the templates that match a request.

use clap::Args;
use fusee_engine::run::Exit;
use fusee_engine::template::{Match, Matching};
use serde_json::{Value, json};

use super::Process;
use crate::arguments::shared::Place;
use crate::failure::Failure;
use crate::project::Project;
use crate::{output, templates};

/// Find the templates that match a request in plain words.
///
/// Nothing is run. Scores range from 0 to 1; templates below the threshold are not listed.
#[derive(Args)]
pub(crate) struct MatchArgs {
    /// The request
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Maximum number of templates to list
    #[arg(long, value_name = "N", default_value_t = Matching::default().limit)]
    limit: usize,
    /// Lowest score to list
    #[arg(long, value_name = "SCORE", default_value_t = Matching::default().threshold)]
    threshold: f64,
}

/// Runs the command.
pub(crate) fn matching(args: &MatchArgs, process: &Process) -> Result<Exit, Failure> {
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let loaded = templates::gather(&project, &process.environment);
    templates::warn(&loaded);
    let rule = Matching { threshold: args.threshold, limit: args.limit };
    let found = loaded.registry.find_matching_tasks(&args.words.join(" "), &rule);
    if args.json {
        let list: Vec<Value> = found.iter().map(described).collect();
        output::print(&format!("{}\n", Value::from(list)))?;
    } else if found.is_empty() {
        output::error("no template matches; `fusee templates` lists all templates\n");
    } else {
        let lines = found.iter().map(|found| {
            let template = &found.registered.template;
            format!("{:.2}  {}  {}\n", found.score, template.name, template.description)
        });
        output::print(&lines.collect::<String>())?;
    }
    Ok(Exit::Completed)
}

fn described(found: &Match) -> Value {
    let template = &found.registered.template;
    json!({
        "score": found.score,
        "name": template.name,
        "subtype": template.subtype(),
        "description": template.description,
    })
}
