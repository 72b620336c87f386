//! Calls as models write them, and texts that only look like calls.

use proptest::prelude::*;

use super::*;

fn known(name: &str) -> bool {
    matches!(name, "read_file" | "write_file" | "shell")
}

/// One line per call, then the remaining text.
fn read(text: &str) -> String {
    let Some(found) = find(text, &known) else { return "nothing".to_owned() };
    let mut lines: Vec<String> =
        found.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
    if !found.reasoning.is_empty() {
        lines.push(format!("thought: {}", found.reasoning));
    }
    if !found.text.is_empty() {
        lines.push(format!("text: {}", found.text));
    }
    lines.join("\n")
}

#[test]
fn tool_call_tags() {
    let text = "I look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n\
                <tool_call>{\"name\":\"shell\",\"arguments\":{\"command\":\"ls\"}}</tool_call>";
    assert_eq!(read(text), "read_file {\"path\":\"a\"}\nshell {\"command\":\"ls\"}\ntext: I look.");
    assert_eq!(
        read("<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}"),
        "read_file {\"path\":\"a\"}",
        "the closing tag is a stop word for some servers"
    );
    assert_eq!(
        read("<tool_call>{\"name\":\"shell\",\"arguments\":{\"command\":\"echo \"hi\"\"}}</tool_call>"),
        "shell {\"command\":\"echo \"hi\"\"}",
        "what is broken goes on to whoever repairs it"
    );
    assert_eq!(read("<tool_call>{\"name\":\"no_such\",\"arguments\":{}}</tool_call>"), "no_such {}");
}

#[test]
fn function_tags() {
    let text = "<tool_call>\n<function=write_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=content>\n\
                if a < b:\n    print(\"x\")\n\n</parameter>\n</function>\n</tool_call>";
    assert_eq!(
        read(text),
        "write_file {\"path\":\"a.py\",\"content\":\"if a < b:\\n    print(\\\"x\\\")\\n\"}"
    );
    assert_eq!(
        read("<function=shell>{\"command\": \"ls\"}</function> done"),
        "shell {\"command\": \"ls\"}\ntext: done"
    );
    assert_eq!(
        read("<function=read_file><parameter=path>a</parameter><parameter=limit>20</parameter></function>"),
        "read_file {\"path\":\"a\",\"limit\":20}"
    );
}

#[test]
fn fenced_and_bare_json() {
    let call = "{\n  \"name\": \"read_file\",\n  \"arguments\": {\"path\": \"a\"}\n}";
    for text in [
        format!("```json\n{call}\n```"),
        format!("```\n{call}\n```\n"),
        call.to_owned(),
        format!("[{call}]"),
        "{\"tool\":\"read_file\",\"parameters\":{\"path\":\"a\"}}".to_owned(),
        "{\"type\":\"function\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\":\\\"a\\\"}\"}}"
            .to_owned(),
    ] {
        assert_eq!(read(&text), "read_file {\"path\":\"a\"}", "{text}");
    }
    assert_eq!(
        read(&format!("First I read it:\n\n```json\n{call}\n```")),
        "read_file {\"path\":\"a\"}\ntext: First I read it:"
    );
    assert_eq!(read(&format!("{call}\n{call}")), "read_file {\"path\":\"a\"}\nread_file {\"path\":\"a\"}");
}

/// Taken from replies of small models that used to end a task as its answer.
#[test]
fn a_reply_that_is_a_call_is_never_the_answer() {
    let call = "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}";
    for text in [
        format!("```json\n{call}\n"),
        format!("```json\n{call}```"),
        format!("```json {call} ```"),
        format!("```xml\n<tool_call>{call}</tool_call>\n```"),
        format!("```\n<tool_call>{call}</tool_call>\n```"),
        "```json\n{\"name\": \"read_file\", \"reason\": \"to see\", \"arguments\": {\"path\": \"a\"}}\n```"
            .to_owned(),
        "```json\n{\"read_file\": {\"path\": \"a\"}}\n```".to_owned(),
    ] {
        assert_eq!(read(&text), "read_file {\"path\":\"a\"}", "{text}");
    }
    assert_eq!(
        read(&format!("```json\n{call}\n```\nThis reads the file.")),
        "read_file {\"path\":\"a\"}\ntext: This reads the file."
    );
    assert_eq!(
        read(&format!("First:\n```json\n{call}\n```\nthen:\n```json\n{call}\n```")),
        "read_file {\"path\":\"a\"}\nread_file {\"path\":\"a\"}\ntext: First:\n\nthen:"
    );
    assert_eq!(
        read(
            "```json\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"one\ntwo\"}}\n```"
        ),
        "write_file {\"path\": \"a\", \"content\": \"one\ntwo\"}",
        "a line break in a string is no JSON; what is broken goes on to whoever repairs it"
    );
    assert_eq!(
        read("```json\n{\"name\": \"list_files\", \"arguments\": {\"path\": \".\"}}\n```"),
        "list_files {\"path\":\".\"}",
        "the model is told that there is no such tool"
    );
}

