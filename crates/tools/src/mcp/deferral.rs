//! Tools of servers that are not sent with each request, because together they would fill too much of the context: a
//! model finds their definitions with `find_tools` and calls them with `call_tool`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::OfferedTool;
use crate::Toolbox;
use crate::tool::arguments::lenient;
use crate::tool::{Access, CallContext, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput};

/// Name of the tool that calls a tool that is not sent.
const CALL: &str = "call_tool";
/// Maximum definitions in one answer of `find_tools`.
const MAX_FOUND: usize = 8;
/// Maximum bytes of the definitions in one answer; the first is always shown.
const MAX_BYTES: usize = 24 * 1024;
/// Maximum bytes of a list of names.
const MAX_NAMES: usize = 4 * 1024;
/// Weights of a word found in a name, in a description, and in the names of parameters.
const WEIGHTS: [usize; 3] = [4, 2, 1];

/// Bytes that the definitions of these tools take in a request.
#[must_use]
pub fn definition_bytes(tools: &[OfferedTool]) -> usize {
    let bytes =
        |tool: &OfferedTool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    tools.iter().map(bytes).sum()
}

/// Adds `find_tools` and `call_tool` if some tools of the toolbox are not sent.
pub fn add_access(toolbox: &mut Toolbox) {
    let deferred: Vec<ToolDefinition> =
        toolbox.iter().filter(|tool| tool.is_deferred()).map(|tool| tool.definition().clone()).collect();
    if deferred.is_empty() {
        return;
    }
    // An embedder's tool with one of these names is preferred.
    let _ = toolbox.insert(Arc::new(FindTools::new(deferred)));
    let _ = toolbox.insert(Arc::new(CallTool::new()));
}

/// The definitions that are sent with each request. A toolbox without `call_tool`, such as the one of a template that
/// names its tools, has all of its tools sent.
pub fn sent(toolbox: &Toolbox) -> impl Iterator<Item = &ToolDefinition> {
    let has_access = toolbox.find(CALL).is_some();
    let is_sent = move |tool: &&Arc<dyn Tool>| !has_access || !tool.is_deferred();
    toolbox.iter().filter(is_sent).map(|tool| tool.definition())
}

/// The call that a call of `call_tool` stands for: the name of a tool of the toolbox, and its arguments. It depends only
/// on the call and the tools of the run, because a replay works it out again.
#[must_use]
pub fn inner_call(toolbox: &Toolbox, name: &str, arguments: &str) -> Option<(String, String)> {
    if name != CALL || !toolbox.iter().any(|tool| tool.is_deferred()) {
        return None;
    }
    let mut arguments = lenient(arguments).ok()?;
    let tool = toolbox.find(arguments.get("name")?.as_str()?)?.definition();
    let inner = match arguments.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => "{}".to_owned(),
        // Some models write the arguments as a string.
        Some(Value::String(text)) => text,
        Some(inner) => inner.to_string(),
    };
    (tool.name != CALL).then(|| (tool.name.to_string(), inner))
}

/// Finds tools by words.
struct FindTools {
    definition: ToolDefinition,
    tools: Vec<ToolDefinition>,
}

