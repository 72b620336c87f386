//! Templates: parsing, checking, lookup and matching.

use fusee_text::Source;
use serde_json::{Map, Value, json};

use super::render::fill;
use super::*;
use crate::task_system::{AccumulationFormat, FreshContext, InheritContext};

fn problems(text: &str) -> Vec<String> {
    let (_, problems) = Template::read(&Source::new("t.xml", text));
    problems.into_iter().map(|p| format!("{} {:?} {}: {}", p.start, p.severity, p.code, p.message)).collect()
}

fn template(text: &str) -> Template {
    let (template, problems) = Template::read(&Source::new("t.xml", text));
    template.unwrap_or_else(|| panic!("{problems:?}"))
}

fn named(name: &str, description: &str, subtype: &str, layer: TemplateLayer) -> RegisteredTemplate {
    let text = format!(
        "<task name='{name}' type='atomic' subtype='{subtype}'><description>{description}</description>\
         <instructions>x</instructions></task>"
    );
    let file = format!("{}/{name}.xml", layer.as_str());
    RegisteredTemplate { template: template(&text), text: TemplateText { file, text }, layer }
}

#[test]
fn all_violations_are_reported_at_once_with_their_places() {
    let text = "<task nmae=\"t\" type=\"sequence\" params=\"a,b\">\n  stray\n  <instructions>{{c}} {{ a }}</instructions>\n  \
                <output_format type=\"jsn\"/>\n  <output_format type=\"json\"/>\n  <desription>x</desription>\n  \
                <context_management><inherit_context>ful</inherit_context></context_management>\n</task>\n";
    assert_eq!(
        problems(text),
        [
            "1:1 Error missing-attribute: `<task>` is missing the attribute `name`",
            "1:1 Error missing-element: `<task>` is missing `<description>`",
            "1:7 Warning unknown-attribute: `<task>` has no attribute `nmae`",
            "1:22 Error invalid-value: invalid value `sequence` for `type` of `<task>`",
            "1:40 Warning unused-input: unused input `b`",
            "2:3 Error stray-text: unexpected text in `<task>`: `stray`",
            "3:17 Error undeclared-input: `{{c}}` refers to an undeclared input",
            "4:24 Error invalid-value: invalid value `jsn` for `type` of `<output_format>`",
            "5:4 Error duplicate-element: duplicate `<output_format>` in `<task>`",
            "6:4 Warning unknown-element: unknown element `<desription>` in `<task>` is ignored",
            "7:40 Error invalid-value: invalid value `ful` for `<inherit_context>`",
        ]
    );
    let (_, found) = Template::read(&Source::new("t.xml", text));
    let help = |code: &str| found.iter().find(|p| p.code == code).and_then(|p| p.help.clone()).unwrap();
    assert_eq!(help("unknown-attribute"), "did you mean `name`?");
    assert_eq!(help("unknown-element"), "did you mean `description`?");
    assert!(found.iter().any(|p| p.help.as_deref().is_some_and(|help| help.contains("workflows"))));
}

