//! Formatted workflows.

use insta::assert_snapshot;

use super::super::read;
use super::*;
use crate::Source;

fn indent(head: &str) -> Option<Indent> {
    Some(match head {
        "let" | "retry" | "catch" | "match" => Indent::Body(1),
        "defun" => Indent::Body(2),
        "progn" | "cond" | "try" => Indent::Body(0),
        "if" => Indent::Align,
        _ => return None,
    })
}

fn format(text: &str) -> String {
    let (tree, problems) = read(&Source::new("t", text));
    assert!(problems.is_empty(), "{problems:?}");
    let once = layout(&tree, &indent);
    let (again, _) = read(&Source::new("t", once.as_str()));
    assert_eq!(layout(&again, &indent), once, "laying out twice changes nothing");
    once
}

#[test]
fn what_fits_stays_on_one_line() {
    assert_snapshot!(format("  (defun   f (x)\n (+ x 1) )\n\n\n\n(f\n 2)"), @r"
    (defun f (x) (+ x 1))

    (f 2)
    ");
}

#[test]
fn forms_break_by_their_shape() {
    assert_snapshot!(format(
        "(defun review-all (files) (let ((findings (pmap (lambda (file) (review (file file) (style \"strict\"))) files :limit 8)) (count (length files))) (if (all? ok? findings) (merge-findings (findings findings) (count count)) (retry 3 :backoff 2 (merge-findings (findings findings))))))"
    ), @r#"
    (defun review-all (files)
      (let ((findings (pmap (lambda (file) (review (file file) (style "strict"))) files :limit 8))
            (count (length files)))
        (if (all? ok? findings)
            (merge-findings (findings findings) (count count))
            (retry 3 :backoff 2 (merge-findings (findings findings))))))
    "#);
}

#[test]
fn comments_stay_where_they_were() {
    assert_snapshot!(format(
        "; top\n(progn ; why\n ; own line\n\n ; after a blank\n (a) ; behind a\n (b)\n ; last\n)\n; end"
    ), @r"
    ; top
    (progn ; why
      ; own line

      ; after a blank
      (a) ; behind a
      (b)
      ; last
    )
    ; end
    ");
    assert_snapshot!(format("(; first\n a b)\n(if ; c\n a b)\n'; odd\n(x y)\n(c) ; behind"), @r"
    (; first
     a
     b)
    (if ; c
        a
        b)
    ; odd
    '(x y)
    (c) ; behind
    ");
}

#[test]
fn one_blank_line_between_body_forms_is_kept() {
    assert_snapshot!(format("(progn\n\n  (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)\n\n\n  (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)\n  (c))"), @r"
    (progn
      (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)

      (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)
      (c))
    ");
}

#[test]
fn strings_over_lines_are_not_touched() {
    assert_snapshot!(format("(review (prompt \"first\n   second  \n\tthird\") (n 1))"), @r#"
    (review
      (prompt "first
       second  
    	third")
      (n 1))
    "#);
}

#[test]
fn a_long_head_breaks_before_its_first_argument() {
    assert_snapshot!(format(
        "(a-rather-long-function-name (first-argument one two three) (second-argument four five six) seven eight nine)"
    ), @r"
    (a-rather-long-function-name
      (first-argument one two three)
      (second-argument four five six)
      seven
      eight
      nine)
    ");
}

#[test]
fn deep_nesting_is_written_in_bounded_space() {
    let text = format!("{}x{}", "(a ".repeat(100_000), ")".repeat(100_000));
    let laid_out = format(&text);
    assert!(laid_out.len() < text.len() + 100_000 * (MAX_INDENT + 2));
}

#[test]
fn deep_nesting_with_comments_takes_linear_time() {
    let text = format!("{}x{}", "(a ; c\n".repeat(50_000), ")".repeat(50_000));
    assert_eq!(format(&text).matches("; c").count(), 50_000);
}

#[test]
fn nothing_is_laid_out_as_nothing() {
    assert_eq!(format("  \n "), "");
    assert_eq!(format("; only\n\n\n; comments"), "; only\n\n; comments\n");
}