impl FindTools {
    fn new(tools: Vec<ToolDefinition>) -> Self {
        let definition = ToolDefinition {
            name: Cow::Borrowed("find_tools"),
            description: Cow::Owned(format!(
                "Finds tools that are not listed here, by words of their names and descriptions; shows their definitions. \
                 Call them with {CALL}. There are {}.",
                groups(&tools)
            )),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "Words, such as `create issue`; empty to list all names" }
                },
                "required": ["query"],
                "additionalProperties": false
            }),
            category: Access::Read,
            aliases: &[],
            parameter_aliases: &[("words", "query"), ("q", "query")],
        };
        Self { definition, tools }
    }

    fn find(&self, query: &str) -> String {
        let words = words(query);
        let mut found: Vec<(usize, &ToolDefinition)> = self
            .tools
            .iter()
            .map(|tool| (score(tool, &words), tool))
            .filter(|(score, _)| *score > 0)
            .collect();
        // Stable: equally good tools keep the order of their servers.
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let mut text = String::new();
        let mut shown = 0;
        for (_, tool) in found.iter().take(MAX_FOUND) {
            let entry = json!({
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            });
            let entry = entry.to_string();
            if shown > 0 && text.len() + entry.len() > MAX_BYTES {
                break;
            }
            text.push_str(&entry);
            text.push('\n');
            shown += 1;
        }
        match found.len() - shown {
            _ if found.is_empty() => {
                let lead =
                    if words.is_empty() { "The tools are" } else { "No tool has these words. The tools are" };
                format!("{lead}: {}", names(self.tools.iter()))
            }
            0 => text,
            _ => text + &format!("Further ones: {}", names(found[shown..].iter().map(|(_, tool)| *tool))),
        }
    }
}

impl Tool for FindTools {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Idempotent
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        let query = arguments["query"].as_str().unwrap_or_default().to_owned();
        Box::pin(async { Ok(PreparedCall::new(Value::Null, query)) })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, _context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        let output = match prepared.into_plan::<String>() {
            Ok(query) => ToolOutput::done(self.find(&query)),
            Err(output) => output,
        };
        Box::pin(async { output })
    }
}

/// Stands for the tools that are not sent. [`inner_call`] replaces its calls, so that only those reach it that name
/// no tool.
struct CallTool {
    definition: ToolDefinition,
}

impl CallTool {
    fn new() -> Self {
        let definition = ToolDefinition {
            name: Cow::Borrowed(CALL),
            description: Cow::Borrowed("Calls a tool that find_tools has shown."),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "Name of the tool" },
                    "arguments": { "type": "object", "description": "Its arguments, as its definition says" }
                },
                "required": ["name"],
                "additionalProperties": false
            }),
            // The tool that is called is gated and approved under its own name.
            category: Access::Read,
            aliases: &[],
            parameter_aliases: &[("tool", "name"), ("tool_name", "name")],
        };
        Self { definition }
    }
}

impl Tool for CallTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Idempotent
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        let name = arguments["name"].as_str().unwrap_or_default();
        let refusal = ToolOutput::error(format!(
            "There is no tool `{name}` to call this way; look for it with find_tools."
        ));
        Box::pin(async { Err(refusal) })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, _context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        let output = prepared.into_plan::<std::convert::Infallible>().err().unwrap_or_default();
        Box::pin(async { output })
    }
}

/// How many tools begin with which word, which is the name of their server: `12 github_…, 3 files_…`.
fn groups(tools: &[ToolDefinition]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in tools {
        *counts.entry(tool.name.split('_').next().unwrap_or_default()).or_default() += 1;
    }
    let groups: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}_…")).collect();
    groups.join(", ")
}

fn words(text: &str) -> Vec<String> {
    let separated = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    separated.map(str::to_lowercase).collect()
}

fn score(tool: &ToolDefinition, words: &[String]) -> usize {
    let parameters = tool.parameters.get("properties").and_then(Value::as_object);
    let parameters: Vec<&str> =
        parameters.into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
    let texts =
        [tool.name.to_lowercase(), tool.description.to_lowercase(), parameters.join(" ").to_lowercase()];
    let weight = |word: &String| -> usize {
        texts.iter().zip(WEIGHTS).filter(|(text, _)| text.contains(word)).map(|(_, weight)| weight).sum()
    };
    words.iter().map(weight).sum()
}

/// Names in a line, as many as fit.
fn names<'a>(tools: impl Iterator<Item = &'a ToolDefinition>) -> String {
    let mut text = String::new();
    for tool in tools {
        if text.len() + tool.name.len() > MAX_NAMES {
            text.push_str(", …");
            return text;
        }
        let separator = if text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{}", tool.name);
    }
    text
}
