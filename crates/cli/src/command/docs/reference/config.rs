//! The configuration page, generated from the table of keys.

use fusee::engine::model::Profile;

use super::{cell, heading};
use crate::config::{ALIASES, KEYS, Key, KeyScope, Layer, TABLES, Unit};

/// Renders the page.
pub(crate) fn page() -> String {
    let mut text = heading("Configuration", "crates/cli/src/config/key.rs");
    text.push_str("A setting comes from the last of these layers that sets it:\n\n");
    for (index, layer) in Layer::ALL.iter().enumerate() {
        text.push_str(&format!("{}. {}\n", index + 1, layer.description()));
    }
    text.push_str(
        "\n`fusee config` shows the effective settings and their origins. Unknown keys are errors. \
         `schema/config.schema.json` is a JSON Schema for editors.\n\n\
         Keys marked *needs trust* reach outside the workspace. The project's `fusee.toml` can set them, \
         `[models.NAME]`, `[mcp.NAME]`, `rules` and hooks only after `fusee trust`, and only as long as its content does \
         not change; until then they are ignored with a warning. The other layers can always set them.\n\n\
         | key | default | type | flag | variable | |\n|---|---|---|---|---|---|\n",
    );
    for key in KEYS {
        text.push_str(&row(key));
    }
    text.push_str(
        "\n## Aliases from the agent specification\n\nThese names are accepted as well:\n\n| name | key |\n|---|---|\n",
    );
    for alias in ALIASES {
        let unit = if alias.unit == Unit::Milliseconds { ", in milliseconds" } else { "" };
        text.push_str(&format!("| `{}` | `{}`{unit} |\n", alias.name, alias.key));
    }
    for table in TABLES {
        text.push_str(&format!("\n## {}: `{}`\n\n{}\n", table.title, table.heading, table.page()));
    }
    text.push_str(
        "\n## API keys\n\nA key is read from the variable of its provider (such as `OPENAI_API_KEY`; \
         `OPENAI_BASE_URL` overrides the provider's URL), from the variable that `api_key_env` names, or from \
         `FUSEE_API_KEY`, which is sent to whatever server a command uses. Keys are never written to a file, an event \
         or the journal.\n\n\
         Local servers are looked for on their default ports; `OLLAMA_HOST`, `OLLAMA_BASE_URL`, \
         `LLAMA_CPP_BASE_URL`, `LMSTUDIO_BASE_URL` and `VLLM_BASE_URL` set other addresses.\n\n\
         ## Profiles and prices: `profiles.toml`, `prices.toml`\n\nIn the folder of your own configuration file. They \
         override the built-in profiles and prices of models, key by key:\n\n\
         ```toml\n# profiles.toml: how to talk to a model\n[[profile]]\nprovider = [\"ollama\"]\n\
         model = [\"qwen2.5-coder*\"]       # * matches anything\ntool_format = \"schema\"\nimages = false\n\
         context_tokens = 32768\n```\n\n```toml\n# prices.toml: US dollars per million tokens\n[[price]]\n\
         provider = [\"openai\"]\nmodel = [\"gpt-5*\"]\ninput = 1.25\ncached = 0.125\noutput = 10.0\n```\n\n",
    );
    text.push_str("Keys of a profile: ");
    let keys: Vec<String> = Profile::keys().iter().map(|key| format!("`{key}`")).collect();
    text.push_str(&format!(
        "{}. A run with a budget warns if the price of its model is not known.\n",
        keys.join(", ")
    ));
    text
}

fn row(key: &Key) -> String {
    let trust = if key.reach == KeyScope::Outside { " *needs trust*" } else { "" };
    format!(
        "| `{}` | {} | {} | {} | `{}` | {}{trust} |\n",
        key.name,
        key.default.map(|default| format!("`{default}`")).unwrap_or_default(),
        cell(&key.kind.to_string()),
        key.flag.map(|flag| format!("`{flag}`")).unwrap_or_default(),
        key.variable(),
        cell(key.doc),
    )
}
