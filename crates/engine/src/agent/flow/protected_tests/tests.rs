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
    let protected = ProtectedTests::take(&workspace);
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
    assert!(protected.covers("new_test.go") && !protected.covers("c.py"));
}
