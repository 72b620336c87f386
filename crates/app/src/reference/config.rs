//! The page of configuration keys, from the table.

use fusee_engine::model::Profile;

use super::{cell, heading};
use crate::config::{ALIASES, KEYS, Key, MODEL_KEYS, Reach, Unit};

/// The page.
pub(crate) fn page() -> String {
    let mut text = heading("Configuration", "crates/app/src/config/key.rs");
    text.push_str(
        "A setting is taken from the last of these that has it: built in, your own file \
         (`$XDG_CONFIG_HOME/fusee/config.toml`, else `~/.config/fusee/config.toml`), the project's `fusee.toml`, \
         `FUSEE_*` variables, flags. `fusee config` shows what holds and where it comes from. Unknown keys are \
         errors. `schema/config.schema.json` is for editors.\n\n\
         Keys marked *own file* reach outside the workspace, so a project's `fusee.toml` cannot set them: there \
         they are ignored, with a warning.\n\n\
         | key | default | type | flag | variable | |\n|---|---|---|---|---|---|\n",
    );
    for key in KEYS {
        text.push_str(&row(key));
    }
    text.push_str(
        "\n## Names of the agent specification\n\nAccepted as well:\n\n| name | key |\n|---|---|\n",
    );
    for alias in ALIASES {
        let unit = if alias.unit == Unit::Milliseconds { ", in milliseconds" } else { "" };
        text.push_str(&format!("| `{}` | `{}`{unit} |\n", alias.name, alias.key));
    }
    text.push_str(
        "\n## Models with names: `[models.NAME]`\n\nIn your own file; `-m NAME` chooses one.\n\n\
         ```toml\n[models.box]\nmodel = \"qwen2.5-coder:7b\"\nbase_url = \"http://box.local:8080/v1\"\n\
         api_key_env = \"BOX_KEY\"\n```\n\n| key | type | |\n|---|---|---|\n",
    );
    for key in MODEL_KEYS {
        text.push_str(&format!("| `{}` | {} | {} |\n", key.name, cell(&key.kind.to_string()), cell(key.doc)));
    }
    text.push_str(
        "\n## Keys of servers\n\nA key is read from the variable of its provider (`OPENAI_API_KEY` and so on; \
         `OPENAI_BASE_URL` moves the provider elsewhere), from the variable that `api_key_env` names, or from \
         `FUSEE_API_KEY`, which goes to whatever server a command uses. Keys are never written to a file, an event \
         or the journal.\n\n\
         Servers of your own are looked for on their usual ports of this machine; `OLLAMA_HOST`, `OLLAMA_BASE_URL`, \
         `LLAMA_CPP_BASE_URL`, `LMSTUDIO_BASE_URL` and `VLLM_BASE_URL` say where else one is.\n\n\
         ## Profiles and prices: `profiles.toml`, `prices.toml`\n\nIn the folder of your own configuration file. What \
         this product knows of models beyond their servers' word is data, and yours goes over it, key by key:\n\n\
         ```toml\n# profiles.toml: how a model is talked to\n[[profile]]\nprovider = [\"ollama\"]\n\
         model = [\"qwen2.5-coder*\"]       # * stands for anything\ntool_format = \"schema\"\nimages = false\n\
         context_tokens = 32768\n```\n\n```toml\n# prices.toml: US dollars for a million tokens\n[[price]]\n\
         provider = [\"openai\"]\nmodel = [\"gpt-5*\"]\ninput = 1.25\ncached = 0.125\noutput = 10.0\n```\n\n",
    );
    text.push_str("Keys of a profile: ");
    let keys: Vec<String> = Profile::keys().iter().map(|key| format!("`{key}`")).collect();
    text.push_str(&format!(
        "{}. A run with a budget whose model has no known price is warned.\n",
        keys.join(", ")
    ));
    text
}

fn row(key: &Key) -> String {
    let own = if key.reach == Reach::Outside { " *own file*" } else { "" };
    format!(
        "| `{}` | {} | {} | {} | `{}` | {}{own} |\n",
        key.name,
        key.default.map(|default| format!("`{default}`")).unwrap_or_default(),
        cell(&key.kind.to_string()),
        key.flag.map(|flag| format!("`{flag}`")).unwrap_or_default(),
        key.variable(),
        cell(key.doc),
    )
}
