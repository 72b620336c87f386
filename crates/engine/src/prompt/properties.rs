//! Properties that hold for every prompt tree: numbering, opening, tools, values.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Shape of one generated section.
#[derive(Clone, Debug)]
struct SectionShape {
    closed: bool,
    tool: bool,
    disabled: bool,
    inside: Vec<SectionShape>,
}

fn plan() -> impl Strategy<Value = Vec<SectionShape>> {
    let leaf = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2))
        .prop_map(|(closed, tool, disabled)| SectionShape { closed, tool, disabled, inside: Vec::new() });
    let nested = leaf.prop_recursive(3, 24, 4, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..4))
            .prop_map(|(plan, inside)| SectionShape { inside, ..plan })
    });
    prop::collection::vec(nested, 1..5)
}

/// Builds the section of a plan. Tool names contain the path, so that they are unique.
fn section(plan: &SectionShape, key: &str, path: &str) -> PromptSection {
    let mut section = PromptSection::text(key, key.to_uppercase(), "<${v}>").param("v", path);
    if plan.closed {
        section = section.summarised("short: ${v}");
    }
    if plan.tool {
        section = section.tool(tool(path));
    }
    if plan.disabled {
        section = section.enabled(Arc::new(|_| false));
    }
    for (n, child) in plan.inside.iter().enumerate() {
        section = section.child(self::section(child, &format!("k{n}"), &format!("{path}.k{n}")));
    }
    section
}

fn tool(path: &str) -> String {
    format!("tool_{}", path.replace('.', "_"))
}

fn prompt(plans: &[SectionShape]) -> Prompt<AnyTask> {
    let sections =
        plans.iter().enumerate().map(|(n, plan)| section(plan, &format!("k{n}"), &format!("k{n}")));
    let builder = sections.fold(Prompt::builder(), |builder, section| builder.section(section));
    builder.build().expect("a legal tree")
}

/// Collects the enabled paths, with whether each is initially closed and whether it has a tool.
fn enabled(plans: &[SectionShape], around: &str, found: &mut Vec<(String, bool, bool)>) {
    for (n, plan) in plans.iter().enumerate().filter(|(_, plan)| !plan.disabled) {
        let path = if around.is_empty() { format!("k{n}") } else { format!("{around}.k{n}") };
        found.push((path.clone(), plan.closed, plan.tool));
        enabled(&plan.inside, &path, found);
    }
}

fn paths(plans: &[SectionShape]) -> Vec<(String, bool, bool)> {
    let mut found = Vec::new();
    enabled(plans, "", &mut found);
    found
}

/// Whether a section is shown in full: neither it nor an ancestor is closed.
fn is_visible(path: &str, all: &[(String, bool, bool)], open: &BTreeSet<String>) -> bool {
    let around = |other: &str| path == other || path.starts_with(&format!("{other}."));
    all.iter().filter(|(other, ..)| around(other)).all(|(other, closed, _)| !closed || open.contains(other))
}

fn chosen(all: &[(String, bool, bool)], mask: u64) -> BTreeSet<String> {
    let picked = |n: &usize| mask >> (n % 64) & 1 == 1;
    all.iter().enumerate().filter(|(n, _)| picked(n)).map(|(_, (path, ..))| path.clone()).collect()
}

