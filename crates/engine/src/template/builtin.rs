//! Built-in templates, and the skeleton used by `fusee templates new`.

use super::{RegisteredTemplate, Template, TemplateLayer, TemplateText};
use fusee_text::Source;

/// Names and texts of the built-in templates.
const SHIPPED: &[(&str, &str)] = &[
    ("commit-message", include_str!("../../templates/commit-message.xml")),
    ("explain", include_str!("../../templates/explain.xml")),
    ("extract-json", include_str!("../../templates/extract-json.xml")),
    ("fix-test", include_str!("../../templates/fix-test.xml")),
    ("review", include_str!("../../templates/review.xml")),
    ("summarise", include_str!("../../templates/summarise.xml")),
    ("translate", include_str!("../../templates/translate.xml")),
    ("write-test", include_str!("../../templates/write-test.xml")),
];

/// Skeleton of a new template; `NAME` is replaced.
pub const SKELETON: &str = include_str!("skeleton.xml");

/// Returns the built-in templates, ready to be registered. A test checks that each is valid.
pub fn shipped() -> Vec<RegisteredTemplate> {
    let read = |(name, text): &(&str, &str)| {
        let file = format!("built-in:{name}");
        let (template, _) = Template::read(&Source::new(file.as_str(), *text));
        let text = TemplateText { file, text: (*text).to_owned() };
        template.map(|template| RegisteredTemplate { template, text, layer: TemplateLayer::BuiltIn })
    };
    SHIPPED.iter().filter_map(read).collect()
}
