//! Answers in the forms that models write.

use super::*;

fn files(answer: &str, targets: &[&str]) -> Result<Vec<(String, String)>, String> {
    let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    edits(answer, FlowEditFormat::Whole, &targets).map(|edits| {
        edits.iter().map(|edit| (text(&edit.arguments["path"]), text(&edit.arguments["content"]))).collect()
    })
}

fn one(path: &str, content: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), content.to_owned())]
}

#[test]
fn a_block_is_for_the_file_that_is_named_before_it_or_after_its_fence() {
    let forms = [
        "leap.py\n```python\nx = 1\n```\n",
        "**`leap.py`**\n\n```\nx = 1\n```",
        "### leap.py\n```py\nx = 1\n```",
        "Here is the new `leap.py`:\n```python\nx = 1\n```\nDone.",
        "```leap.py\nx = 1\n```",
        "```python leap.py\nx = 1\n```",
        "```python title=\"leap.py\"\nx = 1\n```",
        "~~~~ ./leap.py\nx = 1\n~~~~",
        "leap.py\n```python\nx = 1\n",
    ];
    for form in forms {
        assert_eq!(files(form, &["leap.py", "other.py"]), Ok(one("leap.py", "x = 1\n")), "{form}");
    }
}

#[test]
fn a_comment_on_the_first_line_of_a_block_names_its_file() {
    let targets = ["store.py", "src/view.py"];
    let answer = "Here are both files:\n```python\n# store.py\na = 1\n```\n\n```python\n# File: src/view.py\nb = 2\n```\n";
    let expected = vec![
        ("store.py".to_owned(), "# store.py\na = 1\n".to_owned()),
        ("src/view.py".to_owned(), "# File: src/view.py\nb = 2\n".to_owned()),
    ];
    assert_eq!(files(answer, &targets), Ok(expected));
    let other = "```js\n// see store.py for the other half\nb = 2\n```\n";
    assert!(files(other, &targets).unwrap_err().contains("not clear which file"));
}

#[test]
fn a_line_names_only_the_block_after_it() {
    let targets = ["store.py", "view.py"];
    let answer = "store.py\n```python\na = 1\n```\n```python\nb = 2\n```\n";
    assert_eq!(files(answer, &targets), Ok(one("store.py", "a = 1\n")));
}

#[test]
fn a_lone_target_needs_no_name_and_the_largest_block_is_it() {
    let answer = "I change this:\n```\nx\n```\nThe file:\n```python\nx = 1\ny = 2\n```\n";
    assert_eq!(files(answer, &["leap.py"]), Ok(one("leap.py", "x = 1\ny = 2\n")));
    assert!(files(answer, &["a.py", "b.py"]).unwrap_err().contains("not clear which file"));
    assert!(files("Just words.", &["a.py"]).unwrap_err().contains("no fenced block"));
}

#[test]
fn examples_and_commands_that_mention_a_file_do_not_replace_it() {
    let file = "def leap(year):\n    return year % 4 == 0 and year % 100 != 0 or year % 400 == 0\n";
    let after = [
        "You can use leap.py like this:\n```python\nfrom leap import leap\nprint(leap(2000))\n```\n",
        "Run the tests of leap.py:\n```bash\npython3 -m unittest leap_test.py && echo all of the tests in it pass now\n```\n",
        "This uses `math.floor`:\n```python\nmath.floor(3.14)\n```\n",
        "The result is 2.5 here:\n```\n2.5\n```\n",
    ];
    for after in after {
        let answer = format!("leap.py\n```python\n{file}```\n\n{after}");
        assert_eq!(files(&answer, &["leap.py"]), Ok(one("leap.py", file)), "{after}");
        let unnamed = format!("The solution:\n```python\n{file}```\n\n{}", after.replace("leap.py", "it"));
        assert_eq!(files(&unnamed, &["leap.py"]), Ok(one("leap.py", file)), "{after}");
    }
}

#[test]
fn a_longer_fence_holds_shorter_ones() {
    let answer = "README.md\n````markdown\n# Title\n```sh\nls\n```\n````\n";
    assert_eq!(files(answer, &["README.md"]), Ok(one("README.md", "# Title\n```sh\nls\n```\n")));
}

#[test]
fn several_files_are_taken_and_the_last_word_on_a_file_counts() {
    let answer = "a.py\n```\n1\n```\nsrc/b.py\n```\n2\n```\na.py\n```\n3\n```\n";
    let all = files(answer, &["a.py"]).unwrap();
    assert_eq!(all, [one("a.py", "3\n"), one("src/b.py", "2\n")].concat());
}

#[test]
fn search_and_replace_blocks_become_edits() {
    let answer = "leap.py\n```python\n<<<<<<< SEARCH\nold\nlines\n=======\nnew\n>>>>>>> REPLACE\n```\n\
                  <<<<<<< SEARCH\n=======\nall\n>>>>>>> REPLACE\n";
    let found = edits(answer, FlowEditFormat::Blocks, &["leap.py".to_owned()]).unwrap();
    assert_eq!(
        found,
        [
            AnswerEdit {
                tool: "edit_file",
                arguments: json!({"path": "leap.py", "old": "old\nlines\n", "new": "new\n"})
            },
            write("leap.py", "all\n"),
        ]
    );
    assert!(
        edits("<<<<<<< SEARCH\nx\n", FlowEditFormat::Blocks, &["a".to_owned()])
            .unwrap_err()
            .contains("=======")
    );
}

#[test]
fn a_block_that_holds_only_a_path_names_the_next_one() {
    let answer = "```\n/somewhere/else/solution.py\n```\n```python\nfixed = 1\n```\n\n```\n/somewhere/else/test_solution.py\n```\n```python\nimport unittest\nimport solution\n```\n";
    let edits = edits(answer, FlowEditFormat::Whole, &["solution.py".to_owned()]).unwrap();
    assert_eq!(
        edits,
        [
            write("solution.py", "fixed = 1\n"),
            write("/somewhere/else/test_solution.py", "import unittest\nimport solution\n")
        ]
    );
}

#[test]
fn a_path_that_is_the_whole_content_is_content_where_no_block_follows() {
    let answer = "Here it is:\n```\nREADME.md\n```\nThat is all.\n";
    let edits = edits(answer, FlowEditFormat::Whole, &["index.txt".to_owned()]).unwrap();
    assert_eq!(edits, [write("index.txt", "README.md\n")]);
}

#[test]
fn an_unnamed_block_is_a_version_of_the_file_it_resembles() {
    let shapes = "class Rectangle:\n    def __init__(self, width, height):\n        self.width = width\n";
    let report = "from shapes import Rectangle\n\n\ndef describe(shapes):\n    return len(shapes)\n";
    let shown = [("shapes.py", shapes), ("report.py", report)];
    let new = format!("class Triangle:\n    pass\n\n\n{shapes}");
    let answer = format!("```python\n{new}```\n\nRun it:\n```bash\npython3 report.py\n```\n");
    assert_eq!(unnamed_edits(&answer, &shown), Some(vec![write("shapes.py", &new)]));
    assert_eq!(unnamed_edits("```python\nprint(1)\n```\n", &shown), None);
    assert_eq!(unnamed_edits("No.", &shown), None);
}
