//! How a model's ranking answer is interpreted.

use super::*;

fn found(paths: &[&str]) -> MemoryAnswer {
    let found =
        |path: &&str| FileMatch { path: (*path).to_owned(), score: 0.5, reason: "path: a".to_owned() };
    MemoryAnswer { summary: String::new(), matches: paths.iter().map(found).collect() }
}

fn reply(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

fn order(text: &str) -> Result<Vec<String>, String> {
    chosen(&reply(text), &found(&["a.rs", "b.rs", "c.rs"]))
}

#[test]
fn known_paths_count_once_and_others_not_at_all() {
    assert_eq!(
        order("[\"c.rs\", \"x.rs\", \"a.rs\", \"c.rs\"]"),
        Ok(vec!["c.rs".to_owned(), "a.rs".to_owned()])
    );
    assert_eq!(order("```json\n[\"b.rs\"]\n```"), Ok(vec!["b.rs".to_owned()]));
}

#[test]
fn an_answer_that_is_none_leaves_the_order_by_words() {
    assert_eq!(order("b.rs, I think"), Err("the answer is not a list of paths".to_owned()));
    assert_eq!(order("[\"x.rs\", 3]"), Err("the answer names none of the files".to_owned()));
    assert_eq!(order("{\"files\": [\"a.rs\"]}"), Err("the answer is not a list of paths".to_owned()));
    let cut = Reply { stop: StopReason::Length, ..reply("[\"a.rs\"]") };
    assert_eq!(chosen(&cut, &found(&["a.rs"])), Err("the reply was cut off".to_owned()));
}

#[test]
fn what_is_named_comes_first_and_the_rest_keeps_its_order() {
    let mut matches = found(&["a.rs", "b.rs", "c.rs", "d.rs"]).matches;
    apply(&mut matches, &["d.rs".to_owned(), "b.rs".to_owned()]);
    let output: Vec<(&str, &str)> =
        matches.iter().map(|found| (found.path.as_str(), found.reason.as_str())).collect();
    let expected = [
        ("d.rs", "the model's choice 1; path: a"),
        ("b.rs", "the model's choice 2; path: a"),
        ("a.rs", "path: a"),
        ("c.rs", "path: a"),
    ];
    assert_eq!(output, expected);
}