proptest! {
    #[test]
    fn numbers_are_the_same_whatever_is_open(plans in plan(), mask in any::<u64>()) {
        let (prompt, all) = (prompt(&plans), paths(&plans));
        let bound = prompt.bind(&AnyTask::default()).expect("bound");
        let everything = bound.render(&chosen(&all, u64::MAX)).expect("rendered");
        let some = bound.render(&chosen(&all, mask)).expect("rendered");
        for section in &some.sections {
            let same = everything.sections.iter().find(|other| other.path == section.path).expect("there when all is open");
            prop_assert_eq!(&same.number, &section.number);
        }
    }

    #[test]
    fn opening_again_changes_nothing_and_opening_more_hides_nothing(plans in plan(), one in any::<u64>(), other in any::<u64>()) {
        let (prompt, all) = (prompt(&plans), paths(&plans));
        let bound = prompt.bind(&AnyTask::default()).expect("bound");
        let (some, more) = (chosen(&all, one), chosen(&all, one | other));
        let (less, rendered) = (bound.render(&some).expect("rendered"), bound.render(&more).expect("rendered"));
        for section in less.sections.iter().filter(|section| section.shown == SectionDisplay::Full) {
            prop_assert!(rendered.sections.contains(section), "{} is gone", section.path);
        }
        let visible: Vec<String> = all.iter().map(|(path, ..)| path.clone()).filter(|path| is_visible(path, &all, &more)).collect();
        if !visible.is_empty() {
            prop_assert_eq!(open_sections(&bound, &more, &visible, "why").expect_err("all open").code, "already_open");
        }
    }

    #[test]
    fn every_closed_section_and_no_other_can_be_opened_by_its_key(plans in plan(), mask in any::<u64>()) {
        let (prompt, all) = (prompt(&plans), paths(&plans));
        let bound = prompt.bind(&AnyTask::default()).expect("bound");
        let open = chosen(&all, mask);
        let rendered = bound.render(&open).expect("rendered");
        let closed: Vec<&String> =
            all.iter().filter(|(path, closed, _)| *closed && !open.contains(path)).map(|(path, ..)| path).collect();
        prop_assert_eq!(rendered.closed.iter().collect::<Vec<_>>(), closed);
        prop_assert_eq!(rendered.tools.iter().any(|tool| tool == "open_sections"), !rendered.closed.is_empty());
        for path in &rendered.closed {
            let required = open_sections(&bound, &open, std::slice::from_ref(path), "why").expect("it opens");
            let next = bound.render(&required.applied_to(&open)).expect("rendered");
            let shown = next.sections.iter().find(|section| section.path == *path).expect("shown");
            prop_assert_eq!(shown.shown, SectionDisplay::Full);
        }
    }

    #[test]
    fn tools_are_hidden_with_their_section(plans in plan(), mask in any::<u64>()) {
        let (prompt, all) = (prompt(&plans), paths(&plans));
        let bound = prompt.bind(&AnyTask::default()).expect("bound");
        let open = chosen(&all, mask);
        let offered: Vec<String> =
            bound.render(&open).expect("rendered").tools.into_iter().filter(|tool| tool.starts_with("tool_")).collect();
        let expected: Vec<String> =
            all.iter().filter(|(path, _, tool)| *tool && is_visible(path, &all, &open)).map(|(path, ..)| tool(path)).collect();
        prop_assert_eq!(offered, expected);
    }

    #[test]
    fn a_value_stands_in_the_text_as_it_is(value in "[a-z${} \\\\]{0,30}", other in "[a-z${}]{0,10}") {
        let text = "[[sections]]\nkey='a'\ntitle='A'\nbody='<${v}|$w>'\nsummary='(${v})'\nvisibility='summary'";
        let prompt = PromptFile::parse(text).expect("a prompt");
        let task: AnyTask = serde_json::from_value(json!({ "v": value, "w": other })).expect("a task");
        let bound = prompt.bind(&task).expect("bound");
        let closed = bound.render(&BTreeSet::new()).expect("rendered").text;
        prop_assert!(closed.starts_with(&format!("## 1. A\n\n({value})\n\n---\n")), "{}", closed);
        let open = bound.render(&BTreeSet::from(["a".to_owned()])).expect("rendered").text;
        prop_assert_eq!(open, format!("## 1. A\n\n<{value}|{other}>"));
    }

    #[test]
    fn what_is_written_as_a_file_says_the_same_in_every_cycle(plans in plan(), mask in any::<u64>(), value in "[a-z${} \\n]{0,12}") {
        let (prompt, all) = (prompt(&plans), paths(&plans));
        let task: AnyTask = serde_json::from_value(json!({ "v": value, "_text0": "mine" })).expect("a task");
        let read = PromptFile::parse(&prompt.written(&task).expect("written")).expect("a legal file");
        let (bound, again) = (prompt.bind(&task).expect("bound"), read.bind(&task).expect("bound"));
        let shown = |bound: &BoundPrompt<'_>, open: &BTreeSet<String>| {
            let RenderedText { text, tools, sections, closed } = bound.render(open).expect("rendered");
            let numbers: Vec<_> = sections.into_iter().map(|section| (section.path, section.number, section.shown)).collect();
            (text, tools, numbers, closed)
        };
        prop_assert_eq!(shown(&bound, &BTreeSet::new()), shown(&again, &BTreeSet::new()));
        let (open, output) = (chosen(&all, mask), "Sections expanded.".to_owned());
        prop_assert_eq!(shown(&bound.expanded(output.clone()), &open), shown(&again.expanded(output), &open));
    }

    #[test]
    fn rendering_from_what_was_rendered_gives_the_same(plans in plan(), one in any::<u64>(), other in any::<u64>()) {
        let (prompt, all) = (prompt(&plans), paths(&plans));
        let bound = prompt.bind(&AnyTask::default()).expect("bound");
        let before = bound.render(&chosen(&all, one)).expect("rendered");
        let again = bound.clone().expanded("Sections expanded.".to_owned());
        let open = chosen(&all, one | other);
        prop_assert_eq!(again.render_after(&before, &open).expect("rendered"), again.render(&open).expect("rendered"));
    }
}

