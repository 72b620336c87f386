//! `run_script`: a command of a workflow, with its two streams apart. The `shell` tool runs it, so gates and sandbox
//! are the same; models have `shell` itself, whose answer is made for reading.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use fusee_journal::BoxFuture;
use fusee_tools::{CallContext, Category, Definition, Prepared, Repeat, Settled, Tool, ToolOutput};
use serde_json::{Value, json};

/// Stands between the two streams in what the shell answers.
const BETWEEN: &str = "----- fusee: stderr from here -----";

/// Bytes of stderr that are kept: its end, so that the whole stays within what the shell keeps of the end.
const STDERR_BYTES: usize = 12 * 1024;

/// How a workflow calls it.
pub(crate) fn definition() -> &'static Definition {
    &DEFINITION
}

static DEFINITION: LazyLock<Definition> = LazyLock::new(|| Definition {
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
    category: Category::Write,
    aliases: &["system:run_script", "system:execute_shell_command"],
    parameter_aliases: &[
        ("script", "command"),
        ("input", "stdin"),
        ("cwd", "workdir"),
        ("timeout_ms", "timeout"),
    ],
});

/// The tool, on top of the shell.
pub struct RunScript(pub Arc<dyn Tool>);

impl Tool for RunScript {
    fn definition(&self) -> &Definition {
        &DEFINITION
    }

    fn repeat(&self) -> Repeat {
        Repeat::Never
    }

    fn prepare<'a>(
        &'a self,
        mut arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
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

    fn perform<'a>(&'a self, prepared: Prepared, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        self.0.perform(prepared, context)
    }

    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Settled> {
        self.0.settle(arguments, intent, context)
    }
}

/// A command line that keeps the streams of another apart. Stderr goes to a file: a pipe would wait for everything
/// the command leaves running.
fn apart(command: &str) -> String {
    let quoted = command.replace('\'', r"'\''");
    format!(
        "fusee_stderr=$(mktemp) || exit 125\nsh -c '{quoted}' 2>\"$fusee_stderr\"\nfusee_code=$?\n\
         printf '\\n%s\\n' '{BETWEEN}'\ntail -c {STDERR_BYTES} \"$fusee_stderr\"\n\
         rm -f \"$fusee_stderr\"\nexit $fusee_code"
    )
}

/// What a script printed.
#[derive(Debug, PartialEq, Eq)]
pub struct Printed {
    /// Its output.
    pub stdout: String,
    /// Its complaints.
    pub stderr: String,
}

/// The two streams, from what the shell answered.
pub fn printed(output: &ToolOutput) -> Printed {
    // The last line is the shell's word on how it ended.
    let body = match output.content.rfind("\n[") {
        Some(at) => &output.content[..=at],
        None => output.content.as_str(),
    };
    let body = if body == "(no output)\n" { "" } else { body };
    match body.rfind(&format!("\n{BETWEEN}\n")) {
        Some(at) => {
            Printed { stdout: body[..at].to_owned(), stderr: body[at + BETWEEN.len() + 2..].to_owned() }
        }
        None => Printed { stdout: body.to_owned(), stderr: String::new() },
    }
}

#[cfg(test)]
mod tests;
