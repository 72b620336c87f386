//! The few signs of the terminal face, for terminals that know Unicode and for those that do not.

/// Signs.
#[derive(Debug)]
pub(crate) struct Glyphs {
    pub(crate) task: &'static str,
    pub(crate) ok: &'static str,
    pub(crate) bad: &'static str,
    pub(crate) again: &'static str,
    pub(crate) warning: &'static str,
    pub(crate) question: &'static str,
    pub(crate) side: &'static str,
    pub(crate) full: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) spinner: &'static [&'static str],
}

/// For most.
pub(crate) const UNICODE: Glyphs = Glyphs {
    task: "●",
    ok: "✓",
    bad: "✗",
    again: "↻",
    warning: "!",
    question: "?",
    side: "│",
    full: "▰",
    empty: "▱",
    spinner: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
};

/// For a locale that is not UTF-8.
pub(crate) const ASCII: Glyphs = Glyphs {
    task: "*",
    ok: "+",
    bad: "x",
    again: "~",
    warning: "!",
    question: "?",
    side: "|",
    full: "#",
    empty: ".",
    spinner: &["|", "/", "-", "\\"],
};
