//! Rendering is byte-exact as specified, and all problems are reported at once.

use std::collections::BTreeSet;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::*;

fn render(prompt: &Prompt<AnyTask>, task: serde_json::Value, open: &[&str]) -> RenderedText {
    let task: AnyTask = serde_json::from_value(task).expect("a task");
    let open: BTreeSet<String> = open.iter().map(|path| (*path).to_owned()).collect();
    prompt.bind(&task).expect("bound").render(&open).expect("rendered")
}

fn four_and_a_task() -> Prompt<AnyTask> {
    let mut builder = Prompt::builder();
    for n in 1..=4 {
        builder = builder
            .section(PromptSection::text(format!("s{n}"), "S", "").enabled(std::sync::Arc::new(|_| false)));
    }
    builder.section(TaskSection::default()).build().expect("a prompt")
}

#[test]
fn the_first_sample_of_the_specification() {
    let task = json!({
        "request": "Review the authentication module for security vulnerabilities.",
        "background": "Follow-up to the Q4 security audit findings.",
    });
    assert_eq!(
        render(&four_and_a_task(), task, &[]).text,
        "## 5. Task\n\nReview the authentication module for security vulnerabilities.\n\n\
         **Background:** Follow-up to the Q4 security audit findings."
    );
}

#[test]
fn the_second_sample_of_the_specification() {
    let instructions =
        build_expansion_instructions(&["reference-docs".to_owned()], "Need security guidelines");
    let task = json!({
        "request": "Review the authentication module for security vulnerabilities.",
        "background": "Follow-up to the Q4 security audit findings.",
        "expansion_instructions": instructions,
    });
    assert_eq!(
        render(&four_and_a_task(), task, &[]).text,
        "## 5. Task\n\n**Expansion Context:** Sections expanded: `reference-docs`. Reason: Need security guidelines. \
         Continue with your task using the newly visible content.\n\n---\n\n\
         Review the authentication module for security vulnerabilities.\n\n\
         **Background:** Follow-up to the Q4 security audit findings."
    );
}

const FILE: &str = r#"
[[sections]]
key = " Reference-Docs "
title = " Reference Documentation "
body = """
    Full docs for ${project}.
      Indented, and $$5.
"""
summary = "Docs for ${project} exist."
visibility = "summary"
params = { project = "demo" }
sections = [ { key = "api", title = "API", body = "API text." } ]

[[sections]]
key = "off"
title = "Off"
body = "never"
enabled = false

[[sections]]
kind = "task"
"#;

#[test]
fn a_file_renders_closed_and_open() {
    let prompt = PromptFile::parse(FILE).expect("a prompt");
    let task =
        json!({ "request": "Do it.", "focus": "speed", "files": ["a.rs", "b.rs"], "background": "  " });
    let closed = render(&prompt, task.clone(), &[]);
    assert_eq!(
        closed.text,
        "## 1. Reference Documentation\n\nDocs for demo exist.\n\n---\n[Summary only. To see all of it, call \
         `open_sections` with key `reference-docs`. Inside: `reference-docs.api`.]\n\n\
         ## 3. Task\n\nDo it.\n\n- **focus:** speed\n- **files:** a.rs, b.rs"
    );
    assert_eq!(closed.tools, ["read_section", "open_sections"]);
    assert_eq!(closed.closed, ["reference-docs"]);
    let open = render(&prompt, task, &["reference-docs"]);
    assert_eq!(
        open.text,
        "## 1. Reference Documentation\n\nFull docs for demo.\n  Indented, and $5.\n\n### 1.1. API\n\nAPI text.\n\n\
         ## 3. Task\n\nDo it.\n\n- **focus:** speed\n- **files:** a.rs, b.rs"
    );
    assert_eq!((open.tools.len(), open.closed.len()), (0, 0));
    let shown: Vec<_> =
        open.sections.iter().map(|section| (section.path.as_str(), section.number.as_str())).collect();
    assert_eq!(shown, [("reference-docs", "1"), ("reference-docs.api", "1.1"), ("task", "3")]);
}

#[test]
fn a_task_field_wins_over_a_parameter() {
    let prompt = PromptFile::parse(FILE).expect("a prompt");
    let text = render(&prompt, json!({ "request": "x", "project": "$other" }), &[]).text;
    assert!(text.contains("Docs for $other exist."), "{text}");
}

