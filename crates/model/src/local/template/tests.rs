//! Rendering of conversations with chat templates.

use serde_json::{Value, json};

use super::*;

fn prompt(template: Option<&str>, body: &Value) -> Result<String, String> {
    let asked = LocalRequest::read(body.to_string().as_bytes()).unwrap();
    let template = ChatTemplate::read(template.map(str::to_owned), "<s>".to_owned(), "</s>".to_owned())?;
    let prompt = template.prompt(&asked)?;
    Ok(if prompt.thinks { format!("{}(thinks)", prompt.text) } else { prompt.text })
}

#[test]
fn a_template_that_opens_the_thinking_is_closed_again_where_the_form_is_fixed() {
    let template = "{{ messages[0].content }}:<think>\n";
    let mut body = json!({ "messages": [{ "role": "user", "content": "x" }] });
    assert_eq!(prompt(Some(template), &body).unwrap(), "x:<think>(thinks)");
    body["response_format"] = json!({ "type": "json_object" });
    assert_eq!(prompt(Some(template), &body).unwrap(), "x:<think>\n</think>\n\n");
}

#[test]
fn a_file_without_a_template_is_spoken_to_in_the_usual_form() {
    let body = json!({ "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Hello" },
    ] });
    assert_eq!(
        prompt(None, &body).unwrap(),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn the_assistant_goes_on_with_what_it_has_begun() {
    let body = json!({ "messages": [
        { "role": "user", "content": "Write it." },
        { "role": "assistant", "content": "```python\n" },
    ] });
    assert_eq!(
        prompt(None, &body).unwrap(),
        "<|im_start|>user\nWrite it.<|im_end|>\n<|im_start|>assistant\n```python\n"
    );
}

#[test]
fn tools_and_past_calls_are_written_as_python_writes_json() {
    let template = "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}\
                    {% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
    let body = json!({
        "messages": [
            { "role": "user", "content": "x" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "1", "type": "function", "function": { "name": "f", "arguments": "{\"b\":[1,2],\"a\":\"<é>\"}" } },
            ] },
            { "role": "tool", "tool_call_id": "1", "content": "done" },
        ],
        "tools": [{ "type": "function", "function": { "name": "f" } }],
    });
    assert_eq!(
        prompt(Some(template), &body).unwrap(),
        "{\"type\": \"function\", \"function\": {\"name\": \"f\"}}\n{\"b\": [1, 2], \"a\": \"<é>\"}"
    );
}

#[test]
fn what_templates_use_of_python_works() {
    let template = "{{ bos_token }}{%- set ns = namespace(found=false) -%}\
                    {%- for m in messages if m['role'] == 'user' -%}{%- set ns.found = true -%}{%- if loop.first -%}\
                    {{ m['content'].strip().split('|')[-1] }}{%- endif -%}{%- endfor -%}\
                    {{ messages[1:] | length }}{{ ns.found }}{{ messages[0].get('name', '-') }}{{ eos_token }}";
    let body = json!({ "messages": [{ "role": "user", "content": " a|b " }] });
    assert_eq!(prompt(Some(template), &body).unwrap(), "<s>b0True-</s>");
}

#[test]
fn a_template_without_a_system_prompt_gets_it_with_the_first_message() {
    let template = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
                    {% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    let body = json!({ "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Hello" },
    ] });
    assert_eq!(prompt(Some(template), &body).unwrap(), "<user>Be brief.\n\nHello");
}

#[test]
fn what_a_template_refuses_is_said_in_its_words() {
    let template = "{{ raise_exception('roles must alternate') }}";
    let body = json!({ "messages": [{ "role": "user", "content": "Hello" }] });
    assert_eq!(
        prompt(Some(template), &body).unwrap_err(),
        "its chat template rejects the conversation: roles must alternate"
    );
    let broken = prompt(Some("{% if %}"), &body).unwrap_err();
    assert!(broken.starts_with("its chat template is invalid: "), "{broken}");
    let endless =
        "{% for a in range(9999) %}{% for b in range(9999) %}{% set c = a * b %}{% endfor %}{% endfor %}";
    assert!(prompt(Some(endless), &body).unwrap_err().contains("refuses"));
}
