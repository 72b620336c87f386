//! The template schema, version 1.0, as one table. The checker uses it directly, and the XSD and the
//! reference page are generated from it; elements and attributes are defined nowhere else.

/// An element: its content, and how often it occurs in its parent.
pub(crate) struct ElementRule {
    pub(crate) name: &'static str,
    pub(crate) occurs: Occurs,
    pub(crate) content: ElementContent,
    pub(crate) attributes: &'static [AttributeRule],
    pub(crate) about: &'static str,
}

/// How often an element may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurs {
    /// Exactly once.
    Required,
    /// At most once.
    Optional,
    /// Any number of times.
    Many,
}

/// What may stand between the tags.
#[derive(Clone, Copy)]
pub(crate) enum ElementContent {
    /// Non-empty text.
    Text,
    /// Text, possibly empty.
    Note,
    /// A value of some kind.
    Value(ValueKind),
    /// Elements without text.
    Elements(&'static [&'static ElementRule]),
    /// Elements without text, at least one.
    SomeElements(&'static [&'static ElementRule]),
    /// Text and elements.
    Mixed(&'static [&'static ElementRule]),
}

/// An attribute of an element.
pub(crate) struct AttributeRule {
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// Which strings are valid as a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ValueKind {
    /// Any text, even empty.
    Any,
    /// Any non-empty text.
    Word,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// `true`, `false`, `1` or `0`.
    Bool,
    /// Name of a template or a subtype.
    Name,
    /// A letter or `_`, then at most 63 letters, digits, `_` and `-`.
    InputName,
    /// Comma-separated names of inputs; may be empty.
    InputNames,
    /// At most 64 letters, digits, `_` and `-`.
    SectionKey,
    /// Integer from 1 to this.
    Whole(u64),
    /// Number above 0 and at most 1.
    Fraction,
}

const fn required(name: &'static str, kind: ValueKind, about: &'static str) -> AttributeRule {
    AttributeRule { name, kind, required: true, about }
}

const fn optional(name: &'static str, kind: ValueKind, about: &'static str) -> AttributeRule {
    AttributeRule { name, kind, required: false, about }
}

const fn text(name: &'static str, occurs: Occurs, about: &'static str) -> ElementRule {
    ElementRule { name, occurs, content: ElementContent::Text, attributes: &[], about }
}

const fn value(name: &'static str, kind: ValueKind, about: &'static str) -> ElementRule {
    ElementRule {
        name,
        occurs: Occurs::Optional,
        content: ElementContent::Value(kind),
        attributes: &[],
        about,
    }
}

/// Values of the attribute `type` of `<input>`.
pub(crate) const INPUT_TYPES: &[&str] = &["string", "number", "boolean", "array", "object"];

/// The root element.
pub(crate) static TASK: ElementRule = ElementRule {
    name: "task",
    occurs: Occurs::Required,
    content: ElementContent::Elements(&[
        &DESCRIPTION,
        &INSTRUCTIONS,
        &SYSTEM,
        &INPUTS,
        &SECTION,
        &OUTPUT_FORMAT,
        &CONTEXT_MANAGEMENT,
        &FILE_PATHS,
        &CONTEXT_RELEVANCE,
        &PROVIDER,
        &MODEL,
        &CRITERIA,
        &TOOLS,
        &LIMITS,
        &FLOW,
        &MANUAL_XML,
        &DISABLE_REPARSING,
    ]),
    attributes: &[
        required("name", ValueKind::Name, "Name of the template; unique in its layer."),
        required("type", ValueKind::OneOf(&["atomic"]), "Tasks are atomic; workflows compose them."),
        optional(
            "subtype",
            ValueKind::Name,
            "Free-form word that selects the context defaults; `standard` if absent.",
        ),
        optional("params", ValueKind::InputNames, "Short form of `inputs`: comma-separated names."),
        optional(
            "default",
            ValueKind::Bool,
            "Whether `atomic:SUBTYPE` selects this template if several have the subtype; false if absent.",
        ),
    ],
    about: "One task for a model.",
};

static DESCRIPTION: ElementRule = text(
    "description",
    Occurs::Required,
    "Description of the task; natural-language requests are matched against it.",
);
static INSTRUCTIONS: ElementRule =
    text("instructions", Occurs::Optional, "Instructions for the model. `{{name}}` is replaced by an input.");
static SYSTEM: ElementRule = text("system", Occurs::Optional, "System prompt that replaces the default one.");

