//! Arguments, summaries and names of Markdown commands.

use super::{expand, filled, list};

#[test]
fn arguments_take_their_places() {
    assert_eq!(filled("Fix issue $ARGUMENTS now.", "12 high"), "Fix issue 12 high now.");
    assert_eq!(filled("$2 before $1, $3.", "a 'b c'"), "b c before a, .");
    assert_eq!(filled("costs $10 and $x, $", "a"), "costs $10 and $x, $\n\nArguments: a");
    assert_eq!(filled("Review.", ""), "Review.");
    // Arguments are not looked at again.
    assert_eq!(filled("$1", "$ARGUMENTS"), "$ARGUMENTS");
}

#[test]
fn the_projects_own_folder_has_precedence_and_names_are_plain() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    for (file, text) in [
        (".fusee/commands/fix.md", "---\ndescription: Fix an issue\n---\nFix $1.\n"),
        (".claude/commands/fix.md", "Other."),
        (".claude/commands/tidy.md", "# Tidy up\n\n!`rm -rf x` stays text."),
        (".claude/commands/bad name.md", "x"),
        (".claude/commands/empty.md", "---\ndescription: x\n---\n"),
        ("secret.md", "secret"),
    ] {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let shown: Vec<_> = list(home).into_iter().map(|it| (it.name, it.summary)).collect();
    let expected = [("fix", "Fix an issue"), ("tidy", "Tidy up")];
    assert_eq!(shown, expected.map(|(name, summary)| (name.to_owned(), summary.to_owned())));
    assert_eq!(expand("/fix 7", home).as_deref(), Some("Fix 7."));
    assert_eq!(expand("/tidy", home).as_deref(), Some("# Tidy up\n\n!`rm -rf x` stays text."));
    for line in ["fix 7", "/nothing", "/../secret", "/.fusee/commands/fix", "/", "/empty"] {
        assert_eq!(expand(line, home), None, "{line}");
    }
}
