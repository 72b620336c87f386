//! Files named in requests, and tests recognised by their paths.

use super::*;

fn workspace(files: &[&str]) -> (tempfile::TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if file.ends_with(".png") { "\0\0" } else { "text\n" }).unwrap();
    }
    let workspace = Workspace::open(folder.path()).unwrap();
    (folder, workspace)
}

#[test]
fn files_a_request_names_and_the_tests_beside_them_are_required() {
    let files = [
        "src/leap.py",
        "src/test_leap.py",
        "tests/test_leap.py",
        "logo.png",
        "other.py",
        "two-bucket.js",
        "two-bucket.spec.js",
    ];
    let (_folder, workspace) = workspace(&files);
    let find = |request: &str| RequestFiles::find(request, &workspace);
    let request_files = find("Fix `src/leap.py` (not logo.png), please; see https://example.com/a.py.");
    assert_eq!(request_files.named, ["src/leap.py"]);
    assert_eq!(request_files.tests, ["src/test_leap.py", "tests/test_leap.py"]);
    assert_eq!(request_files.required(1).files, ["src/leap.py", "src/test_leap.py", "tests/test_leap.py"]);
    assert_eq!(find("implement two-bucket.js").tests, ["two-bucket.spec.js"]);
    assert_eq!(find("make it better"), RequestFiles { anything: true, ..RequestFiles::default() });
    assert_eq!(find("make it better").required(2), RequiredReads { files: Vec::new(), min_files: 2 });
}

#[test]
fn documents_that_say_what_to_do_are_not_files_to_change() {
    let files = ["two_fer.py", "README.md", "docs/spec.md", "TASK.md", "tests/two_fer_test.py"];
    let (folder, workspace) = workspace(&files);
    let find = |request: &str| {
        let found = RequestFiles::find(request, &workspace);
        (found.named, found.references)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(find("Do what TASK.md says"), (names(&[]), names(&["TASK.md"])));
    assert_eq!(find("Implement it as described in the file README.md."), (names(&[]), names(&["README.md"])));
    assert_eq!(
        find("read docs/spec.md and fix two_fer.py"),
        (names(&["two_fer.py"]), names(&["docs/spec.md"]))
    );
    for request in ["fix the typos in README.md", "Update docs/spec.md", "Rewrite TASK.md"] {
        assert!(find(request).1.is_empty() && find(request).0.len() == 1, "{request}");
    }
    std::fs::create_dir(folder.path().join(".docs")).unwrap();
    std::fs::write(folder.path().join(".docs/instructions.md"), "# Two fer\n\nOne for you.\n").unwrap();
    assert_eq!(find("Make the tests pass"), (names(&[]), names(&[".docs/instructions.md"])));
    assert_eq!(find("One for you. Make the tests pass"), (names(&[]), names(&[])));
}

#[test]
fn nothing_is_required_where_there_is_nothing() {
    let (_folder, workspace) = workspace(&[]);
    assert_eq!(RequestFiles::find("write a.py", &workspace).required(1), RequiredReads::default());
}

#[test]
fn tests_are_known_by_their_paths() {
    let tests = [
        "tests/a.py",
        "a/test/b.c",
        "test_a.py",
        "a_test.go",
        "a.test.js",
        "a.spec.ts",
        "ATest.java",
        "LeapTests.cs",
        "leap_spec.rb",
        "a/__tests__/x.js",
        "src/tests.rs",
        "a_tests.erl",
    ];
    for path in tests {
        assert!(is_test(path), "{path}");
    }
    for path in [
        "a.py",
        "testing.py",
        "contest.py",
        "latest.js",
        "src/attest.rs",
        "Test.txt",
        "protest_a.py",
        "greatest.java",
    ] {
        assert!(!is_test(path), "{path}");
    }
}
