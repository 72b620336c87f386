//! Tables of a configuration file that are not single keys, with an example of each: for the reference page and
//! `fusee config NAME`.

/// A table, and what it is for.
pub(crate) struct ConfigTable {
    /// Its name: the key under which it stands.
    pub(crate) name: &'static str,
    /// Its heading in a file.
    pub(crate) heading: &'static str,
    pub(crate) title: &'static str,
    /// Description and example, in Markdown.
    pub(crate) text: &'static str,
}

/// All tables. `[models.NAME]` has keys of its own, listed by the reference page.
pub(crate) const TABLES: &[ConfigTable] = &[
    ConfigTable {
        name: "rules",
        heading: "[[rules]]",
        title: "Approval rules",
        text: "Decisions about commands by their first words: `allow` runs the command without a question, `ask` always \
asks, `deny` refuses it. Of several rules that fit, the one with the longest beginning decides. A line of several commands is \
allowed only if each of them is. `examples` must match the rule and `not_examples` must not; both are checked when the file is \
read. In the project's `fusee.toml` they need trust.\n\n\
A rule that denies a program by its name alone, such as `curl`, also keeps the sandbox from executing it, whatever starts it, \
unless another rule mentions it. A rule that denies a program with certain arguments, such as `git push`, looks at the command \
line only: a script or another program can still run it, so such a rule is advisory.\n\n\
```toml\n[[rules]]\ncommand = \"cargo test\"\nthen = \"allow\"\nexamples = [\"cargo test --lib\"]\nnot_examples = [\"cargo run\"]\n\n\
[[rules]]\ncommand = \"git push\"\nthen = \"deny\"\n```\n\n\
| key | type | |\n|---|---|---|\n| `command` | text | The first words of the command. |\n\
| `then` | `allow`, `ask` or `deny` | The decision. |\n| `examples` | list of texts | Commands that the rule must match. |\n\
| `not_examples` | list of texts | Commands that it must not match. |",
    },
    ConfigTable {
        name: "mcp",
        heading: "[mcp.NAME]",
        title: "MCP servers",
        text: "Servers whose tools a model may use, as `mcp__NAME__TOOL`: a program that is started (`command`), or one that is \
contacted over HTTP (`url`). `$NAME` in `env` and `headers` is replaced by that environment variable. In the project's \
`fusee.toml` they need trust.\n\n\
```toml\n[mcp.files]\ncommand = [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]\nblock = [\"write_file\"]\n\n\
[mcp.tracker]\nurl = \"https://mcp.example.com/\"\nheaders = { Authorization = \"Bearer $TRACKER_TOKEN\" }\n```\n\n\
| key | type | |\n|---|---|---|\n| `command`, `args` | texts | The program and its arguments. |\n\
| `env` | table of texts | Environment variables of the program. |\n| `url` | text | Address of a server that is contacted. |\n\
| `headers` | table of texts | HTTP headers. |\n| `allow`, `block` | lists of texts | Tools to offer, or to leave out. |\n\
| `timeout_s` | 1 to 3600 | Maximum time of a start, and of a call without a sign of progress; 60 if not set. |",
    },
    ConfigTable {
        name: "models",
        heading: "[models.NAME]",
        title: "More about named models",
        text: "A name of your own for a model, its server and its key, for `-m NAME` and `model = \"NAME\"`; its keys are listed \
above.",
    },
];