#[test]
fn opening_opens_closed_ancestors_skips_what_is_open_and_names_each_key_once() {
    let inner = PromptSection::text("b", "B", "inner").summarised("b in short");
    let prompt: Prompt<AnyTask> = Prompt::builder()
        .section(PromptSection::text("a", "A", "outer").summarised("a in short").child(inner))
        .section(PromptSection::text("c", "C", "plain"))
        .build()
        .expect("a prompt");
    let bound = prompt.bind(&AnyTask::default()).expect("bound");
    let none = BTreeSet::new();
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    let required = open_sections(&bound, &none, &keys(&["a.b", "c", "A.B"]), "to see..").expect("opened");
    assert_eq!(required.section_keys, ["a.b"]);
    let full = |path: &str| (path.to_owned(), SectionDisplay::Full);
    assert_eq!(required.requested_overrides, [full("a"), full("a.b")].into());
    assert_eq!(
        required.expansion_instructions,
        "Sections expanded: `a.b`. Reason: to see. Continue with your task using the newly visible content."
    );
    let code = |asked: &[&str]| open_sections(&bound, &none, &keys(asked), "r").expect_err("nothing").code;
    assert_eq!((code(&["c"]), code(&["ab"]), code(&[])), ("already_open", "unknown_section", "no_keys"));
}

#[test]
fn a_task_has_neither_background_nor_instructions_of_its_own() {
    let task = Task::new("Do it.");
    assert_eq!((task.background.as_deref(), task.expansion_instructions.as_deref()), (None, None));
    assert_eq!(serde_json::to_value(&task).expect("JSON"), json!({ "request": "Do it." }));
    let schema = serde_json::to_value(schemars::schema_for!(Task)).expect("JSON");
    assert_eq!(schema["required"], json!(["request"]));
    for field in ["request", "background", "expansion_instructions"] {
        assert!(schema["properties"][field]["description"].is_string(), "{field}: {schema}");
    }
    assert_eq!(render(&four_and_a_task(), json!({ "request": "Do it." }), &[]).text, "## 5. Task\n\nDo it.");
}

#[test]
fn a_task_is_bound_again_with_the_instructions_of_each_expansion() {
    let prompt: Prompt<Task> = Prompt::builder()
        .section(PromptSection::text("a", "A", "all of a").summarised("a in short"))
        .section(PromptSection::text("b", "B", "all of b").summarised("b in short"))
        .section(TaskSection::default())
        .build()
        .expect("a prompt");
    let (mut task, mut open) = (Task::new("Do it."), BTreeSet::new());
    let mut texts = Vec::new();
    for key in ["a", "b"] {
        let bound = prompt.bind(&task).expect("bound");
        let required = open_sections(&bound, &open, &[key.to_owned()], "to see").expect("opened");
        open = required.applied_to(&open);
        task = Task { expansion_instructions: Some(required.expansion_instructions), ..task };
        texts.push(prompt.bind(&task).expect("bound").render(&open).expect("rendered").text);
    }
    let end = |key: &str| {
        format!(
            "## 3. Task\n\n**Expansion Context:** Sections expanded: `{key}`. Reason: to see. Continue with your \
             task using the newly visible content.\n\n---\n\nDo it."
        )
    };
    assert!(texts[0].starts_with("## 1. A\n\nall of a\n\n## 2. B\n\nb in short\n"), "{}", texts[0]);
    assert!(texts[0].ends_with(&end("a")), "{}", texts[0]);
    assert_eq!(texts[1], format!("## 1. A\n\nall of a\n\n## 2. B\n\nall of b\n\n{}", end("b")));
}

#[test]
fn reading_a_section_gives_its_whole_text_and_changes_nothing() {
    let prompt = PromptFile::parse(FILE).expect("a prompt");
    let task: AnyTask = serde_json::from_value(json!({ "request": "x" })).expect("a task");
    let bound = prompt.bind(&task).expect("bound");
    let text = bound.read_section("reference-docs").expect("read");
    assert_eq!(
        text,
        "## 1. Reference Documentation\n\nFull docs for demo.\n  Indented, and $5.\n\n### 1.1. API\n\nAPI text."
    );
    assert_eq!(bound.read_section("refrence-docs").expect_err("unknown").code, "unknown_section");
}

