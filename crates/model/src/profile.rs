//! What is known of models and servers that their format does not tell: how they are best asked for calls, which
//! knobs they take. Data (`profile/profiles.toml`), no names in code; a user's own file goes before it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ChoiceError;

const SHIPPED: &str = include_str!("profile/profiles.toml");

/// How a model is asked for calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFormat {
    /// Through the wire format's own field for tools.
    #[default]
    Native,
    /// Tools are described in the prompt, and a call is text between tags.
    Text,
    /// Tools are described in the prompt, and the server constrains the reply to a call of an open one.
    Schema,
}

/// How edits are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditFormat {
    /// By calls.
    #[default]
    Tools,
    /// The whole new file in a fenced block of the answer.
    Whole,
    /// Blocks of search and replace in the answer.
    Blocks,
}

/// How a server is told to constrain a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// `response_format` with a JSON Schema, as OpenAI defined it; no grammar.
    #[default]
    ResponseFormat,
    /// llama.cpp: the same, and `grammar` for what is not JSON.
    LlamaCpp,
    /// vLLM: the same, and `structured_outputs.grammar`.
    Vllm,
}

/// What becomes of reasoning in later requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningReplay {
    /// What the server signed or encrypted goes back, readable reasoning does not.
    #[default]
    Opaque,
    /// Readable reasoning goes back too (`reasoning_content`), for models that lose their thread without it.
    Text,
    /// Nothing goes back.
    Nothing,
}

/// The field that bounds a reply in chat completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// What almost every server knows.
    #[default]
    MaxTokens,
    /// What OpenAI's reasoning models want instead.
    MaxCompletionTokens,
}

/// How Anthropic's models are told how hard to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// A number of tokens.
    #[default]
    Budget,
    /// An effort; the model decides when to think.
    Adaptive,
}

/// Tools that Anthropic defined and its models were trained on, offered in the place of ours: a shell, and a text editor
/// in the version that a model knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProviderTools {
    /// None: our own are offered.
    #[default]
    #[serde(rename = "off")]
    Off,
    /// `bash_20250124` and `text_editor_20250124`.
    #[serde(rename = "20250124")]
    Of20250124,
    /// `bash_20250124` and `text_editor_20250429`.
    #[serde(rename = "20250429")]
    Of20250429,
    /// `bash_20250124` and `text_editor_20250728`.
    #[serde(rename = "20250728")]
    Of20250728,
}

impl ProviderTools {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    fn are_off(&self) -> bool {
        *self == ProviderTools::Off
    }
}

/// The part of a profile that decides how a server is talked to. A run keeps it in its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Traits {
    /// How it is asked for calls.
    pub tool_format: ToolFormat,
    /// Whether calls that come as text are recognised.
    pub text_calls: bool,
    /// Whether a reply's calls after the first are dropped.
    pub one_call: bool,
    /// What becomes of its reasoning.
    pub reasoning_replay: ReasoningReplay,
    /// How its replies are constrained.
    pub constraint: Constraint,
    /// The field that bounds its replies.
    pub limit_field: LimitField,
    /// How it is told how hard to think.
    pub thinking: Thinking,
    /// How it is asked for edits; the engine's flows go by it.
    pub edit_format: EditFormat,
    /// Which tools of its provider's are offered in the place of ours; only Anthropic's messages have any.
    #[serde(skip_serializing_if = "ProviderTools::are_off")]
    pub provider_tools: ProviderTools,
    /// Whether it takes images in the results of calls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub images: bool,
    /// Whether its server refuses to be told how to sample: then it is not told.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fixed_sampling: bool,
}

impl Traits {
    /// Whether nothing is said but what holds anyway.
    pub fn are_usual(&self) -> bool {
        *self == Traits::default()
    }
}

