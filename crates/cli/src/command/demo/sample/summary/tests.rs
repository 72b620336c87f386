//! The complete output.

use super::*;

const BEFORE: TestResults = TestResults { pass: false, ran: 10, failed: 3 };
const AFTER: TestResults = TestResults { pass: true, ran: 10, failed: 0 };
const WORK: RunTotals = RunTotals { turns: 8, calls: 13, tokens: 35_312, wall: Duration::from_millis(6_940) };

fn change() -> FileDiff {
    FileDiff {
        path: "a.py".into(),
        added: 1,
        removed: 1,
        diff: "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n".into(),
    }
}

#[test]
fn a_demo_with_the_recording_says_what_was_real() {
    let changes = [change()];
    let summary = DemoSummary {
        own_model: None,
        before: BEFORE,
        after: AFTER,
        work: WORK,
        killed: None,
        changes: &changes,
    };
    insta::assert_snapshot!(paint(&summary.lines(), false), @r"
    ── what happened ───────────────────────────────────────────────────────────────
      tests    3 of 10 failed at first, all 10 pass now
      model    a recording, played from a file; everything else is real:
               tools, edits, test runs and journal
      work     8 turns · 13 tool calls · 35.3k tokens · 6.9 s
      changed  a.py +1 -1

        --- a/a.py
        +++ b/a.py
        @@ -1 +1 @@
        -x
        +y
    ");
}

#[test]
fn a_model_that_changed_nothing_is_told_as_it_is() {
    let summary = DemoSummary {
        own_model: Some("ollama:x"),
        before: BEFORE,
        after: BEFORE,
        work: WORK,
        killed: None,
        changes: &[],
    };
    insta::assert_snapshot!(paint(&summary.lines(), false), @r"
    ── what happened ───────────────────────────────────────────────────────────────
      tests    3 of 10 failed at first, 3 of 10 fail now
      model    ollama:x
      work     8 turns · 13 tool calls · 35.3k tokens · 6.9 s
      changed  nothing
    ");
}

#[test]
fn a_kill_is_told_with_what_the_journal_gave_back() {
    let killed = KillReport { command: Some("make".into()), replies: 4, results: 5, model_informed: true };
    let summary = DemoSummary {
        own_model: None,
        before: BEFORE,
        after: AFTER,
        work: WORK,
        killed: Some(killed),
        changes: &[],
    };
    insta::assert_snapshot!(paint(&summary.lines(), false), @r"
    ── what happened ───────────────────────────────────────────────────────────────
      tests    3 of 10 failed at first, all 10 pass now
      model    a recording, played from a file; everything else is real:
               tools, edits, test runs and journal
      work     8 turns · 13 tool calls · 35.3k tokens · 6.9 s
      killed   with kill -9, while `make` ran
      resumed  4 replies and 5 results were read back from the journal,
               none was requested or run again
               the model was told which command was interrupted, and decided what to do
      changed  nothing
    ");
}

#[test]
fn the_next_commands_name_the_kept_project() {
    let gone = paint(&NextCommands { fusee: "fusee", run: "demo", kept: None }.lines(), false);
    let kept =
        paint(&NextCommands { fusee: "fusee", run: "demo", kept: Some(Path::new("/tmp/x")) }.lines(), false);
    insta::assert_snapshot!(format!("{gone}\n{kept}"), @r"
    ── next ────────────────────────────────────────────────────────────────────────
      The same with your own model:
        fusee demo -m ollama:MODEL          local Ollama; also llama.cpp:, lmstudio:, vllm:
        fusee demo -m openai:MODEL          with OPENAI_API_KEY set
        fusee demo -m MODEL --base-url URL  any server that speaks chat completions
      In your own project:
        fusee run -C DIR -m MODEL 'your task'
      More:
        fusee demo --kill  kill the run with kill -9 and resume it
        fusee demo --keep  keep the project, to inspect with show and replay

    ── next ────────────────────────────────────────────────────────────────────────
      The same with your own model:
        fusee demo -m ollama:MODEL          local Ollama; also llama.cpp:, lmstudio:, vllm:
        fusee demo -m openai:MODEL          with OPENAI_API_KEY set
        fusee demo -m MODEL --base-url URL  any server that speaks chat completions
      In your own project:
        fusee run -C DIR -m MODEL 'your task'
      The project and its journal are kept in /tmp/x:
        fusee show -C /tmp/x demo    what was done, step by step
        fusee replay -C /tmp/x demo  replayed from the journal: no model, no tools
    ");
}

#[test]
fn colours_are_around_the_text_and_change_nothing_else() {
    let changes = [change()];
    let summary = DemoSummary {
        own_model: None,
        before: BEFORE,
        after: AFTER,
        work: WORK,
        killed: None,
        changes: &changes,
    };
    let coloured = paint(&summary.lines(), true);
    let mut plain = String::new();
    for (at, part) in coloured.split('\x1b').enumerate() {
        plain.push_str(if at == 0 { part } else { part.split_once('m').map_or("", |(_, text)| text) });
    }
    assert!(coloured.contains("\x1b[38;5;28m+y\x1b[0m"));
    assert_eq!(plain, paint(&summary.lines(), false));
}

#[test]
fn a_long_diff_is_cut_and_says_so() {
    let diff: String = (0..100).map(|n| format!("+{n}\n")).collect();
    let change = FileDiff { path: "a".into(), added: 100, removed: 0, diff };
    let lines = diff_lines(&[change]);
    assert_eq!(lines.len(), DIFF_LINES + 1);
    assert_eq!(lines[DIFF_LINES].paint(false), "    … and 20 more lines");
}

#[test]
fn what_a_model_wrote_cannot_steer_the_terminal() {
    let change = FileDiff { path: "a".into(), added: 1, removed: 0, diff: "+\x1b[2Jgone\n".into() };
    assert!(!paint(&diff_lines(&[change]), true).contains("\x1b[2J"));
}