static INPUTS: ElementRule = ElementRule {
    name: "inputs",
    occurs: Occurs::Optional,
    content: ElementContent::SomeElements(&[&INPUT]),
    attributes: &[],
    about: "Declares the inputs that `{{name}}` can refer to.",
};
static INPUT: ElementRule = ElementRule {
    name: "input",
    occurs: Occurs::Many,
    content: ElementContent::Note,
    attributes: &[
        required("name", ValueKind::InputName, "Name of the input."),
        optional("type", ValueKind::OneOf(INPUT_TYPES), "Type of the value; `string` if absent."),
        optional(
            "default",
            ValueKind::Any,
            "Value if the request does not set the input; without a default the input is required.",
        ),
    ],
    about: "An input; its text describes its purpose.",
};

static SECTION: ElementRule = ElementRule {
    name: "section",
    occurs: Occurs::Many,
    content: ElementContent::Mixed(&[&SUMMARY, &SECTION]),
    attributes: &[
        required("key", ValueKind::SectionKey, "Key that opens the section."),
        optional("title", ValueKind::Word, "Heading of the section; the key if absent."),
        optional(
            "visibility",
            ValueKind::OneOf(&["full", "summary"]),
            "Whether the section is shown in full or as a summary until it is opened; `full` if absent.",
        ),
    ],
    about: "A section of the prompt with a heading.",
};
static SUMMARY: ElementRule = text("summary", Occurs::Optional, "Text shown while the section is closed.");

static OUTPUT_FORMAT: ElementRule = ElementRule {
    name: "output_format",
    occurs: Occurs::Optional,
    content: ElementContent::Note,
    attributes: &[
        required("type", ValueKind::OneOf(&["json", "text"]), "Kind of answer."),
        optional(
            "schema",
            ValueKind::Word,
            "Type of the JSON value: object, array, [], string[], number, boolean, or the path of a JSON Schema file.",
        ),
    ],
    about: "Required format of the answer; text if absent.",
};

static CONTEXT_MANAGEMENT: ElementRule = ElementRule {
    name: "context_management",
    occurs: Occurs::Optional,
    content: ElementContent::Elements(&[
        &INHERIT_CONTEXT,
        &ACCUMULATE_DATA,
        &ACCUMULATION_FORMAT,
        &FRESH_CONTEXT,
    ]),
    attributes: &[],
    about: "Context settings of the task; values not set come from the subtype.",
};
static INHERIT_CONTEXT: ElementRule = value(
    "inherit_context",
    ValueKind::OneOf(&["full", "none", "subset"]),
    "How much of the caller's context is inherited.",
);
static ACCUMULATE_DATA: ElementRule =
    value("accumulate_data", ValueKind::Bool, "Whether the results of earlier tasks are included.");
static ACCUMULATION_FORMAT: ElementRule = value(
    "accumulation_format",
    ValueKind::OneOf(&["notes_only", "full_output"]),
    "How much of the earlier results is included.",
);
static FRESH_CONTEXT: ElementRule = value(
    "fresh_context",
    ValueKind::OneOf(&["enabled", "disabled"]),
    "Whether files are searched for the task; if enabled, nothing is inherited.",
);

static FILE_PATHS: ElementRule = ElementRule {
    name: "file_paths",
    occurs: Occurs::Optional,
    content: ElementContent::SomeElements(&[&PATH, &COMMAND, &FILES_DESCRIPTION, &CONTEXT_QUERY]),
    attributes: &[optional(
        "source",
        ValueKind::OneOf(&["literal", "command", "description", "context_description"]),
        "Source of the paths; `literal` if absent.",
    )],
    about: "Files that are always shown to the model.",
};
static PATH: ElementRule = text("path", Occurs::Many, "A file, relative to the workspace.");
static COMMAND: ElementRule = text(
    "command",
    Occurs::Optional,
    "A command that prints paths, one per line; it runs in the sandbox. `{{name}}` becomes one quoted shell word, \
         whatever its value contains, and must be outside the command's own quotes.",
);
static FILES_DESCRIPTION: ElementRule = text("description", Occurs::Optional, "Search words for files.");
static CONTEXT_QUERY: ElementRule =
    text("context_query", Occurs::Optional, "Search words for files that replace the task's own.");

static CONTEXT_RELEVANCE: ElementRule = ElementRule {
    name: "context_relevance",
    occurs: Occurs::Optional,
    content: ElementContent::SomeElements(&[&RELEVANT]),
    attributes: &[],
    about: "Inputs used for the file search; all if absent.",
};
static RELEVANT: ElementRule = ElementRule {
    name: "input",
    occurs: Occurs::Many,
    content: ElementContent::Note,
    attributes: &[
        required("name", ValueKind::InputName, "Name of the input."),
        optional(
            "include",
            ValueKind::Bool,
            "Whether the input is used for the file search; true if absent.",
        ),
    ],
    about: "Whether an input is used for the file search.",
};

static PROVIDER: ElementRule = text("provider", Occurs::Optional, "Provider of the model.");
static MODEL: ElementRule = text("model", Occurs::Optional, "The model, as `--model` takes it.");
static CRITERIA: ElementRule =
    text("criteria", Occurs::Optional, "Criteria for a good answer; shown to the model.");

