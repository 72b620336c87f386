//! Model profiles: properties of models and servers that their API does not report, such as the best tool
//! call format and the supported options. They are data (`profile/profiles.toml`), with no model names in
//! code; a user's own file takes precedence.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::OpenError;

const SHIPPED: &str = include_str!("profile/profiles.toml");

/// How tool calls are requested from a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFormat {
    /// Through the API's own field for tools.
    #[default]
    Native,
    /// Tools are described in the prompt, and a call is text between tags.
    Text,
    /// Tools are described in the prompt, and the server constrains the reply to a call of an open tool.
    Schema,
}

/// How edits are requested from a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditFormat {
    /// With tool calls.
    #[default]
    Tools,
    /// The entire new file in a fenced block of the answer.
    Whole,
    /// Search/replace blocks in the answer.
    Blocks,
}

/// How a server is told to constrain a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// `response_format` with a JSON Schema, as defined by OpenAI; no grammar.
    #[default]
    ResponseFormat,
    /// llama.cpp: also `grammar`, for replies that are not JSON.
    LlamaCpp,
    /// vLLM: also `structured_outputs.grammar`.
    Vllm,
}

/// Which reasoning is sent back in later requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningReplay {
    /// Signed or encrypted reasoning, but no readable reasoning.
    #[default]
    Opaque,
    /// Readable reasoning too (`reasoning_content`), for models that lose track without it.
    Text,
    /// No reasoning.
    Nothing,
}

/// The field that limits the length of a reply in chat completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// `max_tokens`, which almost every server supports.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models require instead.
    MaxCompletionTokens,
}

/// How Anthropic's models are told how much to reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingStyle {
    /// A token budget.
    #[default]
    Budget,
    /// An effort level; the model decides when to reason.
    Adaptive,
}

/// Tools defined by Anthropic, on which its models were trained, offered instead of our own: a shell, and a
/// text editor in the version the model knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProviderTools {
    /// None: our own tools are offered.
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
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
    fn are_off(&self) -> bool {
        *self == ProviderTools::Off
    }
}

/// The version of Anthropic's computer use tool that a model knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ComputerTool {
    /// None.
    #[default]
    #[serde(rename = "off")]
    Off,
    /// `computer_20250124`.
    #[serde(rename = "20250124")]
    Of20250124,
    /// `computer_20251124`, which can also zoom.
    #[serde(rename = "20251124")]
    Of20251124,
}

impl ComputerTool {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
    fn is_off(&self) -> bool {
        *self == ComputerTool::Off
    }

    /// Type of the tool in a request, and the header that allows it.
    pub(crate) fn names(self) -> Option<(&'static str, &'static str)> {
        match self {
            ComputerTool::Off => None,
            ComputerTool::Of20250124 => Some(("computer_20250124", "computer-use-2025-01-24")),
            ComputerTool::Of20251124 => Some(("computer_20251124", "computer-use-2025-11-24")),
        }
    }
}

/// The display that a model may use through its computer use tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ComputerDisplay {
    /// Number of the display: 99 for `:99`.
    pub number: u32,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
}

/// The part of a profile that determines how to talk to a server. Stored in a run's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelTraits {
    /// How tool calls are requested.
    pub tool_format: ToolFormat,
    /// Whether tool calls written as text are recognized.
    pub text_calls: bool,
    /// Whether tool calls after the first in a reply are dropped.
    pub one_call: bool,
    /// Which reasoning is sent back.
    pub reasoning_replay: ReasoningReplay,
    /// How replies are constrained.
    pub constraint: Constraint,
    /// The field that limits the length of a reply.
    pub limit_field: LimitField,
    /// How the amount of reasoning is specified.
    pub thinking: ThinkingStyle,
    /// How edits are requested; used by the engine's flows.
    pub edit_format: EditFormat,
    /// Provider-defined tools offered instead of ours; only the Anthropic API has any.
    #[serde(skip_serializing_if = "ProviderTools::are_off")]
    pub provider_tools: ProviderTools,
    /// The computer use tool that the model knows; only the Anthropic API has one.
    #[serde(skip_serializing_if = "ComputerTool::is_off")]
    pub computer_tool: ComputerTool,
    /// The display for it, if the user configured one. Not part of a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<ComputerDisplay>,
    /// Whether images are accepted in tool results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub images: bool,
    /// Whether the server rejects sampling parameters, so that none are sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fixed_sampling: bool,
    /// Whether the model is small: it does better with files in the prompt and whole files in the answer
    /// than with tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub small: bool,
}

impl ModelTraits {
    /// Whether all traits have their default values.
    pub fn is_default(&self) -> bool {
        *self == ModelTraits::default()
    }
}

