//! The reference pages, made from the tables that parse, so that they cannot say something else. Hidden behind
//! `fusee __docs`; `cargo xtask docs` writes them into the repository and a test holds them against it.

mod commands;
mod config;
mod events;
mod tools;

#[cfg(test)]
mod tests;

/// Every page: its file name and its text.
pub(crate) fn pages() -> [(&'static str, String); 5] {
    [
        ("commands.md", commands::page()),
        ("config.md", config::page()),
        ("events.md", events::page()),
        ("tools.md", tools::page()),
        (
            "templates.md",
            heading("Templates", "crates/engine/src/template/schema.rs")
                + &fusee_engine::template::reference(),
        ),
    ]
}

/// Says whom to change instead of the page.
fn heading(title: &str, source: &str) -> String {
    format!("# {title}\n\n<!-- Made by `cargo xtask docs` from {source}; do not edit. -->\n\n")
}

/// Text within a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
