//! Results that are shortened while every message is kept.

use std::fmt::Write;

use super::{GOAL_ONLY, Talk, outcome, read, shown};

#[test]
fn a_conversation_that_fits_is_left_alone() {
    let talk = read(Talk::about("Fix it."), "a.rs", &"a".repeat(5_000));
    assert_eq!(talk.to(10_000, GOAL_ONLY), None);
}

#[test]
fn an_empty_conversation_is_left_alone() {
    assert_eq!(Talk::default().to(0, GOAL_ONLY), None);
}

#[test]
fn saving_less_than_a_tenth_is_not_worth_it() {
    let talk = Talk::about(&"g".repeat(5_000)).says("One small thought.").user("Go on.").says("Done.");
    assert_eq!(talk.to(100, GOAL_ONLY), None);
}

#[test]
fn an_older_read_gives_way_to_the_newer_one() {
    let talk = Talk::about("Fix it.");
    let talk = read(talk, "a.rs", &"a".repeat(2_000));
    let talk = read(talk, "b.rs", &"b".repeat(2_000));
    let talk = read(talk, "./a.rs", &"A".repeat(2_000));
    let talk = talk.says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(4_200)), @r#"
    1 removed, 6086 -> 4155
    user: Fix it.
    model:
      call c0 read_file {"path":"a.rs"}
      result c0 [Read again later in this conversation; the newer text stands there.]
    model:
      call c1 read_file {"path":"b.rs"}
      result c1 <2000 b>
    model:
      call c2 read_file {"path":"./a.rs"}
      result c2 <2000 A>
    model: Done.
    "#);
}

#[test]
fn a_read_of_another_part_of_the_file_is_no_duplicate() {
    let part = |talk: Talk, offset: &str, text: &str| {
        talk.calls("read_file", &format!(r#"{{"path":"a.rs","offset":{offset},"limit":9}}"#)).gets(&[text])
    };
    let talk = part(Talk::about("Fix it."), "1", &"a".repeat(2_000));
    let talk = part(talk, "10", &"b".repeat(2_000));
    let talk = part(talk, "\"1\"", &"c".repeat(2_000)).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(4_400)), @r#"
    1 removed, 6150 -> 4219
    user: Fix it.
    model:
      call c0 read_file {"path":"a.rs","offset":1,"limit":9}
      result c0 [Read again later in this conversation; the newer text stands there.]
    model:
      call c1 read_file {"path":"a.rs","offset":10,"limit":9}
      result c1 <2000 b>
    model:
      call c2 read_file {"path":"a.rs","offset":"1","limit":9}
      result c2 <2000 c>
    model: Done.
    "#);
}

#[test]
fn a_failed_or_refused_read_does_not_stand_for_a_text() {
    let talk = read(Talk::about("Fix it."), "a.rs", &"a".repeat(2_000));
    let talk = read(talk, "a.rs", "ERROR: no such file");
    let talk = read(talk, "a.rs", "You have read this twice already.");
    let talk = talk.says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(1_900)), @r#"
    2 removed, 2136 -> 234
    user: Fix it.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read a.rs
    model:
      call c1 read_file {"path":"a.rs"}
      result c1 failed ERROR: no such file
    model:
      call c2 read_file {"path":"a.rs"}
      result c2 You have read this twice already.
    model: Done.
    "#);
}

#[test]
fn several_files_are_a_duplicate_only_if_the_text_is_the_same() {
    let several =
        |talk: Talk, text: &str| talk.calls("read_files", r#"{"paths":["a.rs","b.rs"]}"#).gets(&[text]);
    let talk = several(Talk::about("Fix it."), &"a".repeat(2_000));
    let talk = several(talk, &"b".repeat(2_000));
    let talk = several(talk, &"b".repeat(2_000)).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(4_300)), @r#"
    1 removed, 6117 -> 4186
    user: Fix it.
    model:
      call c0 read_files {"paths":["a.rs","b.rs"]}
      result c0 <2000 a>
    model:
      call c1 read_files {"paths":["a.rs","b.rs"]}
      result c1 [Read again later in this conversation; the newer text stands there.]
    model:
      call c2 read_files {"paths":["a.rs","b.rs"]}
      result c2 <2000 b>
    model: Done.
    "#);
}

