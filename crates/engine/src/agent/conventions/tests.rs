//! Files that tools run.

use super::*;

#[test]
fn files_are_recognised_by_name_directory_and_end_of_path() {
    let run = [
        "Makefile",
        "sub/Makefile",
        "rules.mk",
        "Dockerfile.dev",
        "web/package.json",
        ".envrc",
        ".vscode/tasks.json",
        "a/.vscode/settings.json",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "Taskfile.yaml",
        ".cargo/config.toml",
        "a/.cargo/config.toml",
        "vite.config.ts",
        "a.pth",
        "AGENTS.md",
    ];
    let plain = [
        "src/main.rs",
        "Makefile.am.txt",
        "my.vscode/x",
        "github/workflows/ci.yml",
        "config.toml",
        "x.cargo/config.toml",
        "README.md",
        "envrc",
        "package.json/x",
        "Taskfile.yl",
    ];
    let wrong: Vec<&str> = run
        .into_iter()
        .filter(|path| !is_run_by_convention(path))
        .chain(plain.into_iter().filter(|path| is_run_by_convention(path)))
        .collect();
    assert_eq!(wrong, Vec::<&str>::new());
}

#[test]
fn every_pattern_matches_something_and_is_listed_once() {
    for pattern in RUN_BY_CONVENTION {
        let path = if pattern.ends_with('/') { format!("{pattern}x") } else { pattern.replace('*', "") };
        assert!(is_match(pattern, &path), "{pattern}");
        assert!(pattern.matches('*').count() <= 1, "{pattern}");
        assert_eq!(RUN_BY_CONVENTION.iter().filter(|other| *other == pattern).count(), 1, "{pattern}");
    }
}
