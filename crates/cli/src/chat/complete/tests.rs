//! Tests of completing commands, paths and task inputs.

use super::*;

#[test]
fn commands_at_the_beginning_and_paths_after_an_at() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    for name in ["src/main.rs", "src/map.rs", ".hidden", "a b"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let offers = [TaskCandidate { name: "fix-tests".into(), inputs: vec!["command".into(), "tries".into()] }];
    let found = |before: &str| candidates(before, folder.path(), &offers);
    assert_eq!(found("/res"), Completion::new(4, vec!["/resume ".into()]));
    assert_eq!(found("/resume"), Completion::new(7, Vec::new()));
    assert_eq!(found("see @s"), Completion::new(1, vec!["src/".into()]));
    let files = vec!["src/main.rs ".to_owned(), "src/map.rs ".to_owned()];
    assert_eq!(found("see @src/ma"), Completion::new(6, files));
    assert_eq!(found("@"), Completion::new(0, vec!["src/".into()]));
    assert_eq!(found("@../"), Completion::new(3, Vec::new()));
    assert_eq!(found("no /re"), Completion::default());
    let candidates = vec!["fix-tests ".to_owned()];
    assert_eq!(found("/task f"), Completion::new(1, candidates));
    let candidates = vec!["tries=".to_owned()];
    assert_eq!(found("/task fix-tests command=make t"), Completion::new(1, candidates));
    assert_eq!(found("/task other t").candidates, Vec::<String>::new());
}