#[test]
fn what_code_decides_is_decided_when_a_prompt_is_written() {
    let decided = Visibility::Decided(Arc::new(|value| {
        if value("hurry").as_deref() == Some("yes") { SectionDisplay::Full } else { SectionDisplay::Summary }
    }));
    let part = PromptSection::literal("part", "Part", "Hand over $5 parts.").tool("read_file");
    let prompt: Prompt<AnyTask> = Prompt::builder()
        .section(
            PromptSection::text("a", "A", "  text of ${who},\n    costs $$5").with_summary("short", decided),
        )
        .section(
            PromptSection::text("b", "B", "${expansion_instructions}, then ${who}")
                .param("expansion_instructions", "nothing"),
        )
        .section(PromptSection::delegation(DelegationPrompt::new(vec![part])))
        .section(TaskSection::default())
        .build()
        .expect("a prompt");
    for hurry in ["yes", "no"] {
        let task = json!({ "request": "Do it.", "who": "the $other", "hurry": hurry });
        let task: AnyTask = serde_json::from_value(task).expect("a task");
        let read = PromptFile::parse(&prompt.written(&task).expect("written")).expect("a legal file");
        let (bound, again) = (prompt.bind(&task).expect("bound"), read.bind(&task).expect("bound"));
        let none = BTreeSet::new();
        assert_eq!(bound.render(&none), again.render(&none));
        let next = |bound: BoundPrompt<'_>| {
            bound.expanded("a is open".to_owned()).render(&BTreeSet::from(["a".to_owned()]))
        };
        assert_eq!(next(bound), next(again));
        let handed = |prompt: &Prompt<AnyTask>| {
            let prompt = prompt.delegation().expect("it hands over").prompt(&Recap::default(), Vec::new());
            let text = prompt.expect("a prompt").bind(&task).map(|bound| bound.render(&BTreeSet::new()));
            text.expect("bound").expect("rendered")
        };
        assert_eq!(handed(&prompt), handed(&read));
    }
    let switched = PromptSection::literal("part", "Part", "x").enabled(Arc::new(|_| true));
    let prompt: Prompt<AnyTask> = Prompt::builder()
        .section(PromptSection::delegation(DelegationPrompt::new(vec![switched])))
        .build()
        .expect("a prompt");
    assert_eq!(prompt.written(&AnyTask::default()).expect_err("code").code, "undecided_section");
}

