//! Answers as they are streamed.

use super::*;

const OLD: &str = "def encode(text):\n    pass\n\n\ndef decode(code):\n    pass\n";
const NEW: &str = "def encode(text):\n    return text\n\n\ndef decode(code):\n    return code\n";

fn wanted(request: &str, files: &[(&str, &str)]) -> Option<CompleteAnswer> {
    let (paths, texts): (Vec<String>, Vec<String>) =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).unzip();
    CompleteAnswer::new(request, FlowEditFormat::Whole, &paths, &texts)
}

/// How much of an answer is read until it is complete.
fn read<'a>(wanted: &CompleteAnswer, answer: &'a str) -> Option<&'a str> {
    let ends = answer.match_indices('\n').map(|(at, _)| at + 1);
    ends.map(|end| &answer[..end]).find(|text| wanted.is_in(text))
}

#[test]
fn an_answer_is_complete_when_the_block_of_its_only_file_is_closed() {
    let wanted = wanted("make code.py pass code_test.py", &[("code.py", OLD)]).unwrap();
    for before in ["code.py\n```python\n", "Here it is:\n\n```\n", "```\ncode.py\n```\n```python\n"] {
        let answer = format!("{before}{NEW}```\n\nThe function now …\n\n```python\nimport unittest\n```\n");
        assert_eq!(read(&wanted, &answer), Some(&*format!("{before}{NEW}```\n")), "{before}");
    }
}

#[test]
fn excerpts_the_old_file_and_open_blocks_do_not_complete_it() {
    let wanted = wanted("fix code.py", &[("code.py", OLD)]).unwrap();
    let excerpt = "The fault is here:\n```python\ndef decode(code):\n    return code\n```\n";
    assert_eq!(read(&wanted, excerpt), None);
    let unchanged = format!("code.py\n```python\n{OLD}```\n");
    assert_eq!(read(&wanted, &unchanged), None);
    assert_eq!(read(&wanted, &format!("code.py\n```python\n{NEW}")), None);
    let answer = format!("{excerpt}\nSo the file is:\n```python\n{NEW}```\n");
    assert_eq!(read(&wanted, &format!("{answer}More.\n")), Some(&*answer));
}

#[test]
fn every_file_has_to_be_there() {
    let wanted = wanted("fix a.py and b.py", &[("a.py", "a = 1\n"), ("b.py", "b = 1\n")]).unwrap();
    let first = "a.py\n```\na = 2\n```\n";
    assert_eq!(read(&wanted, first), None);
    let both = format!("{first}b.py\n```\nb = 2\n```\n");
    assert_eq!(read(&wanted, &format!("{both}Done.\n")), Some(&*both));
}

#[test]
fn requests_that_may_need_more_files_are_not_cut() {
    let files = [("a.py", "a = 1\n")];
    for request in [
        "move the constant out of a.py",
        "use b.py in a.py",
        "add a test for a.py",
        "Split a.py into two files",
    ] {
        assert!(wanted(request, &files).is_none(), "{request}");
    }
    assert!(wanted("make a.py pass a_test.py", &files).is_some());
}

#[test]
fn a_model_that_repeats_the_file_and_goes_on_with_the_tests_is_told_apart() {
    let wanted = wanted("make code.py pass code_test.py", &[("code.py", OLD)]).unwrap();
    let repeated = format!("code.py\n```python\n{OLD}```\n");
    assert!(wanted.is_repeated_in(&repeated) && !wanted.is_in(&repeated));
    assert!(wanted.goes_on_with_tests("\nAnd here is `code_test.py`:\n\n```python\n"));
    assert!(!wanted.goes_on_with_tests("\nAnd here is `code_test.py`:\n"));
    assert!(!wanted.goes_on_with_tests("\nSo that code_test.py passes, code.py has to be:\n```python\n"));
    assert!(!wanted.goes_on_with_tests("\nThe new file:\n```python\n"));
}
