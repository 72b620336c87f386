//! Forms with every type of field, and answers that do not fit.

use serde_json::json;

use super::*;

fn form(schema: &Value) -> Form {
    let request = json!({"mode": "form", "message": "Where\u{1b}?", "requestedSchema": schema});
    Form::read(&serde_json::from_value(request).unwrap()).unwrap()
}

fn reply(form: &mut Form, answers: &[Option<&str>]) -> Value {
    let mut replies = answers.iter().filter_map(|answer| form.fill(*answer));
    serde_json::to_value(replies.next().unwrap()).unwrap()
}

#[test]
fn every_field_is_asked_for_and_converted() {
    let schema = json!({"type": "object", "required": ["city", "days", "sure"], "properties": {
        "city": {"type": "string", "description": "the city"},
        "days": {"type": "integer"},
        "mood": {"type": "string", "enum": ["good", "bad"]},
        "sure": {"type": "boolean"},
    }});
    let mut filled = form(&schema);
    assert_eq!(filled.question("s"), "The MCP server `s` asks: Where ?\ncity: the city");
    assert_eq!(filled.fill(Some("Bern")), None);
    assert_eq!(filled.question("s"), "The MCP server `s` asks: Where ?\ndays (integer)");
    assert_eq!(filled.fill(Some(" 3 ")), None);
    assert_eq!(
        filled.question("s"),
        "The MCP server `s` asks: Where ?\nmood (one of: good, bad) (may be left empty)"
    );
    assert_eq!(
        reply(&mut filled, &[Some(""), Some("yes")]),
        json!({"action": "accept", "content": {"city": "Bern", "days": 3, "sure": true}})
    );
}

#[test]
fn an_answer_that_does_not_fit_or_is_missing_declines() {
    let schema = json!({"type": "object", "required": ["days"], "properties": {"days": {"type": "integer"}}});
    let declined = json!({"action": "decline"});
    assert_eq!(reply(&mut form(&schema), &[Some("many")]), declined);
    assert_eq!(reply(&mut form(&schema), &[None]), declined);
    let empty = json!({"type": "object", "properties": {}});
    assert_eq!(form(&empty).question("s"), "The MCP server `s` asks: Where ? (yes or no)");
    assert_eq!(reply(&mut form(&empty), &[Some("no")]), declined);
    assert_eq!(reply(&mut form(&empty), &[Some("yes")]), json!({"action": "accept", "content": {}}));
}