#[test]
fn what_did_not_change_is_taken_over() {
    let prompt: Prompt<AnyTask> = Prompt::builder()
        .section(PromptSection::text("a", "A", "text"))
        .section(PromptSection::text("b", "B", "text").summarised("short"))
        .section(
            PromptSection::text("c", "C", "after ${expansion_instructions}")
                .param("expansion_instructions", "nothing"),
        )
        .section(TaskSection::default())
        .build()
        .expect("a prompt");
    let task: AnyTask = serde_json::from_value(json!({ "request": "Do it." })).expect("a task");
    let bound = prompt.bind(&task).expect("bound");
    let before = bound.render(&BTreeSet::new()).expect("rendered");
    let bound = bound.expanded("b is open".to_owned());
    let after = bound.render_after(&before, &BTreeSet::from(["b".to_owned()])).expect("rendered");
    let same: Vec<bool> = before
        .sections
        .iter()
        .zip(&after.sections)
        .map(|(one, other)| Arc::ptr_eq(&one.text, &other.text))
        .collect();
    assert_eq!(same, [true, false, false, false]);
    assert_eq!(
        after.text,
        "## 1. A\n\ntext\n\n## 2. B\n\ntext\n\n## 3. C\n\nafter b is open\n\n## 4. Task\n\n**Expansion Context:** b is \
         open\n\n---\n\nDo it."
    );
}

#[test]
fn a_section_that_is_disabled_meanwhile_is_gone_and_its_key_unknown() {
    let inner = PromptSection::text("inner", "Inner", "text").summarised("short");
    let switched = PromptSection::text("extra", "Extra", "text")
        .summarised("short")
        .child(inner)
        .param("on", "yes")
        .enabled(Arc::new(|value| value("on").as_deref() == Some("yes")));
    let prompt: Prompt<AnyTask> = Prompt::builder()
        .section(switched)
        .section(PromptSection::text("rest", "Rest", "text"))
        .build()
        .expect("a prompt");
    let task = |on: &str| serde_json::from_value::<AnyTask>(json!({ "on": on })).expect("a task");
    let keys = ["extra.inner".to_owned()];
    let bound = prompt.bind(&task("yes")).map(|bound| open_sections(&bound, &BTreeSet::new(), &keys, "why"));
    let opened = bound.expect("bound").expect("opened").applied_to(&BTreeSet::new());
    let off = task("no");
    let bound = prompt.bind(&off).expect("bound");
    let rendered = bound.render(&opened).expect("rendered");
    assert_eq!((rendered.text.as_str(), rendered.closed.len()), ("## 2. Rest\n\ntext", 0));
    assert_eq!(open_sections(&bound, &opened, &keys, "why").expect_err("gone").code, "unknown_section");
    assert_eq!(bound.may_read("extra.inner", &opened).expect_err("gone").code, "unknown_section");
}

#[test]
fn five_thousand_sections_are_rendered_and_any_is_found() {
    let build = |n: usize| PromptSection::text(format!("s{n}"), "S", "text").summarised("short");
    let prompt: Prompt<AnyTask> =
        (0..5_000).map(build).fold(Prompt::builder(), PromptBuilder::section).build().expect("a prompt");
    let bound = prompt.bind(&AnyTask::default()).expect("bound");
    let rendered = bound.render(&BTreeSet::new()).expect("rendered");
    assert_eq!((rendered.sections.len(), rendered.closed.len()), (5_000, 5_000));
    assert_eq!(rendered.sections[4_999].number, "5000");
    let open = |key: &str| open_sections(&bound, &BTreeSet::new(), &[key.to_owned()], "why");
    assert_eq!(open("s4999").expect("opened").section_keys, ["s4999"]);
    assert_eq!(open("s5000").expect_err("unknown").code, "unknown_section");
}
