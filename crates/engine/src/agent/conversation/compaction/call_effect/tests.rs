//! Names and arguments in the forms that models write.

use serde_json::json;

use super::{CallArguments, CallKind};

#[test]
fn a_tool_is_known_by_all_its_names() {
    let kinds = ["read_file", "view_file", "batch_read", "bash", "grep", "plan_tasks", "mcp_x"]
        .map(CallKind::from_tool);
    let expected = [
        CallKind::ReadFile,
        CallKind::ReadFile,
        CallKind::ReadFiles,
        CallKind::Command,
        CallKind::Look,
        CallKind::Plan,
        CallKind::Other,
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn an_alias_means_what_it_means_to_its_tool() {
    assert_eq!(CallArguments::parse("read", r#"{"file_path":"./a.rs"}"#).files(), ["a.rs"]);
    assert_eq!(CallArguments::parse("read_files", r#"{"files":["a.rs","b.rs"]}"#).files(), ["a.rs", "b.rs"]);
    assert_eq!(CallArguments::parse("bash", r#"{"cmd":"ls","input":"x"}"#).command(), Some("ls"));
    assert_eq!(CallArguments::parse("find_files", r#"{"glob":"*.rs"}"#).pattern(), Some("*.rs"));
    assert_eq!(
        CallArguments::parse("search_text", r#"{"glob":"*.rs","pattern":"fn"}"#).pattern(),
        Some("fn")
    );
}

#[test]
fn files_of_a_patch_in_both_formats() {
    let files = |patch: &str| {
        CallArguments::parse("apply_patch", &json!({ "patch": patch }).to_string()).patched_files()
    };
    let enveloped = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n--- not a header\n\
                     *** Add File: c.rs\n*** Delete File: a.rs\n*** End Patch\n";
    assert_eq!(files(enveloped), ["a.rs", "b.rs", "c.rs"]);
    let unified = "--- a/old.rs\n+++ b/new.rs\t2024-01-01\n@@ -1 +1 @@\n-x\n+y\n\
                   --- a/gone.rs\n+++ /dev/null\n--- /dev/null\n+++ b/made.rs\n";
    assert_eq!(files(unified), ["new.rs", "gone.rs", "made.rs"]);
}

#[test]
fn what_is_no_object_has_no_arguments() {
    for json in ["", "null", "[1]", "\"path\"", "{\"path\": oops"] {
        assert_eq!(CallArguments::parse("read_file", json), CallArguments::default(), "{json}");
    }
}
