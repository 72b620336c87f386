//! Settings that may stay in a repository that a command created, and settings that may not.

use super::*;

#[test]
fn the_settings_of_a_new_repository_are_tame() {
    assert!(has_only_safe_settings(PLAIN_SETTINGS.as_bytes()));
    assert!(has_only_safe_settings(
        b"# new\n[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n\temail = a@b\n"
    ));
}

#[test]
fn settings_that_run_something_are_not() {
    for text in [
        "[core]\n\tfsmonitor = evil\n",
        "[core]\n\tfsmonitor\n",
        "[core] fsmonitor = evil\n",
        "[core]\n\thooksPath = evil\n",
        "[CORE]\n\tsshCommand = evil\n",
        "[remote \"x\"]\n\tuploadpack = evil\n",
        "[alias]\n\tst = !evil\n",
        "[filter \"x\"]\n\tclean = evil\n",
        "[include]\n\tpath = evil\n",
        "[includeIf \"gitdir:.\"]\n\tpath = evil\n",
        "[extensions]\n\tworktreeConfig = true\n",
        "[user]\n\tname = x \\\n[core]\n\tfsmonitor = evil\n",
        "fsmonitor = evil\n",
        "[core]]\n\tbare = false\n",
        "[user]\r[core]\rfsmonitor = evil\n",
    ] {
        assert!(!has_only_safe_settings(text.as_bytes()), "{text}");
    }
}