/// One entry of a profile file, or all matching entries merged.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// See [`ModelTraits::tool_format`].
    pub tool_format: Option<ToolFormat>,
    /// See [`ModelTraits::text_calls`].
    pub text_calls: Option<bool>,
    /// See [`ModelTraits::one_call`].
    pub one_call: Option<bool>,
    /// See [`ModelTraits::reasoning_replay`].
    pub reasoning_replay: Option<ReasoningReplay>,
    /// See [`ModelTraits::constraint`].
    pub constraint: Option<Constraint>,
    /// See [`ModelTraits::limit_field`].
    pub limit_field: Option<LimitField>,
    /// See [`ModelTraits::thinking`].
    pub thinking: Option<ThinkingStyle>,
    /// See [`ModelTraits::edit_format`].
    pub edit_format: Option<EditFormat>,
    /// See [`ModelTraits::provider_tools`].
    pub provider_tools: Option<ProviderTools>,
    /// See [`ModelTraits::computer_tool`].
    pub computer_tool: Option<ComputerTool>,
    /// See [`ModelTraits::images`].
    pub images: Option<bool>,
    /// See [`ModelTraits::fixed_sampling`].
    pub fixed_sampling: Option<bool>,
    /// See [`ModelTraits::small`]. Where no entry says so, the size in the model's name decides.
    pub small: Option<bool>,
    /// Sampling temperature, unless the user sets one.
    pub temperature: Option<f64>,
    /// Nucleus sampling threshold, unless the user sets one.
    pub top_p: Option<f64>,
    /// Maximum length of a reply in tokens, unless the user sets one.
    pub max_output_tokens: Option<u32>,
    /// Reasoning effort, unless the user sets one.
    pub reasoning_effort: Option<String>,
    /// Context size in tokens, if the server does not report it.
    pub context_tokens: Option<u64>,
}

impl Profile {
    /// The keys an entry may have.
    pub fn keys() -> &'static [&'static str] {
        KEYS
    }

    /// The traits of this profile, with defaults for what it does not set.
    pub fn traits(&self) -> ModelTraits {
        let usual = ModelTraits::default();
        ModelTraits {
            tool_format: self.tool_format.unwrap_or(usual.tool_format),
            text_calls: self.text_calls.unwrap_or(usual.text_calls),
            one_call: self.one_call.unwrap_or(usual.one_call),
            reasoning_replay: self.reasoning_replay.unwrap_or(usual.reasoning_replay),
            constraint: self.constraint.unwrap_or(usual.constraint),
            limit_field: self.limit_field.unwrap_or(usual.limit_field),
            thinking: self.thinking.unwrap_or(usual.thinking),
            edit_format: self.edit_format.unwrap_or(usual.edit_format),
            provider_tools: self.provider_tools.unwrap_or(usual.provider_tools),
            computer_tool: self.computer_tool.unwrap_or(usual.computer_tool),
            display: None,
            images: self.images.unwrap_or(usual.images),
            fixed_sampling: self.fixed_sampling.unwrap_or(usual.fixed_sampling),
            small: self.small.unwrap_or(usual.small),
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
            computer_tool: self.computer_tool.or(below.computer_tool),
            images: self.images.or(below.images),
            fixed_sampling: self.fixed_sampling.or(below.fixed_sampling),
            small: self.small.or(below.small),
            temperature: self.temperature.or(below.temperature),
            top_p: self.top_p.or(below.top_p),
            max_output_tokens: self.max_output_tokens.or(below.max_output_tokens),
            reasoning_effort: self.reasoning_effort.or(below.reasoning_effort),
            context_tokens: self.context_tokens.or(below.context_tokens),
        }
    }
}

/// A list of profiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles {
    entries: Vec<(ModelNames, Profile)>,
}

impl Profiles {
    /// The built-in profiles.
    pub fn builtin() -> Result<Profiles, OpenError> {
        let mut profiles = Profiles::default();
        profiles.add("profiles.toml", SHIPPED)?;
        Ok(profiles)
    }

    /// The built-in profiles that may apply to a model of this provider.
    pub fn builtin_for(provider: Option<&str>) -> Result<Profiles, OpenError> {
        let mut profiles = Profiles::default();
        profiles.add("profiles.toml", &entries_for(SHIPPED, provider))?;
        Ok(profiles)
    }

