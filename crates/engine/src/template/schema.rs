//! The schema of templates, version 1.0, as one table. The checker goes by it, the XSD and the reference page are
//! made from it; nothing about elements and attributes is said anywhere else.

/// An element: what it may hold and how often it stands in its parent.
pub(crate) struct ElementRule {
    pub(crate) name: &'static str,
    pub(crate) occurs: Occurs,
    pub(crate) content: Content,
    pub(crate) attributes: &'static [AttributeRule],
    pub(crate) about: &'static str,
}

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurs {
    /// Exactly once.
    Required,
    /// At most once.
    Optional,
    /// Any number of times.
    Many,
}

/// What stands inside.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// Text that is not empty.
    Text,
    /// Text that may be empty.
    Note,
    /// A value.
    Value(Kind),
    /// Elements, no text.
    Elements(&'static [&'static ElementRule]),
    /// The same, at least one of them.
    SomeElements(&'static [&'static ElementRule]),
    /// Text and elements.
    Mixed(&'static [&'static ElementRule]),
}

/// An attribute.
pub(crate) struct AttributeRule {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// The sorts of value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Anything.
    Any,
    /// Anything but nothing.
    Word,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// `true`, `false`, `1` or `0`.
    Bool,
    /// The name of a template or a subtype.
    Name,
    /// The name of an input.
    InputName,
    /// Names of inputs, with commas between them; may be empty.
    InputNames,
    /// The key of a section.
    SectionKey,
    /// A whole number from 1 to this.
    Whole(u64),
    /// A number above 0 and at most 1.
    Fraction,
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> AttributeRule {
    AttributeRule { name, kind, required: true, about }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> AttributeRule {
    AttributeRule { name, kind, required: false, about }
}

const fn text(name: &'static str, occurs: Occurs, about: &'static str) -> ElementRule {
    ElementRule { name, occurs, content: Content::Text, attributes: &[], about }
}

const fn value(name: &'static str, kind: Kind, about: &'static str) -> ElementRule {
    ElementRule { name, occurs: Occurs::Optional, content: Content::Value(kind), attributes: &[], about }
}

/// What a value of an input may be.
pub(crate) const INPUT_TYPES: &[&str] = &["string", "number", "boolean", "array", "object"];

/// The words of `output_format/@schema`; anything else is the path of a JSON Schema.
pub(crate) const SCHEMA_WORDS: &[&str] = &["object", "array", "[]", "string[]", "number", "boolean"];

/// The outermost element.
pub(crate) static TASK: ElementRule = ElementRule {
    name: "task",
    occurs: Occurs::Required,
    content: Content::Elements(&[
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
        required("name", Kind::Name, "What it is called by; unique in its layer."),
        required("type", Kind::OneOf(&["atomic"]), "Tasks are atomic; workflows compose them."),
        optional(
            "subtype",
            Kind::Name,
            "An open word that decides the defaults of the context; `standard` if absent.",
        ),
        optional("params", Kind::InputNames, "The short form of `inputs`: names with commas between them."),
        optional(
            "default",
            Kind::Bool,
            "Whether it is the one that `atomic:SUBTYPE` means where several have the subtype.",
        ),
    ],
    about: "One task for a model.",
};

static DESCRIPTION: ElementRule = text(
    "description",
    Occurs::Required,
    "What it does, in words: requests in plain language are matched against it.",
);
static INSTRUCTIONS: ElementRule =
    text("instructions", Occurs::Optional, "What the model is asked. `{{name}}` stands for an input.");
static SYSTEM: ElementRule = text("system", Occurs::Optional, "The system prompt, instead of the usual one.");

static INPUTS: ElementRule = ElementRule {
    name: "inputs",
    occurs: Occurs::Optional,
    content: Content::SomeElements(&[&INPUT]),
    attributes: &[],
    about: "Declares what `{{name}}` may name.",
};
static INPUT: ElementRule = ElementRule {
    name: "input",
    occurs: Occurs::Many,
    content: Content::Note,
    attributes: &[
        required("name", Kind::InputName, "Its name."),
        optional("type", Kind::OneOf(INPUT_TYPES), "What it takes; `string` if absent."),
        optional(
            "default",
            Kind::Any,
            "What it is where a request does not give it; without one it must be given.",
        ),
    ],
    about: "An input; its text says what it is for.",
};

static SECTION: ElementRule = ElementRule {
    name: "section",
    occurs: Occurs::Many,
    content: Content::Mixed(&[&SUMMARY, &SECTION]),
    attributes: &[
        required("key", Kind::SectionKey, "What it is opened by."),
        optional("title", Kind::Word, "Its heading; the key if absent."),
        optional(
            "visibility",
            Kind::OneOf(&["full", "summary"]),
            "Whether it is shown whole or by its summary until opened.",
        ),
    ],
    about: "A part of the prompt with a heading.",
};
static SUMMARY: ElementRule = text("summary", Occurs::Optional, "What is shown of a closed section.");

static OUTPUT_FORMAT: ElementRule = ElementRule {
    name: "output_format",
    occurs: Occurs::Optional,
    content: Content::Note,
    attributes: &[
        required("type", Kind::OneOf(&["json", "text"]), "What the answer is."),
        optional(
            "schema",
            Kind::Word,
            "What JSON it is: object, array, [], string[], number, boolean, or the path of a JSON Schema file.",
        ),
    ],
    about: "What the answer must be; text if absent.",
};

static CONTEXT_MANAGEMENT: ElementRule = ElementRule {
    name: "context_management",
    occurs: Occurs::Optional,
    content: Content::Elements(&[&INHERIT_CONTEXT, &ACCUMULATE_DATA, &ACCUMULATION_FORMAT, &FRESH_CONTEXT]),
    attributes: &[],
    about: "What the task is given to know; what is not said follows from the subtype.",
};
static INHERIT_CONTEXT: ElementRule = value(
    "inherit_context",
    Kind::OneOf(&["full", "none", "subset"]),
    "How much of the caller's context is given on.",
);
static ACCUMULATE_DATA: ElementRule =
    value("accumulate_data", Kind::Bool, "Whether the results of earlier steps are given too.");
static ACCUMULATION_FORMAT: ElementRule =
    value("accumulation_format", Kind::OneOf(&["notes_only", "full_output"]), "What is kept of them.");
static FRESH_CONTEXT: ElementRule = value(
    "fresh_context",
    Kind::OneOf(&["enabled", "disabled"]),
    "Whether files are searched for the task; then nothing is inherited.",
);

static FILE_PATHS: ElementRule = ElementRule {
    name: "file_paths",
    occurs: Occurs::Optional,
    content: Content::SomeElements(&[&PATH, &COMMAND, &FILES_DESCRIPTION, &CONTEXT_QUERY]),
    attributes: &[optional(
        "source",
        Kind::OneOf(&["literal", "command", "description", "context_description"]),
        "Where the paths come from; `literal` if absent.",
    )],
    about: "Files that are always shown to the model.",
};
static PATH: ElementRule = text("path", Occurs::Many, "A file, relative to the workspace.");
static COMMAND: ElementRule = text(
    "command",
    Occurs::Optional,
    "A command whose stdout is paths, one a line; it runs in the sandbox. `{{name}}` stands for one word of the shell, \
         quoted whatever the value holds, and stands outside of the command's own quotes.",
);
static FILES_DESCRIPTION: ElementRule =
    text("description", Occurs::Optional, "Words that files are searched by.");
static CONTEXT_QUERY: ElementRule =
    text("context_query", Occurs::Optional, "Words that files are searched by, instead of the task's own.");

static CONTEXT_RELEVANCE: ElementRule = ElementRule {
    name: "context_relevance",
    occurs: Occurs::Optional,
    content: Content::SomeElements(&[&RELEVANT]),
    attributes: &[],
    about: "Which inputs feed the search for files; all if absent.",
};
static RELEVANT: ElementRule = ElementRule {
    name: "input",
    occurs: Occurs::Many,
    content: Content::Note,
    attributes: &[
        required("name", Kind::InputName, "An input."),
        optional("include", Kind::Bool, "Whether it feeds the search; true if absent."),
    ],
    about: "Whether an input feeds the search.",
};

static PROVIDER: ElementRule = text("provider", Occurs::Optional, "Who has the model.");
static MODEL: ElementRule = text("model", Occurs::Optional, "The model, as `--model` takes it.");
static CRITERIA: ElementRule =
    text("criteria", Occurs::Optional, "What a good answer is; shown to the model.");

static TOOLS: ElementRule = ElementRule {
    name: "tools",
    occurs: Occurs::Optional,
    content: Content::Note,
    attributes: &[
        optional(
            "allow",
            Kind::Any,
            "The tools it has, by name or alias, with commas between them; all if absent.",
        ),
        optional("block", Kind::Any, "Tools it has not."),
    ],
    about: "Which tools the model has.",
};
static LIMITS: ElementRule = ElementRule {
    name: "limits",
    occurs: Occurs::Optional,
    content: Content::Note,
    attributes: &[
        optional("max_turns", Kind::Whole(u32::MAX as u64), "Replies of the model."),
        optional(
            "max_tokens",
            Kind::Whole(i64::MAX as u64),
            "Tokens that the conversation may hold at once.",
        ),
        optional(
            "context_fraction",
            Kind::Fraction,
            "The share of them that files and inherited context may fill.",
        ),
        optional("timeout", Kind::Whole(u32::MAX as u64), "Working time in seconds."),
    ],
    about: "How much the task may use up; what is not said is as configured.",
};
static FLOW: ElementRule = value(
    "flow",
    Kind::OneOf(&["flat", "staged", "staged3", "branched", "direct"]),
    "The flow it goes by; flat if absent.",
);
static MANUAL_XML: ElementRule =
    value("manual_xml", Kind::Bool, "Hands the model's XML answer on word for word; false if absent.");
static DISABLE_REPARSING: ElementRule =
    value("disable_reparsing", Kind::Bool, "Leaves a malformed answer as it is; false if absent.");

impl ElementRule {
    /// The elements it may hold.
    pub(crate) fn children(&self) -> &'static [&'static ElementRule] {
        match self.content {
            Content::Elements(children) | Content::SomeElements(children) | Content::Mixed(children) => {
                children
            }
            Content::Text | Content::Note | Content::Value(_) => &[],
        }
    }

    /// The rule of an element inside.
    pub(crate) fn child(&self, name: &str) -> Option<&'static ElementRule> {
        self.children().iter().copied().find(|child| child.name == name)
    }

    /// The rule of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'static AttributeRule> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }
}

impl Kind {
    /// Whether a value is of the sort. White space around it does not count.
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

