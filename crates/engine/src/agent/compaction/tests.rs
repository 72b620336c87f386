//! Whole small conversations before and after a compaction.

use std::fmt::Write;

use fusee_model::{Message, Reasoning, ToolCall};

use super::legal::legal;
use super::{Compacted, Keep, compact};

const GOAL_ONLY: Keep = Keep { first_user_messages: 1, recent_tokens: 0 };

/// A token a byte, so that sizes in these tests can be seen.
fn bytes(message: &Message) -> u64 {
    let size = match message {
        Message::User { text } => text.len(),
        Message::Tool { content, .. } => content.len(),
        Message::Assistant { text, tool_calls, .. } => {
            text.len() + tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
        }
    };
    size as u64
}

fn total(messages: &[Message]) -> u64 {
    messages.iter().map(bytes).sum()
}

/// Writes a conversation down, a step at a time; ids count up.
#[derive(Clone, Default)]
struct Talk {
    messages: Vec<Message>,
    calls: usize,
}

impl Talk {
    fn about(goal: &str) -> Self {
        Talk::default().user(goal)
    }

    fn user(mut self, text: &str) -> Self {
        self.messages.push(Message::User { text: text.to_owned() });
        self
    }

    fn says(mut self, text: &str) -> Self {
        self.messages.push(Message::Assistant {
            text: text.to_owned(),
            reasoning: None,
            tool_calls: Vec::new(),
        });
        self
    }

    /// A call of the last reply if that has no result yet, else of a new one.
    fn calls(mut self, name: &str, arguments: &str) -> Self {
        let call = ToolCall {
            id: format!("c{}", self.calls),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        self.calls += 1;
        if !matches!(self.messages.last(), Some(Message::Assistant { .. })) {
            self = self.says("");
        }
        if let Some(Message::Assistant { tool_calls, .. }) = self.messages.last_mut() {
            tool_calls.push(call);
        }
        self
    }

    /// The results of the last reply's calls.
    fn gets(mut self, results: &[&str]) -> Self {
        let Some(Message::Assistant { tool_calls, .. }) = self.messages.last() else {
            panic!("results without calls")
        };
        let answers: Vec<Message> = tool_calls
            .iter()
            .zip(results)
            .map(|(call, content)| Message::Tool {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: (*content).to_owned(),
                ok: !content.starts_with("ERROR"),
            })
            .collect();
        self.messages.extend(answers);
        self
    }

    fn to(&self, target: u64, keep: Keep) -> Option<Compacted> {
        let compacted = compact(&self.messages, &keep, target, &bytes)?;
        assert_eq!(legal(&compacted.messages), Ok(()));
        assert_eq!(compacted.tokens_before, total(&self.messages));
        assert_eq!(compacted.tokens_after, total(&compacted.messages));
        Some(compacted)
    }

    fn compacted(&self, target: u64) -> Compacted {
        self.to(target, GOAL_ONLY).expect("it gets smaller")
    }
}

/// A conversation as lines of text; runs of one letter are counted, not shown.
fn shown(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let _ = match message {
            Message::User { text: said } => writeln!(text, "user: {}", brief(said)),
            Message::Assistant { text: said, tool_calls, reasoning } => {
                let thought = if reasoning.is_some() { " (thought)" } else { "" };
                let _ = writeln!(text, "{}", format!("model:{thought} {}", brief(said)).trim_end());
                tool_calls.iter().try_for_each(|call| {
                    writeln!(text, "  call {} {} {}", call.id, call.name, brief(&call.arguments))
                })
            }
            Message::Tool { call_id, content, ok, .. } => {
                writeln!(text, "  result {call_id}{} {}", if *ok { "" } else { " failed" }, brief(content))
            }
        };
    }
    text
}

fn brief(text: &str) -> String {
    let mut out = String::new();
    let letters: Vec<char> = text.chars().collect();
    for run in letters.chunk_by(|a, b| a == b) {
        match run {
            [letter, ..] if run.len() > 20 => {
                let _ = write!(out, "<{} {letter}>", run.len());
            }
            _ => out.extend(run),
        }
    }
    out.replace('\n', "\n    ")
}

fn outcome(compacted: &Compacted) -> String {
    let Compacted { messages, items_removed, tokens_before, tokens_after } = compacted;
    format!("{items_removed} removed, {tokens_before} -> {tokens_after}\n{}", shown(messages))
}

fn read(talk: Talk, path: &str, text: &str) -> Talk {
    talk.calls("read_file", &format!(r#"{{"path":"{path}"}}"#)).gets(&[text])
}

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
    output.push_str("error: it does not work\nexit code 101");
    let talk = Talk::about("Fix it.").calls("shell", r#"{"command":"make"}"#).gets(&[&output]).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(2_000)), @r#"
    1 removed, 3582 -> 1072
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
        exit code 101
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

/// A turn that reads, one that plans among other things, one that edits and tests, two answers.
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
    talk = talk.gets(&["ERROR: `old` is not in the file", &text, &format!("exit code 101\n{text}")]);
    talk.says("The tests fail. I look why.").user("And?").says("A missing comma.")
}

#[test]
fn old_turns_become_a_line_each() {
    insta::assert_snapshot!(outcome(&long_talk().compacted(1_000)), @r#"
    10 removed, 6567 -> 491
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
    3 removed, 6567 -> 3632
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
      result c6 exit code 101
        <1500 x>
    model: The tests fail. I look why.
    user: And?
    model: A missing comma.
    "#);
}

#[test]
fn the_newest_turns_stay_whole_within_their_budget() {
    let keep = Keep { first_user_messages: 1, recent_tokens: 3_600 };
    let compacted = long_talk().to(1_000, keep).expect("it gets smaller");
    insta::assert_snapshot!(outcome(&compacted), @r#"
    3 removed, 6567 -> 3632
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
      result c6 exit code 101
        <1500 x>
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
    let keep = Keep { first_user_messages: 3, recent_tokens: 0 };
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
    let talk = section(talk, &"n".repeat(700)).says("Done.");
    insta::assert_snapshot!(outcome(&talk.compacted(100)), @r#"
    1 removed, 1500 -> 869
    user: Fix it.
    model:
      call c0 read_section {"section_key":"style"}
      call c1 think {}
      result c0 [Read again later in this conversation; the newer text stands there.]
      result c1 ok
    model:
      call c2 read_section {"section_key":"style"}
      call c3 think {}
      result c2 <700 n>
      result c3 ok
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
        talk = talk.gets(&[&letter.repeat(1_000), "exit code 0"]);
    }
    insta::assert_snapshot!(outcome(&talk.says("Done.").compacted(800)), @r"
    6 removed, 2124 -> 188
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
