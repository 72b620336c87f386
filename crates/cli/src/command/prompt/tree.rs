//! Tree view of a prompt: open and closed sections with their token counts.

use fusee::engine::model::tokens;
use fusee::engine::prompt::{Outlined, SectionState};

/// Renders the tree and its totals. `tools` are those the prompt itself adds.
pub(super) fn tree(outline: &[Outlined], whole: &str, tools: &[String]) -> String {
    let mut text: String = outline.iter().map(line).collect();
    let closed = outline.iter().filter(|section| section.state == SectionState::Closed).count();
    let behind = outline.iter().filter(|section| section.state == SectionState::Behind).count();
    text.push_str(&format!("\n{} tokens", count(whole)));
    if closed > 0 {
        text.push_str(&format!("; {closed} closed"));
    }
    if behind > 0 {
        text.push_str(&format!(", {behind} inside closed ones"));
    }
    text.push('\n');
    if !tools.is_empty() {
        text.push_str(&format!("tools of the prompt: {}\n", tools.join(", ")));
    }
    text
}

fn line(section: &Outlined) -> String {
    let (mark, cost) = match section.state {
        SectionState::Open => ("▾", format!("{} tokens", count(&section.shown))),
        SectionState::Closed => {
            ("▸", format!("{} tokens, {} when opened", count(&section.shown), count(&section.whole)))
        }
        SectionState::Behind => ("·", format!("0 tokens, {} of its own when shown", count(&section.whole))),
    };
    let Outlined { number, title, path, .. } = section;
    format!("{}{mark} {number}. {title} [{path}]: {cost}\n", "  ".repeat(section.depth))
}

fn count(text: &str) -> usize {
    tokens::exact_count(text).unwrap_or(text.len() / 4)
}
