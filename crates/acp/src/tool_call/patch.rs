//! The diffs that a patch announces: one for each of its hunks, with the lines that it names.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::Diff;

/// Diffs of one patch that are shown.
const MAX_DIFFS: usize = 100;

/// The file that a hunk belongs to, and whether the patch creates it.
struct PatchedFile {
    path: PathBuf,
    is_new: bool,
}

/// Diffs of a patch in either format of `apply_patch`. What cannot be read is left out.
pub(super) fn diffs(patch: &str, workspace: &Path) -> Vec<Diff> {
    let (mut diffs, mut file): (Vec<Diff>, Option<PatchedFile>) = (Vec::new(), None);
    let (mut old, mut new) = (String::new(), String::new());
    let mut finish = |file: &Option<PatchedFile>, old: &mut String, new: &mut String| {
        let (old, new) = (std::mem::take(old), std::mem::take(new));
        if let Some(file) = file.as_ref().filter(|_| old != new && diffs.len() < MAX_DIFFS) {
            let diff = Diff::new(file.path.clone(), new);
            diffs.push(if file.is_new { diff } else { diff.old_text(old) });
        }
    };
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let is_unified =
            line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
        if is_unified {
            finish(&file, &mut old, &mut new);
            let (before, after) = (name(&line[4..]), name(&lines.next().unwrap_or_default()[4..]));
            let path = after.or(before).map(|name| workspace.join(name));
            file = path.map(|path| PatchedFile { path, is_new: before.is_none() });
        } else if let Some(header) = line.strip_prefix("*** ") {
            let named = header.strip_prefix("Move to: ").map(|path| (path, false));
            let named = named.or_else(|| header.strip_prefix("Update File: ").map(|path| (path, false)));
            let named = named.or_else(|| header.strip_prefix("Add File: ").map(|path| (path, true)));
            let named = named.or_else(|| header.strip_prefix("Delete File: ").map(|path| (path, false)));
            finish(&file, &mut old, &mut new);
            file = named.map(|(path, is_new)| PatchedFile { path: workspace.join(path.trim()), is_new });
        } else if line.starts_with("@@") || line.starts_with("diff --git ") {
            finish(&file, &mut old, &mut new);
        } else {
            let (mark, text) = line.split_at_checked(1).unwrap_or((" ", line));
            let add = |side: &mut String| side.extend([text, "\n"]);
            match mark {
                "-" => add(&mut old),
                "+" => add(&mut new),
                " " => {
                    add(&mut old);
                    add(&mut new);
                }
                _ => {}
            }
        }
    }
    finish(&file, &mut old, &mut new);
    diffs
}

/// The file of a line `--- a/NAME` or `+++ b/NAME`; `None` for `/dev/null`.
fn name(header: &str) -> Option<&str> {
    let name = header.split('\t').next().unwrap_or_default().trim();
    let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
    (name != "/dev/null").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(patch: &str) -> Vec<(String, Option<String>, String)> {
        let diffs = diffs(patch, Path::new("/w"));
        diffs
            .into_iter()
            .map(|diff| (diff.path.display().to_string(), diff.old_text, diff.new_text))
            .collect()
    }

    #[test]
    fn each_hunk_of_an_envelope_is_a_diff() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n same\n-old\n+new\n@@\n-x\n*** Add File: b.py\n+line\n*** End Patch\n";
        assert_eq!(
            shown(patch),
            [
                ("/w/a.py".to_owned(), Some("same\nold\n".to_owned()), "same\nnew\n".to_owned()),
                ("/w/a.py".to_owned(), Some("x\n".to_owned()), String::new()),
                ("/w/b.py".to_owned(), None, "line\n".to_owned()),
            ]
        );
    }

    #[test]
    fn each_hunk_of_a_unified_diff_is_a_diff() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+fresh\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-was\n";
        assert_eq!(
            shown(patch),
            [
                ("/w/x".to_owned(), Some("one\ntwo\n".to_owned()), "one\nthree\n".to_owned()),
                ("/w/new".to_owned(), None, "fresh\n".to_owned()),
                ("/w/gone".to_owned(), Some("was\n".to_owned()), String::new()),
            ]
        );
    }

    #[test]
    fn what_is_no_patch_has_no_diffs() {
        assert_eq!(shown("nonsense\n+x\n"), []);
        assert_eq!(shown("*** Begin Patch\n*** Delete File: a\n*** End Patch"), []);
    }
}