#[test]
fn a_long_output_keeps_its_ends() {
    let mut output = String::from("compiling\n");
    for line in 0..100 {
        let _ = writeln!(output, "{line:03} {}", "w".repeat(30));
    }
    output.push_str("error: it does not work\n[exit code 101]");
    let talk = Talk::about("Fix it.").calls("shell", r#"{"command":"make"}"#).gets(&[&output]).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(2_000)), @r#"
    1 removed, 3584 -> 1074
    user: Fix it.
    model:
      call c0 shell {"command":"make"}
      result c0 compiling
        000 <30 w>
        001 <30 w>
        002 <30 w>
        003 <30 w>
        004 <30 w>
        005 <30 w>
        006 <30 w>
        007 <30 w>
        008 <30 w>
        009 <30 w>
        010 <30 w>
        [2555 bytes in 73 lines cut to save context]
        084 <30 w>
        085 <30 w>
        086 <30 w>
        087 <30 w>
        088 <30 w>
        089 <30 w>
        090 <30 w>
        091 <30 w>
        092 <30 w>
        093 <30 w>
        094 <30 w>
        095 <30 w>
        096 <30 w>
        097 <30 w>
        098 <30 w>
        099 <30 w>
        error: it does not work
        [exit code 101]
    model: Done.
    "#);
}

#[test]
fn ends_are_cut_between_characters() {
    let output = "ä".repeat(2_000);
    let talk = Talk::about("Fix it.").calls("shell", r#"{"command":"make"}"#).gets(&[&output]).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(2_000)), @r#"
    1 removed, 4035 -> 1079
    user: Fix it.
    model:
      call c0 shell {"command":"make"}
      result c0 <200 ä>
        [3000 bytes in 1 line cut to save context]
        <300 ä>
    model: Done.
    "#);
}

#[test]
fn outputs_shrink_oldest_first_and_only_until_the_target_is_met() {
    let ran = |talk: Talk, letter: &str| {
        talk.calls("shell", r#"{"command":"make"}"#).gets(&[&letter.repeat(3_000)])
    };
    let talk = ran(ran(ran(Talk::about("Fix it."), "a"), "b"), "c").says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(7_500)), @r#"
    1 removed, 9081 -> 7125
    user: Fix it.
    model:
      call c0 shell {"command":"make"}
      result c0 <400 a>
        [2000 bytes in 1 line cut to save context]
        <600 a>
    model:
      call c1 shell {"command":"make"}
      result c1 <3000 b>
    model:
      call c2 shell {"command":"make"}
      result c2 <3000 c>
    model: Done.
    "#);
}

#[test]
fn only_the_current_plan_stays() {
    let plan =
        |talk: Talk, arguments: &str, answer: &str| talk.calls("plan_tasks", arguments).gets(&[answer]);
    let talk = plan(Talk::about("Fix it."), r#"{"action":"create"}"#, &"p".repeat(1_000));
    let talk = plan(talk, r#"{"action":"update"}"#, &"q".repeat(1_000));
    let talk = plan(talk, r#"{"action":"update"}"#, "ERROR: no such task").says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(1_300)), @r#"
    1 removed, 2118 -> 1145
    user: Fix it.
    model:
      call c0 plan_tasks {"action":"create"}
      result c0 [Replaced by a later plan.]
    model:
      call c1 plan_tasks {"action":"update"}
      result c1 <1000 q>
    model:
      call c2 plan_tasks {"action":"update"}
      result c2 failed ERROR: no such task
    model: Done.
    "#);
}

#[test]
fn pictures_are_left_out_where_they_were_not_asked_for_by_name_or_stand_again() {
    let shot =
        |talk: Talk, words: &str, data: &str| talk.calls("browser_shot", "{}").gets(&[words]).shows(data);
    let read = |talk: Talk, data: &str| {
        talk.calls("read_file", r#"{"path":"a.png"}"#)
            .gets(&["`a.png` is shown with this answer."])
            .shows(data)
    };
    let talk = shot(Talk::about("Look."), "The page.", "A");
    let talk = shot(read(read(talk, "B"), "C"), "The page again.", "D").says("Seen.");
    insta::assert_snapshot!(shown(&talk.compacted(12_000).messages), @r#"
    user: Look.
    model:
      call c0 browser_shot {}
      result c0 The page.
        [Its images are left out to save context.]
    model:
      call c1 read_file {"path":"a.png"}
      result c1 [Read again later in this conversation; the newer text stands there.]
    model:
      call c2 read_file {"path":"a.png"}
      result c2 `a.png` is shown with this answer. <image C>
    model:
      call c3 browser_shot {}
      result c3 The page again. <image D>
    model: Seen.
    "#);
}

#[test]
fn a_picture_stays_though_the_file_is_read_again_by_a_model_that_takes_none() {
    let path = r#"{"path":"a.png"}"#;
    let talk = Talk::about("Look.").calls("read_file", path).gets(&["`a.png` is shown."]).shows("A");
    let talk = talk.calls("read_file", path).gets(&["`a.png` is not text, and it is not shown."]);
    let talk = talk.calls("shell", "{}").gets(&[&"x".repeat(3_000)]).says("Seen.");
    let compacted = talk.compacted(7_500).messages;
    assert!(compacted.iter().any(|message| message.images().len() == 1), "{}", shown(&compacted));
}
