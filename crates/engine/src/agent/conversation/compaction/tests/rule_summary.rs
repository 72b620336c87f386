//! Old turns that are replaced by lines of a summary.

use fusee_model::{Message, Reasoning};

use super::{CompactionRetention, Talk, outcome, read};

/// A turn that reads, one that plans and searches, one that edits and tests, and two answers.
fn long_talk() -> Talk {
    let text = "x".repeat(1_500);
    let mut talk = Talk::about("Make the parser faster.");
    talk = talk.says("I look at the parser first. It is in two files.");
    talk = talk
        .calls("read_file", r#"{"path":"src/parser.rs"}"#)
        .calls("read_files", r#"{"paths":["a.rs","b.rs"]}"#);
    talk = talk.gets(&[&text, &text]);
    talk = talk.user("Mind the\n  error messages!");
    talk = talk.says("Now a plan.").calls("plan_tasks", r#"{"action":"create","tasks":[]}"#);
    talk = talk.calls("search_text", r#"{"pattern":"fn parse"}"#);
    talk = talk.gets(&["[ ] 1. measure\n[ ] 2. change", "src/parser.rs:3: fn parse"]);
    talk = talk.calls("edit_file", r#"{"path":"src/parser.rs","old":"a","new":"b"}"#);
    talk = talk
        .calls("apply_patch", r#"{"patch":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: n.rs\n"}"#);
    talk = talk.calls("shell", r#"{"command":"cargo test\n  --all"}"#);
    talk = talk.gets(&["ERROR: `old` is not in the file", &text, &format!("{text}\n[exit code 101]")]);
    talk.says("The tests fail. I look why.").user("And?").says("A missing comma.")
}

#[test]
fn old_turns_become_a_line_each() {
    insta::assert_snapshot!(outcome(&long_talk().compacted(1_000)), @r#"
    10 removed, 6569 -> 491
    user: Make the parser faster.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read src/parser.rs, a.rs, b.rs · said: I look at the parser first.
        - user: Mind the error messages!
        - search_text `fn parse` · said: Now a plan.
        - changed a.rs, n.rs · ran `cargo test --all` (exit 101) · edit_file src/parser.rs (failed)
    model:
      call c2 plan_tasks {"action":"create","tasks":[]}
      result c2 [ ] 1. measure
        [ ] 2. change
    model: The tests fail. I look why.
    user: And?
    model: A missing comma.
    "#);
}

#[test]
fn no_more_turns_go_than_the_target_needs() {
    insta::assert_snapshot!(outcome(&long_talk().compacted(3_700)), @r#"
    3 removed, 6569 -> 3634
    user: Make the parser faster.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read src/parser.rs, a.rs, b.rs · said: I look at the parser first.
    user: Mind the
          error messages!
    model: Now a plan.
      call c2 plan_tasks {"action":"create","tasks":[]}
      call c3 search_text {"pattern":"fn parse"}
      result c2 [ ] 1. measure
        [ ] 2. change
      result c3 src/parser.rs:3: fn parse
    model:
      call c4 edit_file {"path":"src/parser.rs","old":"a","new":"b"}
      call c5 apply_patch {"patch":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: n.rs\n"}
      call c6 shell {"command":"cargo test\n  --all"}
      result c4 failed ERROR: `old` is not in the file
      result c5 <1500 x>
      result c6 <1500 x>
        [exit code 101]
    model: The tests fail. I look why.
    user: And?
    model: A missing comma.
    "#);
}

#[test]
fn the_newest_turns_stay_whole_within_their_budget() {
    let keep = CompactionRetention { first_user_messages: 1, recent_tokens: 3_600, request: None };
    let compacted = long_talk().to(1_000, keep).expect("it gets smaller");
    insta::assert_snapshot!(outcome(&compacted), @r#"
    3 removed, 6569 -> 3634
    user: Make the parser faster.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read src/parser.rs, a.rs, b.rs · said: I look at the parser first.
    user: Mind the
          error messages!
    model: Now a plan.
      call c2 plan_tasks {"action":"create","tasks":[]}
      call c3 search_text {"pattern":"fn parse"}
      result c2 [ ] 1. measure
        [ ] 2. change
      result c3 src/parser.rs:3: fn parse
    model:
      call c4 edit_file {"path":"src/parser.rs","old":"a","new":"b"}
      call c5 apply_patch {"patch":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: n.rs\n"}
      call c6 shell {"command":"cargo test\n  --all"}
      result c4 failed ERROR: `old` is not in the file
      result c5 <1500 x>
      result c6 <1500 x>
        [exit code 101]
    model: The tests fail. I look why.
    user: And?
    model: A missing comma.
    "#);
}

#[test]
fn a_later_compaction_goes_on_with_the_summary_of_an_earlier_one() {
    let mut talk = Talk { messages: long_talk().compacted(1_000).messages, calls: 90 };
    talk = read(talk.user("Then fix it."), "src/comma.rs", &"y".repeat(2_000));
    talk = talk.says("I put the comma in.").calls("write_file", r#"{"path":"src/comma.rs","content":","}"#);
    talk = talk.gets(&["done"]).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(1_500)), @r#"
    7 removed, 2610 -> 622
    user: Make the parser faster.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read src/parser.rs, a.rs, b.rs · said: I look at the parser first.
        - user: Mind the error messages!
        - search_text `fn parse` · said: Now a plan.
        - changed a.rs, n.rs · ran `cargo test --all` (exit 101) · edit_file src/parser.rs (failed)
        - said: The tests fail.
        - user: And?
        - said: A missing comma.
        - user: Then fix it.
        - read src/comma.rs
    model:
      call c2 plan_tasks {"action":"create","tasks":[]}
      result c2 [ ] 1. measure
        [ ] 2. change
    model: I put the comma in.
      call c91 write_file {"path":"src/comma.rs","content":","}
      result c91 done
    model: Done.
    "#);
}

#[test]
fn every_message_of_a_longer_goal_stays_in_its_place() {
    let keep = CompactionRetention { first_user_messages: 3, recent_tokens: 0, request: None };
    let text = "x".repeat(3_000);
    let talk = read(Talk::about("The place.").user("The goal."), "a.rs", &text).says("What next?");
    let talk = read(talk.user("The second goal."), "b.rs", &text).says("Done.");
    let compacted = talk.to(1_000, keep).expect("it gets smaller");
    insta::assert_snapshot!(outcome(&compacted), @r"
    5 removed, 6098 -> 193
    user: The place.
    user: The goal.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read a.rs
        - said: What next?
        - read b.rs
    user: The second goal.
    model: Done.
    ");
    let again = Talk { messages: compacted.messages, calls: 90 };
    let again = read(again, "c.rs", &text).says("Done again.").to(1_000, keep).expect("it gets smaller");
    insta::assert_snapshot!(outcome(&again), @r"
    3 removed, 3228 -> 226
    user: The place.
    user: The goal.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read a.rs
        - said: What next?
        - read b.rs
        - read c.rs · said: Done.
    user: The second goal.
    model: Done again.
    ");
}

#[test]
fn an_opened_section_stays_word_for_word() {
    let section = |talk: Talk, text: &str| {
        talk.calls("read_section", r#"{"section_key":"style"}"#).calls("think", "{}").gets(&[text, "ok"])
    };
    let talk = section(Talk::about("Fix it."), &"o".repeat(700));
    let talk = section(talk, &"n".repeat(700));
    let talk = read(talk, "a.rs", &"a".repeat(3_000)).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(1_000)), @r#"
    7 removed, 4524 -> 869
    user: Fix it.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read a.rs
    model:
      call c2 read_section {"section_key":"style"}
      result c2 <700 n>
    model: Done.
    "#);
}

#[test]
fn thoughts_go_with_the_turn_they_belong_to() {
    let mut talk = Talk::about("Fix it.").says("A plan.").calls("plan_tasks", "{}").gets(&["[ ] 1. all"]);
    let Message::Assistant { reasoning, .. } = &mut talk.messages[1] else { panic!("a reply") };
    *reasoning = Some(Reasoning { text: "Hm.".to_owned(), opaque: Vec::new() });
    let talk = read(talk, "a.rs", &"a".repeat(3_000)).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(500)), @r"
    3 removed, 3065 -> 172
    user: Fix it.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - said: A plan.
        - read a.rs
    model:
      call c0 plan_tasks {}
      result c0 [ ] 1. all
    model: Done.
    ");
}

#[test]
fn a_summary_that_grows_too_long_keeps_the_files_of_its_oldest_lines() {
    let mut talk = Talk::about("Fix all.");
    for file in 0..40 {
        talk = talk.says(&format!("Now file number {file} of the many."));
        talk =
            talk.calls("write_file", &format!(r#"{{"path":"src/f{file}.rs"}}"#)).gets(&[&"x".repeat(1_000)]);
    }
    let first = talk.clone().says("Half done.").compacted(1_600);
    insta::assert_snapshot!(outcome(&first), @r"
    80 removed, 42478 -> 818
    user: Fix all.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - 32 earlier turns, shortened · changed src/f31.rs, src/f30.rs, src/f29.rs, src/f28.rs, src/f27.rs, src/f26.rs, src/f25.rs, src/f24.rs, src/f23.rs, src/f22.rs, src/f21.rs, src/f20.rs, +20 more
        - changed src/f32.rs · said: Now file number 32 of the many.
        - changed src/f33.rs · said: Now file number 33 of the many.
        - changed src/f34.rs · said: Now file number 34 of the many.
        - changed src/f35.rs · said: Now file number 35 of the many.
        - changed src/f36.rs · said: Now file number 36 of the many.
        - changed src/f37.rs · said: Now file number 37 of the many.
        - changed src/f38.rs · said: Now file number 38 of the many.
        - changed src/f39.rs · said: Now file number 39 of the many.
    model: Half done.
    ");
    let again = Talk { messages: first.messages, calls: 90 };
    let again = read(again.user("Go on."), "src/main.rs", &"y".repeat(3_000)).says("Done.");
    insta::assert_snapshot!(outcome(&again.compacted(1_000)), @r"
    5 removed, 3860 -> 632
    user: Fix all.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - 35 earlier turns, shortened · changed src/f34.rs, src/f33.rs, src/f32.rs, src/f31.rs, src/f30.rs, src/f29.rs, src/f28.rs, src/f27.rs, +27 more
        - changed src/f35.rs · said: Now file number 35 of the many.
        - changed src/f36.rs · said: Now file number 36 of the many.
        - changed src/f37.rs · said: Now file number 37 of the many.
        - changed src/f38.rs · said: Now file number 38 of the many.
        - changed src/f39.rs · said: Now file number 39 of the many.
        - said: Half done.
        - user: Go on.
        - read src/main.rs
    model: Done.
    ");
}

#[test]
fn what_cannot_reach_the_target_gets_as_small_as_it_may() {
    let talk = read(Talk::about(&"g".repeat(2_000)), "a.rs", &"a".repeat(2_000)).says(&"d".repeat(2_000));
    insta::assert_snapshot!(outcome(&talk.compacted(10)), @r"
    2 removed, 6024 -> 4122
    user: <2000 g>
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read a.rs
    model: <2000 d>
    ");
}

#[test]
fn ids_may_begin_again_in_every_reply() {
    let mut talk = Talk::about("Fix it.");
    for letter in ["a", "b"] {
        talk.calls = 0;
        talk = talk
            .calls("read_file", &format!(r#"{{"path":"{letter}.rs"}}"#))
            .calls("shell", r#"{"command":"ls"}"#);
        talk = talk.gets(&[&letter.repeat(1_000), "[exit code 0]"]);
    }
    insta::assert_snapshot!(outcome(&talk.says("Done.").compacted(800)), @r"
    6 removed, 2128 -> 188
    user: Fix it.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - read a.rs · ran `ls` (exit 0)
        - read b.rs · ran `ls` (exit 0)
    model: Done.
    ");
}

#[test]
fn arguments_that_are_no_json_leave_the_name() {
    let talk = Talk::about("Fix it.")
        .calls("read_file", "{\"path\": oops")
        .calls("shell", "")
        .calls("write_file", "[1]");
    let talk = talk.gets(&["ERROR: bad arguments", &"x".repeat(3_000), "ERROR: bad arguments"]).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(500)), @r"
    4 removed, 3092 -> 175
    user: Fix it.
    user: [Earlier turns, summarised to save context. What was read there is no longer shown: read again what you need.]
        - ran `?` · read_file (failed), write_file (failed)
    model: Done.
    ");
}