#[test]
fn channels() {
    let text = "<|channel|>analysis<|message|>I need the file.<|end|><|start|>assistant<|channel|>commentary \
                to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>";
    assert_eq!(read(text), "read_file {\"path\":\"a\"}\nthought: I need the file.");
    assert_eq!(
        read(
            "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It is 4."
        ),
        "thought: Easy.\ntext: It is 4."
    );
}

#[test]
fn what_only_speaks_about_calls_is_text() {
    let call = "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}";
    for text in [
        "Done.".to_owned(),
        format!("A call looks like this:\n```json\n{call}\n```\nThat is all."),
        format!("```xml\n<tool_call>{call}</tool_call>\n```\nis how it is written."),
        format!("Write `<tool_call>{call}</tool_call>` to read."),
        format!("The line {call} is a call."),
        "```json\n{\"name\": \"package\", \"input\": {}}\n```".to_owned(),
        "It is {\"name\": \"package\", \"arguments\": {}}".to_owned(),
        "```json\n{\"package\": {\"name\": \"read_file\"}}\n```".to_owned(),
        "```json\n{\"name\": \"read_file\", \"version\": \"1.0\"}\n```".to_owned(),
        "```json\n{\"name\": \"read_file\"}\n```".to_owned(),
        format!("```python\nx = 1\n```\n{call} and more"),
        format!("```python\nprint('''\n```json\n{call}\n```"),
        "In harmony, <|channel|>final<|message|> begins the answer.".to_owned(),
        "<tool_call>not json</tool_call>".to_owned(),
        String::new(),
    ] {
        assert_eq!(read(&text), "nothing", "{text}");
    }
}

fn stream(text: &str, cuts: &[usize]) -> String {
    let mut given = String::new();
    let mut holding = Holdback::default();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        let to = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        if to > from {
            holding.take(&text[from..to], &mut |piece| given.push_str(piece));
            from = to;
        }
    }
    let left = find(text, &known).map_or_else(|| text.to_owned(), |found| found.text);
    holding.release(&left, &mut |piece| given.push_str(piece));
    given
}

#[test]
fn what_is_seen_under_way_is_the_text_and_not_the_call() {
    let call = "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}";
    for (text, seen) in [
        (format!("I look.\n<tool_call>{call}</tool_call>"), "I look.\n"),
        (format!("```json\n{call}\n```"), ""),
        (
            "Use {braces} freely, and <tags>.\n[x] too.".to_owned(),
            "Use {braces} freely, and <tags>.\n[x] too.",
        ),
        ("```json\n{\"a\": 1}\n```\nis JSON.".to_owned(), "```json\n{\"a\": 1}\n```\nis JSON."),
    ] {
        for step in [1, 2, 3, 7, 100] {
            let cuts: Vec<usize> = (1..).map(|n| n * step).take_while(|at| *at < text.len()).collect();
            assert_eq!(stream(&text, &cuts), seen, "steps of {step}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "(<tool_call>|</tool_call>|<function=a>|</function>|```|```json|\\{|\\}|\"name\"|:|\"x\"|\n| |<\\|channel\\|>|<\\|message\\|>|ä){0,30}") {
        let _ = find(&text, &known);
    }

    #[test]
    fn a_text_without_calls_is_streamed_whole(text in "[a-z{<` \n\\[ä]{0,60}", cuts in prop::collection::vec(0usize..60, 0..6)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        if find(&text, &known).is_none() {
            prop_assert_eq!(stream(&text, &cuts), text);
        }
    }
}
