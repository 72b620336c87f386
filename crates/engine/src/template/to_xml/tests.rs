//! A written template reads back as itself.

use fusee_text::Source;

use super::super::{
    AccumulationFormat, ContextOverrides, InheritContext, InputType, LimitOverrides, OutputFormat,
    OutputKind, TemplateRegistry, shipped,
};
use super::*;

fn again(template: &Template) -> Template {
    let (read, problems) = Template::read(&Source::new("t.xml", template.to_xml()));
    let problems: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    read.unwrap_or_else(|| panic!("{problems:?}\n{}", template.to_xml()))
}

#[test]
fn every_shipped_template_reads_back_as_itself() {
    let shipped = shipped();
    assert!(!shipped.is_empty());
    for known in shipped {
        assert_eq!(again(&known.template), known.template);
    }
}

#[test]
fn every_field_reads_back_as_itself() {
    let input = |name: &str, kind, default: Option<Value>| TemplateInput {
        name: name.to_owned(),
        kind,
        default,
        description: Some("A <b>text</b> & more".to_owned()),
    };
    let section = |key: &str, sections| SectionText {
        key: key.to_owned(),
        title: "\"A title\"".to_owned(),
        closed: true,
        summary: Some("Short.".to_owned()),
        body: "First\n  indented\nlast {{a}}".to_owned(),
        sections,
    };
    let template = Template {
        name: "built".to_owned(),
        subtype: Some("edit".to_owned()),
        is_default: true,
        description: "Edit {{a}}".to_owned(),
        instructions: Some("if a < b && c:\n    do {{a}}\n\nthen {{b}} {{c.d}} {{{{".to_owned()),
        system: Some("You are terse.".to_owned()),
        inputs: vec![
            input("a", InputType::String, Some("two \"words\"".into())),
            input("b", InputType::Array, Some(serde_json::json!([1, "x"]))),
            input("c", InputType::Object, None),
        ],
        sections: vec![section("outer", vec![section("inner", Vec::new())])],
        output_format: Some(OutputFormat { kind: OutputKind::Json, schema: Some("object".to_owned()) }),
        context_management: ContextOverrides {
            inherit_context: Some(InheritContext::Subset),
            accumulate_data: Some(true),
            accumulation_format: Some(AccumulationFormat::FullOutput),
            fresh_context: None,
        },
        file_paths: Some(FilePaths::Literal(vec!["src/a&b.rs".to_owned(), "c".to_owned()])),
        context_relevance: Some(vec![("a".to_owned(), true), ("b".to_owned(), false)]),
        provider: Some("openai".to_owned()),
        model: Some("m".to_owned()),
        criteria: Some("It is short.".to_owned()),
        allowed_tools: Some(vec!["read_file".to_owned(), "list_dir".to_owned()]),
        blocked_tools: vec!["shell".to_owned()],
        limits: LimitOverrides {
            max_turns: Some(3),
            max_tokens: Some(9000),
            context_fraction: Some(0.25),
            timeout: Some(60),
        },
        flow: Some("staged".to_owned()),
        manual_xml: true,
        disable_reparsing: true,
    };
    assert_eq!(again(&template), template);
    let sources = [
        FilePaths::Command("git ls-files".to_owned()),
        FilePaths::Description("the parser".to_owned()),
        FilePaths::ContextDescription("what {{a}} needs".to_owned()),
    ];
    for files in sources {
        let template = Template { file_paths: Some(files), ..template.clone() };
        assert_eq!(again(&template), template);
    }
}

#[test]
fn a_template_of_a_program_is_registered_only_if_it_is_valid() {
    let mut registry = TemplateRegistry::new();
    let template = Template {
        name: "built".to_owned(),
        subtype: Some("edit".to_owned()),
        description: "Edit a file".to_owned(),
        instructions: Some("Edit.".to_owned()),
        ..Template::default()
    };
    registry.register_template(&template).expect("it is valid");
    for identifier in ["built", "atomic:edit"] {
        assert_eq!(registry.find_template(identifier).expect("registered").template, template);
    }
    let wrong = Template {
        name: "no name".to_owned(),
        description: String::new(),
        instructions: Some("Use {{missing}}.".to_owned()),
        ..Template::default()
    };
    let rejected = registry.register_template(&wrong).expect_err("it is not");
    let codes: Vec<&str> = rejected.problems.iter().map(|problem| problem.code).collect();
    insta::assert_snapshot!(format!("{rejected}\n{codes:?}"), @r#"
    invalid template: invalid value `no name` for `name` of `<task>`; `<description>` is empty; `{{missing}}` refers to an undeclared input
    ["invalid-value", "empty-element", "undeclared-input"]
    "#);
    assert_eq!(registry.all().len(), 1);
}