#[test]
fn a_template_is_read_with_all_its_parts() {
    let text = "<task name='t' type='atomic' subtype='aider_automatic'>\n\
        <description>Edit {{path}}</description>\n\
        <inputs><input name='path'>The file</input><input name='n' type='number' default='3'/></inputs>\n\
        <instructions>\n    First line {{n}}.\n      Indented.\n\n    Last.\n  </instructions>\n\
        <section key='Rules'>Be good.<summary>Rules.</summary><section key='inner' title='In'>x</section></section>\n\
        <output_format type='json' schema='string[]'/>\n\
        <context_management><accumulation_format>full_output</accumulation_format></context_management>\n\
        <file_paths source='context_description'><context_query>parsers of {{path}}</context_query></file_paths>\n\
        <tools allow='read_file, grep' block='shell'/><limits max_turns='4' timeout='9'/></task>";
    let expected = Template {
        name: "t".to_owned(),
        subtype: Some("aider_automatic".to_owned()),
        description: "Edit {{path}}".to_owned(),
        instructions: Some("First line {{n}}.\n  Indented.\n\nLast.".to_owned()),
        inputs: vec![
            TemplateInput {
                name: "path".to_owned(),
                kind: InputType::String,
                default: None,
                description: Some("The file".to_owned()),
            },
            TemplateInput {
                name: "n".to_owned(),
                kind: InputType::Number,
                default: Some(json!(3)),
                description: None,
            },
        ],
        sections: vec![SectionText {
            key: "rules".to_owned(),
            title: "rules".to_owned(),
            closed: false,
            summary: Some("Rules.".to_owned()),
            body: "Be good.".to_owned(),
            sections: vec![SectionText {
                key: "inner".to_owned(),
                title: "In".to_owned(),
                body: "x".to_owned(),
                ..SectionText::default()
            }],
        }],
        output_format: Some(OutputFormat { kind: OutputKind::Json, schema: Some("string[]".to_owned()) }),
        context_management: ContextOverrides {
            accumulation_format: Some(AccumulationFormat::FullOutput),
            ..ContextOverrides::default()
        },
        file_paths: Some(FilePaths::ContextDescription("parsers of {{path}}".to_owned())),
        allowed_tools: Some(vec!["read_file".to_owned(), "grep".to_owned()]),
        blocked_tools: vec!["shell".to_owned()],
        limits: LimitOverrides { max_turns: Some(4), timeout: Some(9), ..LimitOverrides::default() },
        ..Template::default()
    };
    assert_eq!(template(text), expected);
}

#[test]
fn a_template_that_contradicts_itself_is_refused() {
    let text = "<task name='t' type='atomic'><description>x</description><instructions>y</instructions>\
        <context_management><inherit_context>subset</inherit_context><fresh_context>enabled</fresh_context>\
        </context_management></task>";
    let (template, problems) = Template::read(&Source::new("t.xml", text));
    assert!(template.is_none());
    assert_eq!(problems.iter().map(|p| p.code).collect::<Vec<_>>(), ["context-conflict"]);
    assert_eq!(
        (FreshContext::Enabled, InheritContext::Subset),
        (FreshContext::Enabled, InheritContext::Subset)
    );
}

#[test]
fn placeholders_are_filled_once_and_all_missing_ones_named() {
    let inputs: Map<String, Value> =
        json!({"a": "{{b}}", "b": 2, "o": {"x": {"y": "deep"}, "list": [1, {"z": true}]}})
            .as_object()
            .unwrap()
            .clone();
    let mut missing = Vec::new();
    let text = "{{a}} {{ b }} {{o.x.y}} {{o.list.1.z}} {{o.x}} {{{{b}} {{{b}}} {{not a name}} {{";
    let filled = fill(text, &inputs, &mut missing);
    assert_eq!(filled, "{{b}} 2 deep true {\"y\":\"deep\"} {{b}} {2} {{not a name}} {{");
    assert!(missing.is_empty());
    assert_eq!(fill("{{x}}{{o.no}}{{y}}{{x}}", &inputs, &mut missing), "");
    assert_eq!(missing, ["x", "o.no", "y"]);
}

#[test]
fn inputs_are_bound_or_everything_wrong_with_them_is_told() {
    let template = template(
        "<task name='t' type='atomic'><description>x</description><inputs><input name='path'/><input name='n' type='number'/>\
         <input name='deep' type='boolean' default='true'/></inputs><instructions>{{path}}{{n}}{{deep}}</instructions></task>",
    );
    let given = json!({"path": "a", "n": 3}).as_object().unwrap().clone();
    assert_eq!(Value::Object(bind(&template, &given).unwrap()), json!({"path": "a", "n": 3, "deep": true}));
    let given = json!({"pth": "a", "n": "three"}).as_object().unwrap().clone();
    let output: Vec<String> = bind(&template, &given).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        output,
        [
            "`path` (string) is missing",
            "`n` takes a value of type number, not `\"three\"`",
            "`pth` is not an input; did you mean `path`?",
        ]
    );
    assert_eq!(typed(InputType::Array, "[1]"), json!([1]));
    assert_eq!(typed(InputType::String, "[1]"), json!("[1]"));
}