#[test]
fn all_problems_of_a_prompt_are_told_at_once() {
    let text = r#"{"sections":[
        {"key":"A b","title":"T","body":"x"},
        {"key":"a","title":"","body":"$ 5"},
        {"key":"a","title":"T","body":"x","visibility":"summary"},
        {"kind":"task","body":"x","summary":"s"},
        {"kind":"task","key":"t2","sections":[{"key":"c","title":"C"}]}
    ]}"#;
    let Err(FileProblem::Content(problems)) = PromptFile::parse(text) else { panic!("it is wrong") };
    let codes: Vec<_> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(
        codes,
        [
            "task_with_body",
            "invalid_key",
            "missing_title",
            "invalid_placeholder",
            "duplicate_key",
            "missing_summary",
            "summarised_task",
            "task_with_children",
            "several_tasks",
        ]
    );
    assert!(
        matches!(PromptFile::parse("[[sections]]\nkei = 'x'"), Err(FileProblem::Syntax(message)) if message.contains("kei"))
    );
}

#[test]
fn a_value_that_is_missing_is_named_with_its_section() {
    let prompt = PromptFile::parse("[[sections]]\nkey='a'\ntitle='A'\nbody='${nobody}'").expect("a prompt");
    let problem =
        prompt.bind(&AnyTask::default()).expect("bound").render(&BTreeSet::new()).expect_err("missing");
    assert_eq!((problem.code, problem.section_path.as_deref()), ("missing_value", Some("a")));
}

/// A domain task.
#[derive(Serialize, JsonSchema)]
struct CodeReviewTask {
    request: String,
    /// Review focus such as 'security' or 'performance'.
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
}

#[test]
fn a_typed_prompt_knows_its_fields_when_it_is_built() {
    let with =
        |body: &str| Prompt::<CodeReviewTask>::builder().section(PromptSection::text("a", "A", body)).build();
    assert!(with("look at $focus").is_ok());
    let problems = with("look at $focsu").err().expect("unknown");
    assert_eq!(
        problems[0].to_string(),
        "section `a`: `${focsu}` is neither a parameter nor a field of the task; did you mean `${focus}`?"
    );
}

fn tree() -> impl Strategy<Value = Vec<PromptSection>> {
    let leaf = (0_usize..3, any::<bool>(), any::<bool>()).prop_map(|(kind, closed, tool)| {
        let section = PromptSection::text("x", ["A", "B", "C"][kind], "body");
        let section = if tool { section.tool(format!("tool_{kind}")) } else { section };
        if closed { section.summarised("short") } else { section }
    });
    let nested = leaf.prop_recursive(3, 12, 3, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..3)).prop_map(|(section, children)| {
            children.into_iter().fold(section, |section, child| {
                let (key, title) = (format!("k{}", section.children.len()), child.title.clone());
                section.child(child.named(key, title))
            })
        })
    });
    prop::collection::vec(nested, 1..4)
}

fn keyed(sections: Vec<PromptSection>) -> Prompt<AnyTask> {
    let mut builder = Prompt::builder();
    for (n, section) in sections.into_iter().enumerate() {
        let title = section.title.clone();
        builder = builder.section(section.named(format!("r{n}"), title));
    }
    builder.build().expect("a legal tree")
}

proptest! {
    #[test]
    fn every_closed_section_can_be_opened_and_opening_never_renumbers_or_hides(sections in tree()) {
        let prompt = keyed(sections);
        let bound = prompt.bind(&AnyTask::default()).expect("bound");
        let mut open = BTreeSet::new();
        let mut rendered = bound.render(&open).expect("rendered");
        for _ in 0..100 {
            let Some(path) = rendered.closed.last().cloned() else { break };
            prop_assert!(rendered.tools.last().is_some_and(|tool| tool == "open_sections"));
            let required = open_sections(&bound, &open, &[path], "why").expect("a closed section opens");
            open = required.applied_to(&open);
            let next = bound.render(&open).expect("rendered");
            for section in &rendered.sections {
                let same = next.sections.iter().find(|other| other.path == section.path).expect("still there");
                prop_assert_eq!(&same.number, &section.number);
            }
            prop_assert!(next.closed.len() < rendered.closed.len());
            rendered = next;
        }
        prop_assert!(rendered.closed.is_empty());
        prop_assert_eq!(bound.render(&open).expect("rendered"), rendered);
    }

    #[test]
    fn a_dollar_in_a_value_is_inert(value in "[a-z$ {}]{0,20}") {
        let prompt = PromptFile::parse("[[sections]]\nkey='a'\ntitle='A'\nbody='<${v}>'").expect("a prompt");
        let text = render(&prompt, json!({ "v": value }), &[]).text;
        prop_assert_eq!(text, format!("## 1. A\n\n<{value}>"));
    }
}
