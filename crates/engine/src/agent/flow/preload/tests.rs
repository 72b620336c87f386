//! Files read on behalf of a model.

use super::*;

fn project() -> (tempfile::TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("leap.py", "x = 1\n"),
        ("leap_test.py", "import leap\n"),
        ("docs/README.md", "# Leap\n```\ncode\n```\n"),
        ("data.bin", "\0\0"),
    ];
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let workspace = Workspace::open(folder.path()).unwrap();
    (folder, workspace)
}

fn names(named: &[&str], request: &str, workspace: &Workspace) -> Vec<(String, bool)> {
    let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
    read(&named, request, None, workspace)
        .into_iter()
        .map(|material| (material.path, material.target))
        .collect()
}

#[test]
fn targets_and_tests_are_found_by_the_request_or_by_what_little_there_is() {
    let (_folder, workspace) = project();
    let both = [("leap.py".to_owned(), true), ("leap_test.py".to_owned(), false)];
    assert_eq!(names(&["@target", "@tests"], "Fix leap.py", &workspace), both);
    assert_eq!(names(&["@target", "@tests"], "Make it work", &workspace), both);
    assert_eq!(names(&["**/*.md", "*.bin"], "x", &workspace), [("docs/README.md".to_owned(), false)]);
}

#[test]
fn files_are_shown_in_fences_that_hold_them() {
    let (_folder, workspace) = project();
    let materials = read(&["docs/*".to_owned(), "leap.py".to_owned()], "x", None, &workspace);
    insta::assert_snapshot!(render(&materials), @r"
    docs/README.md
    ````
    # Leap
    ```
    code
    ```
    ````

    leap.py
    ```
    x = 1
    ```
    ");
}

#[test]
fn files_that_only_mark_a_package_are_not_guessed() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let all =
        names(&["setup.py", "shop/__init__.py", "shop/price.py", "tests/conftest.py", "tests/test_price.py"]);
    assert_eq!(likely_sources(&all), ["shop/price.py"]);
    let all = names(&["shop/__init__.py", "tests/test_shop.py"]);
    assert_eq!(likely_sources(&all), ["shop/__init__.py"]);
}
