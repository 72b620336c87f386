//! `run_script`: a workflow's command with separate output streams. It runs through the `shell` tool, with
//! the same approval and sandbox; models use `shell` itself, whose output is formatted for reading.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use fusee_journal::BoxFuture;
use fusee_tools::{
    Access, CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};
use serde_json::{Value, json};

/// Separator between the two streams in the shell's output.
const BETWEEN: &str = "----- fusee: stderr from here -----";

/// Number of bytes kept of the end of stderr, so that all of it fits into the tail that the shell keeps.
const STDERR_BYTES: usize = 12 * 1024;

/// Returns the definition for the workflow catalog.
pub(crate) fn definition() -> &'static ToolDefinition {
    &DEFINITION
}

static DEFINITION: LazyLock<ToolDefinition> = LazyLock::new(|| ToolDefinition {
    name: Cow::Borrowed("run_script"),
    description: Cow::Borrowed("Runs a command line; answers with stdout, stderr and the exit code."),
    parameters: json!({
        "type": "object",
        "properties": {
            "command": { "type": "string", "minLength": 1 },
            "workdir": { "type": "string" },
            "stdin": { "type": "string" },
            "timeout": { "type": "number", "minimum": 0.001, "maximum": 3600 }
        },
        "required": ["command"],
        "additionalProperties": false
    }),
    category: Access::Write,
    aliases: &["system:run_script", "system:execute_shell_command"],
    parameter_aliases: &[
        ("script", "command"),
        ("input", "stdin"),
        ("cwd", "workdir"),
        ("timeout_ms", "timeout"),
    ],
});

/// The `run_script` tool on top of the shell tool.
pub(crate) struct RunScript(pub(crate) Arc<dyn Tool>);

impl Tool for RunScript {
    fn definition(&self) -> &ToolDefinition {
        &DEFINITION
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Never
    }

    fn prepare<'a>(
        &'a self,
        mut arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        let command = arguments["command"].as_str().unwrap_or_default().to_owned();
        if !command.trim().is_empty() {
            arguments["command"] = apart(&command).into();
        }
        Box::pin(async move {
            let mut prepared = self.0.prepare(arguments, context).await?;
            prepared.intent["command"] = command.into();
            Ok(prepared)
        })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        self.0.perform(prepared, context)
    }

    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        self.0.settle(arguments, intent, context)
    }
}

/// Wraps a command line so that its streams stay separate. Stderr goes to a file, because a pipe would wait
/// for everything that the command leaves running.
fn apart(command: &str) -> String {
    let quoted = command.replace('\'', r"'\''");
    format!(
        "fusee_stderr=$(mktemp) || exit 125\nsh -c '{quoted}' 2>\"$fusee_stderr\"\nfusee_code=$?\n\
         printf '\\n%s\\n' '{BETWEEN}'\ntail -c {STDERR_BYTES} \"$fusee_stderr\"\n\
         rm -f \"$fusee_stderr\"\nexit $fusee_code"
    )
}

/// Both streams, captured in full up to a bound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScriptOutput {
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Splits the shell's output into the two streams.
pub(crate) fn printed(output: &ToolOutput) -> ScriptOutput {
    // The last line is the shell tool's exit status.
    let body = match output.content.rfind("\n[") {
        Some(at) => &output.content[..=at],
        None => output.content.as_str(),
    };
    let body = if body == "(no output)\n" { "" } else { body };
    match body.rfind(&format!("\n{BETWEEN}\n")) {
        Some(at) => {
            ScriptOutput { stdout: body[..at].to_owned(), stderr: body[at + BETWEEN.len() + 2..].to_owned() }
        }
        None => ScriptOutput { stdout: body.to_owned(), stderr: String::new() },
    }
}

#[cfg(test)]
mod tests;
