//! Tables of a configuration file that are not single keys, with an example of each: for the reference page,
//! `fusee config NAME` and `fusee config --all`.

use super::flow_keys::STAGE_KEYS;
use super::key::{Key, MODEL_KEYS};

/// A table, and what it is for.
pub(crate) struct ConfigTable {
    /// Its name: the key under which it stands.
    pub(crate) name: &'static str,
    /// Its heading in a file, or the file it is in.
    pub(crate) heading: &'static str,
    pub(crate) title: &'static str,
    /// Description, in Markdown.
    text: &'static str,
    example: TableExample,
    keys: TableKeys,
}

/// An example of a table, in the language of the file it is in.
enum TableExample {
    Toml(&'static str),
    Json(&'static str),
}

/// Where the rows about its keys come from.
enum TableKeys {
    /// Keys that the reader of the file knows.
    Known(&'static [Key]),
    /// Name, type and description.
    Described(&'static [[&'static str; 3]]),
}

impl ConfigTable {
    /// Description, example and keys, in Markdown.
    pub(crate) fn page(&self) -> String {
        let (language, example) = match self.example {
            TableExample::Toml(example) => ("toml", example),
            TableExample::Json(example) => ("json", example),
        };
        let row =
            |[name, kind, doc]: [&str; 3]| format!("| {name} | {} | {} |\n", kind.replace('|', "\\|"), doc);
        let rows: String = match self.keys {
            TableKeys::Known(keys) => keys
                .iter()
                .map(|key| row([&format!("`{}`", key.name), &key.kind.to_string(), key.doc]))
                .collect(),
            TableKeys::Described(keys) => keys.iter().copied().map(row).collect(),
        };
        format!(
            "{}\n\n```{language}\n{example}\n```\n\n| key | type | |\n|---|---|---|\n{}",
            self.text,
            rows.trim_end()
        )
    }

    /// The example as comments of `fusee.toml`; `None` for a table of another file.
    pub(crate) fn commented_example(&self) -> Option<String> {
        let TableExample::Toml(example) = self.example else { return None };
        Some(example.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect())
    }
}

/// All tables.
pub(crate) const TABLES: &[ConfigTable] = &[
    ConfigTable {
        name: "models",
        heading: "[models.NAME]",
        title: "Named models",
        text: "Your own name for a model, its server and its key, for `-m NAME` and `model = \"NAME\"`. In the project's \
`fusee.toml` they need trust.",
        example: TableExample::Toml(
            "[models.box]\nmodel = \"qwen2.5-coder:7b\"\nbase_url = \"http://box.local:8080/v1\"\napi_key_env = \"BOX_KEY\"",
        ),
        keys: TableKeys::Known(MODEL_KEYS),
    },
    ConfigTable {
        name: "rules",
        heading: "[[rules]]",
        title: "Approval rules",
        text: "Decisions about commands by their first words: `allow` runs the command without asking, `ask` always \
asks, `deny` refuses it. If several rules match, the one with the most words decides. A line of several commands is \
allowed only if each of them is. `examples` must match the rule and `not_examples` must not; both are checked when the file is \
read. In the project's `fusee.toml` they need trust.\n\n\
A rule that denies a program by its name alone, such as `curl`, also keeps the sandbox from executing it, whatever starts it, \
unless another rule mentions it. A rule that denies a program with certain arguments, such as `git push`, only checks the command \
line: a script or another program can still run it, so such a rule is advisory.",
        example: TableExample::Toml(
            "[[rules]]\ncommand = \"cargo test\"\nthen = \"allow\"\nexamples = [\"cargo test --lib\"]\nnot_examples = [\"cargo run\"]\n\n\
[[rules]]\ncommand = \"git push\"\nthen = \"deny\"",
        ),
        keys: TableKeys::Described(&[
            ["`command`", "text", "The first words of the command."],
            ["`then`", "`allow`, `ask` or `deny`", "The decision."],
            ["`examples`", "list of texts", "Commands that the rule must match."],
            ["`not_examples`", "list of texts", "Commands that it must not match."],
        ]),
    },
    ConfigTable {
        name: "mcp",
        heading: "[mcp.NAME]",
        title: "MCP servers",
        text: "Servers whose tools a model may use, as `NAME_TOOL`: a program that is started (`command`), or one that is \
contacted over HTTP (`url`). `$NAME` in `env`, `headers` and `client_secret` is replaced by that environment variable. In the project's \
`fusee.toml` they need trust.",
        example: TableExample::Toml(
            "[mcp.files]\ncommand = [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]\nblock = [\"write_file\"]\n\n\
[mcp.tracker]\nurl = \"https://mcp.example.com/\"\nheaders = { Authorization = \"Bearer $TRACKER_TOKEN\" }",
        ),
        keys: TableKeys::Described(&[
            ["`command`, `args`", "texts", "The program and its arguments."],
            ["`env`", "table of texts", "Environment variables of the program."],
            ["`url`", "text", "Address of a server that is contacted."],
            ["`headers`", "table of texts", "HTTP headers."],
            [
                "`client_id`, `client_secret`",
                "texts",
                "Client for `fusee mcp-login`, where the authorization server does not let clients register themselves.",
            ],
            [
                "`redirect_port`",
                "1 to 65535",
                "Port of `http://127.0.0.1:PORT/callback`, where the browser goes after the login; any free one if not set.",
            ],
            ["`allow`, `block`", "lists of texts", "Tools to offer, or to leave out."],
            [
                "`timeout_s`",
                "1 to 3600",
                "Maximum time of a start, and of a call without a sign of progress; 60 if not set.",
            ],
        ]),
    },
    ConfigTable {
        name: "hooks",
        heading: ".fusee/hooks.json",
        title: "Hooks",
        text: "Your own programs to run on the events of a task, in the JSON format of Claude Code and Codex. A project's hooks \
are in `.fusee/hooks.json` and need trust; your own are in `hooks.json` beside your `config.toml`. `fusee docs hooks` describes the \
events, and what a hook reads and answers.",
        example: TableExample::Json(
            "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \
\"hooks\": [{ \"type\": \"command\", \"command\": \"sh check.sh\", \"timeout\": 10 }]\n      }\n    ]\n  }\n}",
        ),
        keys: TableKeys::Described(&[
            [
                "`matcher`",
                "regular expression",
                "Tools, or other values of the event, that the hooks apply to; all if not set.",
            ],
            ["`type`", "`command`", "A command line."],
            [
                "`command`",
                "text",
                "The command line, run by `/bin/sh` in the workspace and outside the sandbox.",
            ],
            ["`timeout`", "seconds", "Maximum running time."],
        ]),
    },
    ConfigTable {
        name: "flow",
        heading: "[[flow]]",
        title: "Stages of your own",
        text: "Custom stages, in order, used instead of `task_flow_mode`. `before.run`, `verify` and `after.run` are \
commands that the runtime runs, for a stage here and for the whole task at the top level.",
        example: TableExample::Toml(
            "[before]\nrun = \"cargo fetch\"       # before the task; its output is added to the context\n\n\
[[flow]]\nid = \"plan\"\nprompt = \"Read the code and plan the change.\"\ntools_allow = [\"read_file\", \"search_text\"]\n\n\
[[flow]]\nid = \"do\"\nprompt = \"Make the change.\"\nverify = \"cargo test\"",
        ),
        keys: TableKeys::Known(STAGE_KEYS),
    },
];