    /// Adds the entries of a file in the same format; they override existing ones. `file` is used in error
    /// messages.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), OpenError> {
        self.entries.extend(read_entries(file, text, "profile", KEYS)?);
        Ok(())
    }

    /// The profile of a model: all matching entries merged, later ones overriding earlier ones.
    pub fn resolve(&self, provider: Option<&str>, model: &str) -> Profile {
        let fitting = self.entries.iter().filter(|(names, _)| names.applies_to(provider, model));
        let mut profile = fitting.fold(Profile::default(), |below, (_, profile)| profile.clone().over(below));
        profile.small = profile.small.or_else(|| Some(parameters(model)? <= SMALL_PARAMETERS));
        profile
    }
}

/// Billions of parameters up to which a model counts as small.
pub const SMALL_PARAMETERS: f64 = 9.0;

/// Billions of parameters, if a model's name states them: `1.5` for `qwen2.5-coder-1.5b`, `0.135` for
/// `SmolLM2-135M-Instruct`. Of several sizes, as in `30b-a3b`, the largest counts.
pub fn parameters(model: &str) -> Option<f64> {
    let name = model.to_ascii_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let size = |word: &str| {
        // Names of models with fewer active parameters, such as `e2b`, and experts, such as `8x7b`.
        let word = word.strip_prefix(['a', 'e']).unwrap_or(word);
        let (experts, word) = word.split_once('x').unwrap_or(("1", word));
        let (number, unit) = word.split_at_checked(word.len().checked_sub(1)?)?;
        let unit = match unit {
            "b" => 1.0,
            "m" => 0.001,
            _ => return None,
        };
        let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        (digits(number) && digits(experts)).then_some(())?;
        Some(experts.parse::<f64>().ok()? * number.parse::<f64>().ok()? * unit)
    };
    words
        .filter_map(size)
        .fold(None, |largest: Option<f64>, size| Some(largest.map_or(size, |known| known.max(size))))
}

/// Drops the entries of a built-in file that are clearly about other providers. Every run starts with this,
/// and parsing all of them took a tenth of the start-up time.
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

/// Parses the entries of a data file: tables of one kind, each with the models it applies to and values for
/// these keys.
pub(crate) fn read_entries<T: DeserializeOwned>(
    file: &str,
    text: &str,
    sort: &str,
    keys: &[&str],
) -> Result<Vec<(ModelNames, T)>, OpenError> {
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
            false => Err(format!("unexpected table [[{of}]]; entries are [[{sort}]] tables")),
        };
        entries.push(entry.map_err(|why| fault(file, text, at, &why))?);
    }
    Ok(entries)
}

/// Serde cannot reject unknown fields of two structs in one table, so the names are extracted first.
fn read_entry<T: DeserializeOwned>(
    mut table: toml::Table,
    sort: &str,
    keys: &[&str],
) -> Result<(ModelNames, T), String> {
    let mut names = toml::Table::new();
    for key in ["provider", "model"] {
        names.extend(table.remove(key).map(|value| (key.to_owned(), value)));
    }
    if let Some(other) = table.keys().find(|key| !keys.contains(&key.as_str())) {
        let near = keys.iter().filter(|known| strsim::damerau_levenshtein(known, other) <= 3);
        let near: Vec<&str> = near.copied().collect();
        let near = if near.is_empty() { keys.join(", ") } else { near.join(" or ") };
        return Err(format!("unknown key `{other}` in a {sort}; expected {near}"));
    }
    let names = ModelNames::deserialize(names).map_err(|error| error.to_string())?;
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
    "computer_tool",
    "images",
    "fixed_sampling",
    "small",
    "temperature",
    "top_p",
    "max_output_tokens",
    "reasoning_effort",
    "context_tokens",
];

/// The models an entry of a data file applies to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ModelNames {
    /// Any of these providers; all if empty.
    pub(crate) provider: Vec<String>,
    /// A model id that matches any of these patterns; all if empty.
    pub(crate) model: Vec<String>,
}

impl ModelNames {
    pub(crate) fn applies_to(&self, provider: Option<&str>, model: &str) -> bool {
        let provider_fits = self.provider.is_empty()
            || provider.is_some_and(|name| self.provider.iter().any(|one| one == name));
        let model = model.to_lowercase();
        provider_fits
            && (self.model.is_empty() || self.model.iter().any(|one| looks_like(&one.to_lowercase(), &model)))
    }
}

/// Whether `text` matches `pattern`, in which `*` stands for any text.
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

/// Parses a data file; an error names file, line and column.
fn read_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, OpenError> {
    toml::from_str(text)
        .map_err(|error| fault(file, text, error.span().map_or(0, |span| span.start), error.message()))
}

fn fault(file: &str, text: &str, at: usize, why: &str) -> OpenError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    OpenError::File(format!("{file}:{line}:{column}: {}", why.trim().replace('\n', "; ")))
}

#[cfg(test)]
mod tests;
