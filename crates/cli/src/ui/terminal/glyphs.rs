//! Glyph sets of the terminal UI: Unicode and ASCII.

/// The symbols that the terminal UI draws.
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

/// For UTF-8 locales.
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

/// For all other locales.
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