/// What one entry of a profile file says, and what holds once all entries that fit are put together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// See [`Traits`].
    pub tool_format: Option<ToolFormat>,
    /// See [`Traits`].
    pub text_calls: Option<bool>,
    /// See [`Traits`].
    pub one_call: Option<bool>,
    /// See [`Traits`].
    pub reasoning_replay: Option<ReasoningReplay>,
    /// See [`Traits`].
    pub constraint: Option<Constraint>,
    /// See [`Traits`].
    pub limit_field: Option<LimitField>,
    /// See [`Traits`].
    pub thinking: Option<Thinking>,
    /// See [`Traits`].
    pub edit_format: Option<EditFormat>,
    /// See [`Traits`].
    pub provider_tools: Option<ProviderTools>,
    /// See [`Traits`].
    pub images: Option<bool>,
    /// See [`Traits`].
    pub fixed_sampling: Option<bool>,
    /// Sampling temperature, unless the user sets one.
    pub temperature: Option<f64>,
    /// Nucleus sampling, unless the user sets it.
    pub top_p: Option<f64>,
    /// Upper bound of a reply, unless the user sets one.
    pub max_output_tokens: Option<u32>,
    /// How hard it thinks, unless the user says.
    pub reasoning_effort: Option<String>,
    /// The size of its context, where the server does not tell.
    pub context_tokens: Option<u64>,
}

impl Profile {
    /// The names of what an entry can say.
    pub fn keys() -> &'static [&'static str] {
        KEYS
    }

    /// What it says about talking to the server; the rest as usual.
    pub fn traits(&self) -> Traits {
        let usual = Traits::default();
        Traits {
            tool_format: self.tool_format.unwrap_or(usual.tool_format),
            text_calls: self.text_calls.unwrap_or(usual.text_calls),
            one_call: self.one_call.unwrap_or(usual.one_call),
            reasoning_replay: self.reasoning_replay.unwrap_or(usual.reasoning_replay),
            constraint: self.constraint.unwrap_or(usual.constraint),
            limit_field: self.limit_field.unwrap_or(usual.limit_field),
            thinking: self.thinking.unwrap_or(usual.thinking),
            edit_format: self.edit_format.unwrap_or(usual.edit_format),
            provider_tools: self.provider_tools.unwrap_or(usual.provider_tools),
            images: self.images.unwrap_or(usual.images),
            fixed_sampling: self.fixed_sampling.unwrap_or(usual.fixed_sampling),
        }
    }

    fn over(self, below: Profile) -> Profile {
        Profile {
            tool_format: self.tool_format.or(below.tool_format),
            text_calls: self.text_calls.or(below.text_calls),
            one_call: self.one_call.or(below.one_call),
            reasoning_replay: self.reasoning_replay.or(below.reasoning_replay),
            constraint: self.constraint.or(below.constraint),
            limit_field: self.limit_field.or(below.limit_field),
            thinking: self.thinking.or(below.thinking),
            edit_format: self.edit_format.or(below.edit_format),
            provider_tools: self.provider_tools.or(below.provider_tools),
            images: self.images.or(below.images),
            fixed_sampling: self.fixed_sampling.or(below.fixed_sampling),
            temperature: self.temperature.or(below.temperature),
            top_p: self.top_p.or(below.top_p),
            max_output_tokens: self.max_output_tokens.or(below.max_output_tokens),
            reasoning_effort: self.reasoning_effort.or(below.reasoning_effort),
            context_tokens: self.context_tokens.or(below.context_tokens),
        }
    }
}

/// Profiles by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles {
    entries: Vec<(Names, Profile)>,
}

impl Profiles {
    /// Those of this product.
    pub fn shipped() -> Result<Profiles, ChoiceError> {
        let mut profiles = Profiles::default();
        profiles.add("profiles.toml", SHIPPED)?;
        Ok(profiles)
    }

    /// Those of this product that a model of this provider can have.
    pub fn shipped_for(provider: Option<&str>) -> Result<Profiles, ChoiceError> {
        let mut profiles = Profiles::default();
        profiles.add("profiles.toml", &entries_for(SHIPPED, provider))?;
        Ok(profiles)
    }

    /// Adds the entries of a file of the same format; they go before what is there. `file` is named in faults.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), ChoiceError> {
        self.entries.extend(read_entries(file, text, "profile", KEYS)?);
        Ok(())
    }

    /// What holds for a model: all entries that fit, each over the ones before.
    pub fn of(&self, provider: Option<&str>, model: &str) -> Profile {
        let fitting = self.entries.iter().filter(|(names, _)| names.fit(provider, model));
        fitting.fold(Profile::default(), |below, (_, profile)| profile.clone().over(below))
    }
}

