//! Parsing of a request's body.

use super::*;
use crate::profile::Constraint;
use crate::{Conversation, Dialect, Message, ModelTraits, RequestOptions, ToolFormat};

#[test]
fn the_body_of_a_request_is_read_as_a_server_reads_it() {
    let traits = ModelTraits {
        tool_format: ToolFormat::Schema,
        constraint: Constraint::LlamaCpp,
        ..ModelTraits::default()
    };
    let dialect = Dialect { traits, ..Dialect::default() };
    let mut conversation = Conversation::new(dialect, "Be brief.".to_owned(), Vec::new());
    conversation.push(Message::user("Hello".to_owned()));
    let mut options = RequestOptions {
        temperature: Some(0.0),
        top_p: Some(0.5),
        max_output_tokens: Some(7),
        output_schema: Some(serde_json::json!({ "type": "boolean" })),
        ..RequestOptions::default()
    };
    options.extra.insert("seed".to_owned(), 3.into());
    let asked = LocalRequest::read(&conversation.body(&options).to_vec()).unwrap();
    assert_eq!((asked.temperature, asked.top_p, asked.seed, asked.max_tokens), (0.0, 0.5, 3, Some(7)));
    assert!(asked.tools.is_empty());
    let grammar = asked.grammar.as_deref().unwrap();
    assert!(grammar.contains("root ::=") && grammar.contains("\"true\""), "{grammar}");
    let (messages, begun) = asked.turns();
    assert_eq!(messages.len(), 2);
    assert_eq!(begun, None);
}

#[test]
fn without_a_word_about_it_a_request_has_the_knobs_of_the_server() {
    let asked = LocalRequest::read(br#"{"messages":[{"role":"user","content":"x"}]}"#).unwrap();
    assert_eq!((asked.temperature, asked.top_p, asked.seed, asked.max_tokens), (0.8, 0.95, 0, None));
    assert_eq!(asked.grammar, None);
}
