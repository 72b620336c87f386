//! Content shown by reads, content left out, and the notes about it.

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use crate::test_support::TestWorkspace;
use crate::workspace::content::{ContentHash, SeenVersion};

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn a_small_file_is_shown_whole_with_line_numbers_and_counts_as_seen() {
    let trial = TestWorkspace::new(&[("a.txt", "one\n\n  three\n")]);
    let output = trial.call("read_file", json!({"path": "a.txt"}));
    assert_eq!(output.content, "1\tone\n2\t\n3\t  three\n");
    assert!(output.ok && !output.truncated);
    let seen = SeenVersion { path: "a.txt".to_owned(), hash: ContentHash::of(b"one\n\n  three\n") };
    assert_eq!(output.seen, [seen]);
    let path = trial.context.workspace.locate("a.txt").unwrap();
    assert_eq!(trial.context.workspace.last_seen(&path), Some(ContentHash::of(b"one\n\n  three\n")));
}

#[test]
fn pages_follow_one_another_by_the_offset_the_answer_names() {
    let trial = TestWorkspace::new(&[("a.txt", &numbered(5))]);
    assert_snapshot!(trial.answer("read_file", json!({"path": "a.txt", "limit": 2})), @"
    1	line 1
    2	line 2
    [lines 1-2 of 5; go on with offset 3]
    ");
    assert_snapshot!(trial.answer("read_file", json!({"path": "a.txt", "offset": 3, "limit": 2})), @"
    3	line 3
    4	line 4
    [lines 3-4 of 5; go on with offset 5]
    ");
    assert_snapshot!(trial.answer("read_file", json!({"path": "a.txt", "offset": 5, "limit": 2})), @"
    5	line 5
    [lines 5-5 of 5, to the end]
    ");
    assert_snapshot!(trial.refusal("read_file", json!({"path": "a.txt", "offset": 6})), @"`a.txt` has 5 lines; offset 6 is past its end.");
    assert_eq!(
        trial.answer("read_file", json!({"path": "a.txt", "offset": 0, "limit": 9})),
        trial.answer("read_file", json!({"path": "a.txt"}))
    );
}

#[test]
fn two_thousand_lines_are_the_default_page() {
    let trial = TestWorkspace::new(&[("a.txt", &numbered(2500))]);
    let output = trial.call("read_file", json!({"path": "a.txt"}));
    assert!(output.truncated);
    assert!(output.content.ends_with("2000\tline 2000\n[lines 1-2000 of 2500; go on with offset 2001]\n"));
}

#[test]
fn bytes_bound_a_page_and_a_long_line_is_cut() {
    let trial = TestWorkspace::new(&[
        ("wide.txt", &format!("{}\n", "x".repeat(1000)).repeat(100)),
        ("long.txt", &"é".repeat(60_000)),
    ]);
    let output = trial.call("read_file", json!({"path": "wide.txt"}));
    assert!(output.content.len() < 51 * 1024 && output.content.len() > 49 * 1024);
    assert!(output.content.ends_with("[lines 1-51 of 100; go on with offset 52]\n"),);
    let long = trial.answer("read_file", json!({"path": "long.txt"}));
    assert_eq!(
        long,
        format!("1\t{} […58000 more characters]\n[no newline at the end of the file]\n", "é".repeat(2000))
    );
}

#[test]
fn a_file_too_large_to_hold_is_paged_without_being_held() {
    let mut trial = TestWorkspace::new(&[("big.log", &numbered(3000))]);
    trial.context.limits.file_bytes = 1000;
    let output = trial.call("read_file", json!({"path": "big.log", "offset": 2998}));
    assert_snapshot!(output.content, @"
    2998	line 2998
    2999	line 2999
    3000	line 3000
    [lines 2998-3000 of 3000, to the end; too large to be edited by a tool]
    ");
    assert_eq!(output.seen, []);
    assert_snapshot!(trial.answer("read_file", json!({"path": "big.log", "limit": 1})), @"
    1	line 1
    [lines 1-1; there are more, go on with offset 2; too large to be edited by a tool]
    ");
}

#[test]
fn what_is_special_about_a_file_is_said() {
    let trial = TestWorkspace::new(&[("empty", ""), ("crlf", "a\r\nb\r\n"), ("open", "a\nb")]);
    trial.put("latin", b"caf\xe9\n");
    trial.put("image.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    trial.put("blob", b"ab\0cd");
    let answer = |path: &str| trial.answer("read_file", json!({ "path": path }));
    assert_snapshot!(answer("empty"), @"`empty` is empty (0 bytes).");
    assert_snapshot!(answer("crlf"), @"
    1	a
    2	b
    [lines end with CRLF]
    ");
    assert_snapshot!(answer("open"), @"
    1	a
    2	b
    [no newline at the end of the file]
    ");
    assert_snapshot!(answer("latin"), @"
    1	caf\u{fffd}
    [not valid UTF-8: \u{fffd} stands for what is not]
    ");
    assert_snapshot!(answer("image.png"), @"`image.png` is not text (PNG image, 11 bytes); its content is not shown.");
    assert_snapshot!(answer("blob"), @"`blob` is not text (binary data, 5 bytes); its content is not shown.");
}

#[test]
fn a_wrong_path_is_answered_with_the_next_step() {
    let trial = TestWorkspace::new(&[("src/main.rs", "x\n"), ("src/lib/deep.rs", "x\n")]);
    let refusal = |path: &str| trial.refusal("read_file", json!({ "path": path }));
    assert_snapshot!(refusal("src/man.rs"), @"`src/man.rs` does not exist. Did you mean `src/main.rs`?");
    assert_snapshot!(refusal("deep.rs"), @"`deep.rs` does not exist. Did you mean `src/lib/deep.rs`?");
    assert_snapshot!(refusal("nothing/like/it"), @"`nothing/like/it` does not exist. Use find_files or list_dir to see what there is.");
    assert_snapshot!(refusal("src"), @"`src` is a directory. Use list_dir to see what is in it.");
    assert_snapshot!(refusal("/etc/passwd"), @"`/etc/passwd` is outside the workspace. Use a path relative to the workspace root, such as `src/main.rs`; `.` is the root itself.");
}

#[test]
fn several_files_are_read_at_once_and_problems_stand_in_their_place() {
    let trial = TestWorkspace::new(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let output = trial.call("read_files", json!({"paths": ["a.txt", "c.txt", "b.txt"]}));
    assert_snapshot!(output.content, @"
    ==> a.txt <==
    1	one

    ==> c.txt <==
    `c.txt` does not exist. Did you mean `a.txt`, `b.txt`?

    ==> b.txt <==
    1	two
    ");
    assert!(output.ok);
    assert_eq!(output.seen.iter().map(|seen| seen.path.as_str()).collect::<Vec<_>>(), ["a.txt", "b.txt"]);
    assert!(!trial.call("read_files", json!({"paths": ["c.txt"]})).ok);
    let twice = trial.call("read_files", json!({"paths": ["a.txt", "a.txt"]}));
    assert_eq!(twice.content, "==> a.txt <==\n1\tone");
}

#[test]
fn several_files_share_one_budget() {
    let large = format!("{}\n", "y".repeat(99)).repeat(1000);
    let trial = TestWorkspace::new(&[("small", "x\n"), ("large1", &large), ("large2", &large)]);
    let output = trial.call("read_files", json!({"paths": ["small", "large1", "large2"]}));
    assert!(output.truncated && output.content.len() < 52 * 1024, "{}", output.content.len());
    assert!(output.content.contains("==> large2 <==\n1\tyyy"));
}

proptest! {
    #[test]
    fn pages_put_together_are_the_file(lines in proptest::collection::vec("[a-zé \t]{0,30}", 1..60), page in 1usize..20) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let trial = TestWorkspace::new(&[("f", &text)]);
        let (mut offset, mut together) = (1, String::new());
        while offset <= lines.len() {
            let answer = trial.answer("read_file", json!({"path": "f", "offset": offset, "limit": page}));
            for line in answer.lines().filter(|line| !line.starts_with('[')) {
                let (number, text) = line.split_once('\t').unwrap();
                prop_assert_eq!(number.parse::<usize>().unwrap(), offset);
                together.push_str(text);
                together.push('\n');
                offset += 1;
            }
        }
        prop_assert_eq!(together, text);
    }
}

#[test]
fn a_picture_is_shown_to_a_model_that_takes_pictures() {
    let png = crate::tool::image::tests::PNG;
    let mut trial = TestWorkspace::new(&[("a.txt", "x\n")]);
    trial.put("a.png", png);
    trial.put("b.png", png);
    let unseen = trial.call("read_file", json!({ "path": "a.png" }));
    assert_snapshot!(unseen.content, @"`a.png` is not text (PNG image, 1 × 1 pixels, 69 bytes), and it is not shown: this model takes no images.");
    assert_eq!((unseen.ok, unseen.images.len()), (true, 0));

    trial.context.limits.image_bytes = png.len() + 1;
    let seen = trial.call("read_file", json!({ "path": "a.png" }));
    assert_snapshot!(seen.content, @"`a.png` (PNG image, 1 × 1 pixels, 69 bytes) is shown with this answer.");
    assert_eq!(seen.images.len(), 1);
    assert_eq!(crate::tool::image::decoded(&seen.images[0].data).unwrap(), png);
    // An image cannot be edited as text.
    assert_eq!(seen.seen, []);

    let several = trial.call("read_files", json!({ "paths": ["a.png", "a.txt", "b.png"] }));
    assert_snapshot!(several.content, @"
    ==> a.png <==
    `a.png` (PNG image, 1 × 1 pixels, 69 bytes) is shown with this answer.

    ==> a.txt <==
    1	x

    ==> b.png <==
    `b.png` is not text (PNG image, 1 × 1 pixels, 69 bytes), and it is not shown: there is room for 1 bytes of images in one answer; make a smaller copy, or read it alone.
    ");
    assert_eq!(several.images, seen.images);
}