/// The entries of a file of ours without those that are plainly about other providers: every run begins with this, and
/// reading them all took a tenth of its start.
pub(crate) fn entries_for(text: &str, provider: Option<&str>) -> String {
    let Some(provider) = provider else { return text.to_owned() };
    let quoted = format!("\"{provider}\"");
    let names_others = |entry: &str| {
        entry
            .lines()
            .any(|line| line.starts_with("provider") && line.contains('=') && !line.contains(&quoted))
    };
    text.split("\n[[")
        .skip(1)
        .filter(|entry| !names_others(entry))
        .map(|entry| format!("[[{entry}\n"))
        .collect()
}

/// The entries of a data file: tables of one sort, each with whom it is about and what it says under these keys.
pub(crate) fn read_entries<T: DeserializeOwned>(
    file: &str,
    text: &str,
    sort: &str,
    keys: &[&str],
) -> Result<Vec<(Names, T)>, ChoiceError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        profile: Vec<toml::Spanned<toml::Table>>,
        #[serde(default)]
        price: Vec<toml::Spanned<toml::Table>>,
    }
    let File { profile, price } = read_toml(file, text)?;
    let sorted = [("profile", profile), ("price", price)];
    let mut entries = Vec::new();
    for (of, table) in
        sorted.into_iter().flat_map(|(of, tables)| tables.into_iter().map(move |table| (of, table)))
    {
        let at = table.span().start;
        let entry = match of == sort {
            true => read_entry(table.into_inner(), sort, keys),
            false => Err(format!("there is no [[{of}]] here; an entry begins with [[{sort}]]")),
        };
        entries.push(entry.map_err(|why| fault(file, text, at, &why))?);
    }
    Ok(entries)
}

/// Serde cannot refuse unknown fields of two structs in one table, so the names are taken out first.
fn read_entry<T: DeserializeOwned>(
    mut table: toml::Table,
    sort: &str,
    keys: &[&str],
) -> Result<(Names, T), String> {
    let mut names = toml::Table::new();
    for key in ["provider", "model"] {
        names.extend(table.remove(key).map(|value| (key.to_owned(), value)));
    }
    if let Some(other) = table.keys().find(|key| !keys.contains(&key.as_str())) {
        let near = keys.iter().filter(|known| strsim::damerau_levenshtein(known, other) <= 3);
        let near: Vec<&str> = near.copied().collect();
        let near = if near.is_empty() { keys.join(", ") } else { near.join(" or ") };
        return Err(format!("there is no `{other}` in a {sort}; there is {near}"));
    }
    let names = Names::deserialize(names).map_err(|error| error.to_string())?;
    let said = T::deserialize(table).map_err(|error| error.to_string())?;
    Ok((names, said))
}

const KEYS: &[&str] = &[
    "tool_format",
    "text_calls",
    "one_call",
    "reasoning_replay",
    "constraint",
    "limit_field",
    "thinking",
    "edit_format",
    "provider_tools",
    "images",
    "fixed_sampling",
    "temperature",
    "top_p",
    "max_output_tokens",
    "reasoning_effort",
    "context_tokens",
];

/// Whom an entry of a data file is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Names {
    /// One of these providers; any if empty.
    pub(crate) provider: Vec<String>,
    /// An id that looks like one of these; any if empty.
    pub(crate) model: Vec<String>,
}

impl Names {
    pub(crate) fn fit(&self, provider: Option<&str>, model: &str) -> bool {
        let provider_fits = self.provider.is_empty()
            || provider.is_some_and(|name| self.provider.iter().any(|one| one == name));
        let model = model.to_lowercase();
        provider_fits
            && (self.model.is_empty() || self.model.iter().any(|one| looks_like(&one.to_lowercase(), &model)))
    }
}

/// Whether `text` is `pattern`, in which `*` stands for anything.
fn looks_like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(tail)
}

/// Reads a data file; a fault names file, line and column.
fn read_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ChoiceError> {
    toml::from_str(text)
        .map_err(|error| fault(file, text, error.span().map_or(0, |span| span.start), error.message()))
}

fn fault(file: &str, text: &str, at: usize, why: &str) -> ChoiceError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    ChoiceError::File(format!("{file}:{line}:{column}: {}", why.trim().replace('\n', "; ")))
}

#[cfg(test)]
mod tests;
