//! Every subtype with every partial override either satisfies the rule or reports the conflicting layers.

use super::*;
use crate::task_system::ContextPart;

const SUBTYPES: [&str; 7] =
    ["standard", "director", "evaluator", "subtask", "aider_interactive", "aider_automatic", "anything"];

fn all_overrides() -> Vec<ContextOverrides> {
    let inherits =
        [None, Some(InheritContext::Full), Some(InheritContext::None), Some(InheritContext::Subset)];
    let freshes = [None, Some(FreshContext::Enabled), Some(FreshContext::Disabled)];
    let accumulates = [None, Some(true), Some(false)];
    let mut all = Vec::new();
    for inherit_context in inherits {
        for fresh_context in freshes {
            for accumulate_data in accumulates {
                let accumulation_format = None;
                all.push(ContextOverrides {
                    inherit_context,
                    accumulate_data,
                    accumulation_format,
                    fresh_context,
                });
            }
        }
    }
    all
}

#[test]
fn the_defaults_are_those_of_the_table() {
    use {FreshContext::*, InheritContext as I};
    for (subtype, inherit, accumulate, fresh) in [
        ("standard", I::Full, false, Disabled),
        ("director", I::Full, false, Disabled),
        ("evaluator", I::Full, false, Disabled),
        ("whatever", I::Full, false, Disabled),
        ("subtask", I::None, false, Enabled),
        ("aider_interactive", I::None, true, Enabled),
        ("aider_automatic", I::None, false, Enabled),
    ] {
        let settings = effective(subtype, &ContextOverrides::default(), None).unwrap();
        assert_eq!(
            (settings.inherit_context, settings.accumulate_data, settings.fresh_context),
            (inherit, accumulate, fresh),
            "{subtype}"
        );
    }
}

#[test]
fn whatever_is_overridden_fresh_and_inherited_context_never_come_together() {
    for subtype in SUBTYPES {
        for template in all_overrides() {
            for request in all_overrides() {
                match effective(subtype, &template, Some(&request)) {
                    Ok(settings) => assert!(
                        settings.fresh_context == FreshContext::Disabled
                            || settings.inherit_context == InheritContext::None
                    ),
                    Err(conflict) => {
                        let inherit = request.inherit_context.or(template.inherit_context);
                        let inherit = inherit.unwrap_or(defaults(subtype).inherit_context);
                        assert_eq!(conflict.inherit_context, inherit);
                        assert_ne!(inherit, InheritContext::None);
                        assert_eq!(conflict.fresh_set_by == SetBy::Request, request.fresh_context.is_some());
                    }
                }
            }
        }
    }
}

#[test]
fn a_conflict_names_the_layer_that_set_each_side() {
    let template =
        ContextOverrides { fresh_context: Some(FreshContext::Enabled), ..ContextOverrides::default() };
    assert_eq!(
        effective("standard", &template, None).unwrap_err().to_string(),
        "`fresh_context` is enabled (set by the template), but `inherit_context` is full (the default of the subtype \
         `standard`); set `inherit_context` to none, or disable `fresh_context`"
    );
}

#[test]
fn a_subset_keeps_what_concerns_the_task() {
    let part = |text: &str| ContextPart { source: "parent".to_owned(), text: text.to_owned() };
    let context = InheritedContext {
        parts: vec![part("The parser fails on empty input."), part("Lunch is at noon.")],
        files: vec!["a.rs".to_owned()],
    };
    let subset = InheritanceFilter::new(InheritContext::Subset, "Fix the parser");
    assert_eq!(subset.select(Some(&context)).parts, [part("The parser fails on empty input.")]);
    assert!(subset.inherits("src/parser.rs\nfn parse() {}") && !subset.inherits("menu.txt\nsoup"));
    assert!(subset.accumulates("look: the parser is small") && !subset.accumulates("lunch: soup"));
    let full = InheritanceFilter::new(InheritContext::Full, "Fix");
    assert_eq!(full.select(Some(&context)), context);
    assert!(full.inherits("menu.txt") && full.accumulates("lunch: soup"));
    let none = InheritanceFilter::new(InheritContext::None, "Fix");
    assert!(none.select(Some(&context)).is_empty());
    assert!(!none.inherits("a.rs") && none.accumulates("lunch: soup"));
}