#[test]
fn templates_are_found_by_name_then_by_subtype() {
    let mut registry = TemplateRegistry::new();
    registry.register(named("a", "x", "edit", TemplateLayer::Project)).unwrap();
    registry.register(named("b", "x", "plan", TemplateLayer::Project)).unwrap();
    registry.register(named("c", "x", "plan", TemplateLayer::Project)).unwrap();
    let name = |identifier: &str| registry.find_template(identifier).map(|found| found.template.name.clone());
    assert_eq!(name("a"), Ok("a".to_owned()));
    assert_eq!(name("atomic:edit"), Ok("a".to_owned()));
    assert_eq!(
        name("atomic:plan").unwrap_err().to_string(),
        "`atomic:plan` is the subtype of several templates: `b` (project/b.xml), `c` (project/c.xml); name one of them, or \
         mark one as the default"
    );
    assert_eq!(name("zzz").unwrap_err().to_string(), "unknown template `zzz`");
    let twice = registry.register(named("a", "y", "edit", TemplateLayer::Project)).unwrap_err();
    assert_eq!(
        twice.to_string(),
        "duplicate template `a` in project/a.xml and project/a.xml; rename one of them"
    );
}

#[test]
fn the_one_marked_default_answers_for_its_subtype() {
    let mut registry = TemplateRegistry::new();
    registry.register(named("a", "x", "plan", TemplateLayer::Project)).unwrap();
    let mut marked = named("b", "x", "plan", TemplateLayer::Project);
    marked.template.is_default = true;
    registry.register(marked).unwrap();
    assert_eq!(registry.find_template("atomic:plan").unwrap().template.name, "b");
}

#[test]
fn nearer_layers_shadow_farther_ones_in_any_order() {
    let layers = [TemplateLayer::BuiltIn, TemplateLayer::Project, TemplateLayer::User];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        let mut registry = TemplateRegistry::new();
        for at in order {
            registry.register(named("a", "x", "s", layers[at])).unwrap();
        }
        assert_eq!(registry.find_template("a").unwrap().layer, TemplateLayer::Project);
        assert_eq!(registry.find_template("atomic:s").unwrap().layer, TemplateLayer::Project);
        assert_eq!(registry.shadowed().len(), 2);
    }
}

#[test]
fn words_are_matched_against_descriptions_best_first() {
    let mut registry = TemplateRegistry::new();
    for shipped in shipped() {
        registry.register(shipped).unwrap();
    }
    let best = |words: &str| {
        let found = registry.find_matching_tasks(words, &MatchOptions::default());
        assert!(found.iter().all(|found| found.score > 0.0 && found.score <= 1.0));
        assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
        found.first().map(|found| found.registered.template.name.clone())
    };
    assert_eq!(best("Summarize this file"), Some("summarise".to_owned()));
    assert_eq!(best("fixing a failing test"), Some("fix-test".to_owned()));
    assert_eq!(best("write a commit message"), Some("commit-message".to_owned()));
    assert_eq!(best("translate the text into French"), Some("translate".to_owned()));
    assert_eq!(best("zebra"), None);
    assert_eq!(best(""), None);
    let exact =
        registry.find_matching_tasks("Translate a text into another language", &MatchOptions::default());
    assert_eq!(exact[0].score, 1.0);
}

#[test]
fn the_right_one_of_ten_thousand_templates_is_found() {
    let mut registry = TemplateRegistry::new();
    for n in 0..10_000 {
        let words = format!("Handle case {n} of kind {} for area {}", n % 97, n % 13);
        registry.register(named(&format!("t{n}"), &words, &format!("s{n}"), TemplateLayer::User)).unwrap();
    }
    let found = registry.find_matching_tasks("handle case 4711 of area 5", &MatchOptions::default());
    assert_eq!(found.len(), 5);
    assert_eq!(found[0].registered.template.name, "t4711");
}

#[test]
fn the_skeleton_is_valid() {
    assert_eq!(problems(&SKELETON.replace("NAME", "mine")), [""; 0]);
}

#[test]
fn bytes_that_are_no_text_are_told_at_their_place() {
    let (template, _, problems) = Template::from_bytes("t.xml", b"\xEF\xBB\xBF<task>\n \xff</task>");
    assert!(template.is_none());
    let output: Vec<String> =
        problems.iter().map(|problem| format!("{} {}", problem.start, problem.code)).collect();
    assert_eq!(output, ["2:2 xml-encoding"]);
}
