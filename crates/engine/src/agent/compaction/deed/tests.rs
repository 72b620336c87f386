//! Names and arguments against the tools that answer to them.

use fusee_tools::Toolbox;
use serde_json::json;

use super::{Arguments, Kind};

/// The parameters that a compaction looks at.
const LOOKED_AT: [&str; 9] =
    ["path", "paths", "offset", "limit", "section_key", "command", "pattern", "question", "patch"];

#[test]
fn a_tool_is_the_same_under_all_its_names() {
    for definition in Toolbox::standard(Default::default()).definitions() {
        for alias in definition.aliases {
            assert_eq!(
                Kind::of(alias),
                Kind::of(&definition.name),
                "{alias}, an alias of {}",
                definition.name
            );
        }
    }
}

#[test]
fn an_argument_is_the_same_under_all_its_names() {
    for definition in Toolbox::standard(Default::default()).definitions() {
        let aliases = definition.parameter_aliases.iter().filter(|(_, name)| LOOKED_AT.contains(name));
        // `path` and `paths` may stand for each other, so files are compared, not where they were named.
        let named = |name: &str| {
            let arguments = Arguments::of(&json!({ name: "x" }).to_string());
            (arguments.files(), Arguments { path: None, paths: None, ..arguments })
        };
        for (alias, name) in aliases {
            assert_eq!(named(alias), named(name), "{alias}, an alias of {name} of {}", definition.name);
        }
    }
}

#[test]
fn files_of_a_patch_in_both_formats() {
    let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n--- not a header\n\
                 *** Add File: c.rs\n*** Delete File: a.rs\n*** End Patch\n";
    let arguments = Arguments::of(&json!({ "patch": patch }).to_string());
    assert_eq!(arguments.patched_files(), ["a.rs", "b.rs", "c.rs"]);

    let patch = "--- a/old.rs\n+++ b/new.rs\t2024-01-01\n@@ -1 +1 @@\n-x\n+y\n\
                 --- a/gone.rs\n+++ /dev/null\n--- /dev/null\n+++ b/made.rs\n";
    let arguments = Arguments::of(&json!({ "input": patch }).to_string());
    assert_eq!(arguments.patched_files(), ["new.rs", "gone.rs", "made.rs"]);
}

#[test]
fn a_parameter_of_its_own_name_wins_over_an_alias() {
    for json in [r#"{"pattern":"fn","glob":"*.rs"}"#, r#"{"glob":"*.rs","pattern":"fn"}"#] {
        assert_eq!(Arguments::of(json).pattern(), Some("fn"));
    }
}

#[test]
fn what_is_no_object_has_no_arguments() {
    for json in ["", "null", "[1]", "\"path\"", "{\"path\": oops"] {
        assert_eq!(Arguments::of(json), Arguments::default(), "{json}");
    }
}