    /// What it expects, in words.
    pub(crate) fn expects(self) -> String {
        match self {
            Self::Any => "any text".to_owned(),
            Self::Word => "text that is not empty".to_owned(),
            Self::OneOf([only]) => format!("`{only}`"),
            Self::OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Name => "a name: a letter or `_`, then letters, digits, `_`, `-`, `.`, `:`".to_owned(),
            Self::InputName => "a name: a letter or `_`, then letters, digits, `_`, `-`".to_owned(),
            Self::InputNames => {
                "names of inputs with a comma between two: a letter or `_`, then letters, digits, `_`, `-`"
                    .to_owned()
            }
            Self::SectionKey => "a key: letters, digits, `_`, `-`, at most 64".to_owned(),
            Self::Whole(_) => "a whole number from 1".to_owned(),
            Self::Fraction => "a number above 0 and at most 1".to_owned(),
        }
    }
}

/// Whether it can be an input's name.
pub(crate) fn is_input_name(name: &str) -> bool {
    is_name(name, 64, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn is_name(name: &str, longest: usize, continues: fn(char) -> bool) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(continues)
        && name.len() <= longest
}

/// A boolean as it is written.
pub(crate) fn read_bool(value: &str) -> bool {
    matches!(value.trim(), "true" | "1")
}