static TOOLS: ElementRule = ElementRule {
    name: "tools",
    occurs: Occurs::Optional,
    content: ElementContent::Note,
    attributes: &[
        optional("allow", ValueKind::Any, "Allowed tools, comma-separated, by name or alias; all if absent."),
        optional("block", ValueKind::Any, "Blocked tools, comma-separated, by name or alias."),
    ],
    about: "Tools available to the model.",
};
static LIMITS: ElementRule = ElementRule {
    name: "limits",
    occurs: Occurs::Optional,
    content: ElementContent::Note,
    attributes: &[
        optional("max_turns", ValueKind::Whole(u32::MAX as u64), "Maximum number of model replies."),
        optional("max_tokens", ValueKind::Whole(i64::MAX as u64), "Maximum number of tokens in the context."),
        optional(
            "context_fraction",
            ValueKind::Fraction,
            "Share of `max_tokens` that files and inherited context may use.",
        ),
        optional("timeout", ValueKind::Whole(u32::MAX as u64), "Maximum active time in seconds."),
    ],
    about: "Limits of the task; values not set come from the configuration.",
};
static FLOW: ElementRule = value(
    "flow",
    ValueKind::OneOf(&["flat", "staged", "staged3", "branched", "direct"]),
    "Flow of the task; `flat` if absent.",
);
static MANUAL_XML: ElementRule = value(
    "manual_xml",
    ValueKind::Bool,
    "Whether the model's XML answer is passed on verbatim; false if absent.",
);
static DISABLE_REPARSING: ElementRule = value(
    "disable_reparsing",
    ValueKind::Bool,
    "Whether a malformed answer is left unrepaired; false if absent.",
);

impl ElementRule {
    /// Returns the elements it may contain.
    pub(crate) fn children(&self) -> &'static [&'static ElementRule] {
        match self.content {
            ElementContent::Elements(children)
            | ElementContent::SomeElements(children)
            | ElementContent::Mixed(children) => children,
            ElementContent::Text | ElementContent::Note | ElementContent::Value(_) => &[],
        }
    }

    /// Returns the rule of a child element.
    pub(crate) fn child(&self, name: &str) -> Option<&'static ElementRule> {
        self.children().iter().copied().find(|child| child.name == name)
    }

    /// Returns the rule of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'static AttributeRule> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }
}

impl ValueKind {
    /// Whether a value is of this kind, ignoring surrounding white space.
    pub(crate) fn accepts(self, value: &str) -> bool {
        let value = value.trim();
        match self {
            Self::Any => true,
            Self::Word => !value.is_empty(),
            Self::OneOf(words) => words.contains(&value),
            Self::Bool => matches!(value, "true" | "false" | "1" | "0"),
            Self::Name => {
                is_name(value, 128, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
            }
            Self::InputName => is_input_name(value),
            Self::InputNames => value.is_empty() || value.split(',').all(|name| is_input_name(name.trim())),
            Self::SectionKey => {
                let first = value.starts_with(|c: char| c.is_ascii_alphanumeric());
                let rest = value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
                first && rest && value.len() <= 64
            }
            Self::Whole(most) => {
                let digits = value.strip_prefix('+').unwrap_or(value);
                let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                plain && digits.parse::<u64>().is_ok_and(|number| number >= 1 && number <= most)
            }
            Self::Fraction => {
                let plain = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'+'));
                plain && value.parse::<f64>().is_ok_and(|number| number > 0.0 && number <= 1.0)
            }
        }
    }

    /// Describes the expected value.
    pub(crate) fn expects(self) -> String {
        match self {
            Self::Any => "any text".to_owned(),
            Self::Word => "non-empty text".to_owned(),
            Self::OneOf([only]) => format!("`{only}`"),
            Self::OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Name => "a name: a letter or `_`, then letters, digits, `_`, `-`, `.`, `:`".to_owned(),
            Self::InputName => "a name: a letter or `_`, then letters, digits, `_`, `-`".to_owned(),
            Self::InputNames => {
                "comma-separated input names: a letter or `_`, then letters, digits, `_`, `-`".to_owned()
            }
            Self::SectionKey => "a key: at most 64 letters, digits, `_`, `-`".to_owned(),
            Self::Whole(_) => "an integer from 1".to_owned(),
            Self::Fraction => "a number above 0 and at most 1".to_owned(),
        }
    }
}

/// Whether a text is a valid input name.
pub(crate) fn is_input_name(name: &str) -> bool {
    is_name(name, 64, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn is_name(name: &str, longest: usize, continues: fn(char) -> bool) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(continues)
        && name.len() <= longest
}

/// Parses a boolean.
pub(crate) fn read_bool(value: &str) -> bool {
    matches!(value.trim(), "true" | "1")
}
