//! Context usage report: what fills the model's context window before the next message, by kind, and how much
//! a compaction would save. Reads only the journal and has no effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use fusee_journal::{Branch, Journal, RunId, StepKind, StepRow};
use fusee_model::Message;
use fusee_model::tokens::Estimator;
use fusee_tools::mcp::{McpTool, deferral};
use fusee_tools::{CommandSettings, ToolDefinition, Toolbox};
use serde_json::Value;

use super::{RunSpec, continuation, settings_of};
use crate::agent::{self, Limits, PriorConversation};

pub use crate::agent::CompactionSavings;

/// One kind of content in the context window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextShare {
    /// Name of the kind, for display.
    pub kind: String,
    /// Number of items.
    pub items: usize,
    /// Estimated number of tokens.
    pub tokens: u64,
}

/// Returns the conversation that the next message would continue.
pub fn conversation(journal: &Journal, run: &RunId) -> Result<PriorConversation, String> {
    continuation::gather(journal, run)
}

/// Returns what fills the context window after this run, in the order the model reads it.
pub fn context_window(journal: &Journal, run: &RunId) -> Result<Vec<ContextShare>, String> {
    let steps = journal.steps(run).map_err(|error| error.to_string())?;
    let settings = settings_of(journal, run).map_err(|error| error.to_string())?;
    let frame = FrameSizes::from_steps(&steps, &settings);
    let messages = continuation::gather(journal, run)?.messages;
    let mut shares = ContextShares { estimator: frame.estimator(&steps, &messages), found: Vec::new() };
    shares.add("instructions", frame.system);
    for bytes in &frame.tools {
        shares.add("tools", *bytes);
    }
    for message in &messages {
        shares.message(message);
    }
    Ok(shares.found)
}

/// Returns how much a compaction would save after this run; `None` if it is not worth it.
pub fn compaction_savings(
    journal: &Journal,
    run: &RunId,
    limits: &Limits,
) -> Result<Option<CompactionSavings>, String> {
    let shortened = continuation::gather(journal, run)?.shortened(limits);
    Ok(shortened.map(|(_, shorter)| shorter))
}

/// Sizes of what precedes the messages, in bytes: the system prompt and each tool.
#[derive(Default)]
struct FrameSizes {
    system: usize,
    tools: Vec<usize>,
}

impl FrameSizes {
    fn from_steps(steps: &[StepRow], settings: &RunSpec) -> Self {
        let main = Branch::main();
        let asked = steps.iter().filter(|step| step.kind == StepKind::Model && step.key.branch == main);
        // The newest request with a system prompt has the one in force.
        let Some(args) = asked.map(|step| &step.args).rfind(|args| args.get("system").is_some()) else {
            return Self::default();
        };
        let sizes = tool_sizes(settings);
        let names = args["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let tools = names.map(|name| sizes.get(name).copied().unwrap_or(name.len())).collect();
        Self { system: args["system"].as_str().unwrap_or_default().len(), tools }
    }

    /// Estimates tokens from bytes, calibrated with the server's latest count.
    fn estimator(&self, steps: &[StepRow], messages: &[Message]) -> Estimator {
        let mut estimator = Estimator::default();
        let bytes: usize = messages.iter().map(agent::size).sum();
        let bytes = bytes + self.system + self.tools.iter().sum::<usize>();
        let usage = |step: &StepRow| {
            let usage = step.result.as_ref()?.get("reply")?.get("usage")?;
            let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
            Some(count("input_tokens") + count("output_tokens")).filter(|tokens| *tokens > 0)
        };
        if let Some(tokens) = steps.iter().rev().find_map(usage) {
            estimator.correct(estimator.count(bytes), tokens);
        }
        estimator
    }
}

/// Returns the size of each tool's definition, in bytes.
fn tool_sizes(settings: &RunSpec) -> BTreeMap<String, usize> {
    let size = |definition: &ToolDefinition| {
        definition.name.len() + definition.description.len() + definition.parameters.to_string().len()
    };
    let mut toolbox = Toolbox::standard(CommandSettings::default());
    for offered in &settings.mcp {
        // A name that is already taken keeps its tool.
        let _ = toolbox.insert(Arc::new(McpTool::disconnected(offered.clone())));
    }
    deferral::add_access(&mut toolbox);
    let named = |definition: &ToolDefinition| (definition.name.to_string(), size(definition));
    toolbox.definitions().map(named).chain(agent::own_definitions().map(named)).collect()
}

struct ContextShares {
    estimator: Estimator,
    found: Vec<ContextShare>,
}

impl ContextShares {
    fn add(&mut self, kind: &str, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let tokens = self.estimator.count(bytes);
        match self.found.iter_mut().find(|share| share.kind == kind) {
            Some(share) => {
                share.items += 1;
                share.tokens += tokens;
            }
            None => self.found.push(ContextShare { kind: kind.to_owned(), items: 1, tokens }),
        }
    }

    fn message(&mut self, message: &Message) {
        match message {
            Message::User { text, .. } if agent::is_summary(text) => {
                self.add("summary of older turns", text.len())
            }
            Message::User { text, .. } => self.add("your messages", text.len()),
            Message::Tool { name, .. } => {
                self.add(&format!("results of {name}"), agent::size(message) - name.len())
            }
            Message::Assistant { text, reasoning, tool_calls } => {
                self.add("answers", text.len());
                self.add("reasoning", reasoning.as_ref().map_or(0, |reasoning| reasoning.text.len()));
                for call in tool_calls {
                    self.add("calls", call.name.len() + call.arguments.len());
                }
            }
        }
    }
}
