//! Repeated reads and listed files.

use fusee_model::{Message, ToolCall};
use fusee_tools::{ContentHash, SeenVersion, ToolOutput};

use super::{KnownFiles, WorkspaceFile};
use crate::agent::tool_calls::read_cache::UNCHANGED;

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "read_file".to_owned(), arguments: arguments.to_owned() }
}

fn text(content: &str) -> ToolOutput {
    let seen = SeenVersion { path: "a.txt".to_owned(), hash: ContentHash::of(content.as_bytes()) };
    ToolOutput { seen: vec![seen], ..ToolOutput::done(content) }
}

fn result(id: &str, content: &str) -> Message {
    let (call_id, name, content) = (id.to_owned(), "read_file".to_owned(), content.to_owned());
    Message::Tool { call_id, name, content, ok: true, images: Vec::new() }
}

#[test]
fn a_repeated_read_refers_to_the_text_only_while_the_request_contains_it() {
    let mut files = KnownFiles::default();
    let (first, mut output) = (call("c1", r#"{"path":"a.txt"}"#), text("one"));
    assert!(!files.dedup_read(&first, &mut output, &[]) && output.content == "one");
    let sent = [result("c1", "one")];
    let mut again = text("one");
    assert!(files.dedup_read(&call("c2", r#"{"path":"a.txt"}"#), &mut again, &sent));
    assert_eq!(again.content, UNCHANGED);
    let mut changed = text("two");
    assert!(!files.dedup_read(&call("c3", r#"{"path":"a.txt"}"#), &mut changed, &sent));
    let mut compacted = text("one");
    assert!(!files.dedup_read(&call("c4", r#"{"path":"a.txt"}"#), &mut compacted, &[]));
}

#[test]
fn a_file_is_whole_after_a_read_without_a_range() {
    let mut files = KnownFiles::default();
    files.dedup_read(&call("c1", r#"{"path":"a.txt","limit":1}"#), &mut text("one"), &[]);
    assert!(!files.is_full_text_in("a.txt", &[result("c1", "one")]));
    files.dedup_read(&call("c2", r#"{"path":"a.txt"}"#), &mut text("all"), &[]);
    assert!(files.is_full_text_in("a.txt", &[result("c2", "all")]));
    assert!(!files.is_full_text_in("a.txt", &[]));
}

#[test]
fn sizes_count_only_for_listed_files() {
    let mut files = KnownFiles::default();
    assert!(!files.all_smaller_than(u64::MAX));
    files.listed = Some(vec![WorkspaceFile { path: "a".to_owned(), bytes: 10 }]);
    assert!(files.all_smaller_than(10) && !files.all_smaller_than(9));
}
