//! Which part of the output is kept, and how the model sees it.

use proptest::prelude::*;

use super::{Capture, ReportedOutput};

fn captured(output: &[u8]) -> String {
    let mut capture = Capture::new(1000, 1000);
    capture.push(output);
    capture.text().0
}

#[test]
fn what_only_a_terminal_understands_is_dropped() {
    assert_eq!(captured(b"\x1b[1;31mred\x1b[0m plain\n"), "red plain\n");
    assert_eq!(captured(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b\n"), "alinkb\n");
    assert_eq!(captured(b"\x1b(Bx\x1b=y\x07z\x7f\n"), "xyz\n");
    assert_eq!(captured("tab\tänd\n".as_bytes()), "tab\tänd\n");
}

#[test]
fn a_redrawn_line_leaves_its_last_state() {
    assert_eq!(captured(b" 10%\r 50%\r100%\ndone\r\n"), "100%\ndone\n");
    assert_eq!(captured(b"10%\r\x1b[K20%\x1b[0m\r\n"), "20%\n");
    assert_eq!(captured(b"N\x08NA\x08AM\x08ME\n"), "NAME\n");
}

#[test]
fn an_unfinished_line_is_shown() {
    assert_eq!(captured(b"prompt> "), "prompt> ");
    assert_eq!(captured(b"50%\r"), "50%");
}

#[test]
fn a_control_string_without_end_does_not_swallow_everything() {
    let mut output = b"\x1b]0;".to_vec();
    output.extend(b"x".repeat(5000));
    output.extend(b"\nstill here\n");
    assert!(captured(&output).ends_with("\nstill here\n"));
}

#[test]
fn long_output_keeps_its_beginning_and_its_end_in_whole_lines() {
    let mut capture = Capture::new(60, 60);
    for line in 0..1000 {
        capture.push(format!("line {line}\n").as_bytes());
    }
    let (text, truncated) = capture.text();
    assert!(truncated);
    assert_eq!(
        text,
        "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\n[… 8780 bytes, 986 lines cut …]\nline 994\nline 995\nline 996\nline 997\nline 998\nline 999\n"
    );
}

#[test]
fn one_endless_line_is_cut_at_characters() {
    let mut capture = Capture::new(101, 101);
    capture.push("é".repeat(10_000).as_bytes());
    let (text, _) = capture.text();
    assert_eq!(text, format!("{}\n[… 19800 bytes, 0 lines cut …]\n{}", "é".repeat(50), "é".repeat(50)));
}

#[test]
fn binary_output_is_named_not_shown() {
    assert_eq!(
        captured(&[0, 1, 2, 0, 0xff]),
        "(binary output of 5 bytes, not shown; write it to a file or pipe it through `od -c | head`)"
    );
    assert_eq!(captured(b"not\xffutf-8\n"), "not\u{fffd}utf-8\n");
}

#[test]
fn each_report_continues_the_one_before() {
    let mut capture = Capture::new(10, 1000);
    let mut reported = ReportedOutput::default();
    assert_eq!(capture.unreported(&mut reported), None);
    let steps = [
        ("line 1\n", Some("line 1\n")),
        ("", None),
        ("line 2\nhal", Some("line 2\nhal")),
        ("f\nline 4", Some("f\nline 4")),
        // A progress bar redraws its line.
        ("\r10 %", Some("\r10 %")),
        ("\r20 %\n", Some("\r20 %\n")),
        ("caf\u{e9}", Some("caf\u{e9}")),
    ];
    for (output, report) in steps {
        capture.push(output.as_bytes());
        assert_eq!(capture.unreported(&mut reported).as_deref(), report, "{output:?}");
    }
    // Half a character waits for its other half.
    capture.push(&[0xc3]);
    assert_eq!(capture.unreported(&mut reported), None);
    capture.push(&[0xa9]);
    assert_eq!(capture.unreported(&mut reported).as_deref(), Some("\u{e9}"));
}

proptest! {
    #[test]
    fn pieces_make_no_difference(output in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..300) {
        let at = at.min(output.len());
        let mut capture = Capture::new(50, 50);
        capture.push(&output[..at]);
        capture.push(&output[at..]);
        let mut whole = Capture::new(50, 50);
        whole.push(&output);
        prop_assert_eq!(capture.text(), whole.text());
    }

    #[test]
    fn plain_text_that_fits_is_itself(output in "[ -~é\n\t]{0,200}") {
        prop_assert_eq!(captured(output.as_bytes()), output);
    }

    #[test]
    fn memory_is_bounded(pieces in proptest::collection::vec("[a-z\n]{0,500}", 0..40)) {
        let mut capture = Capture::new(64, 64);
        for piece in &pieces {
            capture.push(piece.as_bytes());
            prop_assert!(capture.head.len() <= 64 && capture.tail.len() <= 64 && capture.line.len() <= super::LONGEST_HELD);
        }
    }
}
