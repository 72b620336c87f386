//! Protected files are restored after anything a command can do to them.

use super::*;

#[test]
fn tests_are_put_back_whatever_happened_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("tests/deep")).unwrap();
    std::fs::write(path("tests/deep/a.py"), "a\n").unwrap();
    std::fs::write(path("b_test.py"), [0xff, 0xfe]).unwrap();
    std::fs::write(path("c.py"), "c\n").unwrap();
    let workspace = Workspace::open(folder.path()).unwrap();
    let protected = ProtectedTests::take(&workspace, &[]);
    let again: ProtectedTests = serde_json::from_value(serde_json::to_value(&protected).unwrap()).unwrap();
    assert_eq!(again, protected);
    assert_eq!(protected.restore(&workspace), [""; 0]);
    std::fs::remove_dir_all(path("tests")).unwrap();
    std::fs::write(path("b_test.py"), "pass\n").unwrap();
    std::fs::write(path("c.py"), "changed\n").unwrap();
    assert_eq!(protected.restore(&workspace), ["b_test.py", "tests/deep/a.py"]);
    assert_eq!(std::fs::read(path("b_test.py")).unwrap(), [0xff, 0xfe]);
    assert_eq!(std::fs::read_to_string(path("tests/deep/a.py")).unwrap(), "a\n");
    assert_eq!(std::fs::read_to_string(path("c.py")).unwrap(), "changed\n");
    assert!(
        protected.covers("new_test.go") && protected.covers("src/conftest.py") && !protected.covers("c.py")
    );
}

#[test]
fn added_tests_are_removed_even_if_they_are_ignored_and_what_tests_leave_behind_stays() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x\n").unwrap();
    };
    write("tests/test_a.py");
    let workspace = Workspace::open(folder.path()).unwrap();
    let protected = ProtectedTests::take(&workspace, &[]);
    let added = ["conftest.py", "src/lib_test.go", "tests/test_b.py"];
    let left = [
        "src/lib.go",
        "tests/__pycache__/test_a.cpython-312.pyc",
        "tests/output.txt",
        "node_modules/x/test/index.js",
    ];
    added.iter().chain(&left).for_each(|name| write(name));
    std::fs::write(folder.path().join(".gitignore"), "conftest.py\n*_test.go\n").unwrap();
    assert_eq!(protected.restore(&workspace), added);
    assert_eq!(protected.restore(&workspace), [""; 0]);
    assert!(left.iter().all(|name| folder.path().join(name).exists()));
}

#[test]
fn named_files_are_protected_whatever_they_are_called() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("check.sh"), "exit 1\n").unwrap();
    std::fs::write(folder.path().join("a_test.py"), "a\n").unwrap();
    let workspace = Workspace::open(folder.path()).unwrap();
    let named = ["check.sh", "a_test.py", "absent.sh"].map(str::to_owned);
    let protected = ProtectedTests::take(&workspace, &named);
    assert!(protected.covers("check.sh") && !protected.covers("other.sh"));
    std::fs::write(folder.path().join("check.sh"), "exit 0\n").unwrap();
    assert_eq!(protected.restore(&workspace), ["check.sh"]);
    let paths: Vec<String> = protected.contents().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["a_test.py", "check.sh"]);
}
