//! The sent history: calls stay with their results, limits are respected, and the prefix is stable between
//! moves.

use fusee_model::{Reasoning, ToolCall, Wire};

use super::*;

fn sending(settings: HistorySettings) -> HistoryWindow {
    HistoryWindow::new(Wire::Chat.into(), "system".to_owned(), Vec::new(), settings)
}

fn turn(sending: &mut HistoryWindow, n: usize, result: &str) {
    let call = ToolCall { id: format!("c{n}"), name: "read_file".to_owned(), arguments: "{}".to_owned() };
    let reasoning = Some(Reasoning { text: format!("thought {n}"), opaque: Vec::new() });
    sending.push(Message::Assistant { text: String::new(), reasoning, tool_calls: vec![call] });
    sending.push(Message::Tool {
        call_id: format!("c{n}"),
        name: "read_file".to_owned(),
        content: result.to_owned(),
        ok: true,
        images: vec![],
    });
}

fn outline(sending: &HistoryWindow) -> String {
    let shape = |message: &Message| match message {
        Message::User { text, .. } => text.clone(),
        Message::Assistant { tool_calls, reasoning, .. } => {
            let thought = if reasoning.is_some() { "!" } else { "" };
            format!("{}{thought}?", tool_calls[0].id)
        }
        Message::Tool { call_id, content, .. } => {
            format!("{call_id}={}", content.lines().next().unwrap_or_default())
        }
    };
    sending.request().messages().iter().map(shape).collect::<Vec<_>>().join(" ")
}

fn started(settings: HistorySettings) -> HistoryWindow {
    let mut sending = sending(settings);
    sending.push(Message::user("do".to_owned()));
    sending
}

#[test]
fn without_knobs_everything_is_sent() {
    let mut sending = started(HistorySettings::default());
    turn(&mut sending, 1, "text");
    assert!(std::ptr::eq(sending.request(), &sending.whole));
    assert_eq!(sending.moved(), 0);
}

#[test]
fn a_tail_moves_by_half_its_size_and_keeps_pairs_and_the_first_message() {
    let settings = HistorySettings { mode: HistoryMode::Tail, max_messages: 6, ..HistorySettings::default() };
    let mut sending = started(settings);
    let mut seen = Vec::new();
    for n in 1..=7 {
        turn(&mut sending, n, "r");
        seen.push(outline(&sending));
    }
    assert_eq!(
        seen,
        [
            "do c1!? c1=r",
            "do c1!? c1=r c2!? c2=r",
            "do c3!? c3=r",
            "do c3!? c3=r c4!? c4=r",
            "do c3!? c3=r c4!? c4=r c5!? c5=r",
            "do c5!? c5=r c6!? c6=r",
            "do c5!? c5=r c6!? c6=r c7!? c7=r",
        ]
    );
    assert_eq!(sending.moved(), 2);
    assert_eq!(sending.messages().len(), 15, "what is stored stays whole");
    let mut without_first = started(HistorySettings { keep_first: false, ..settings });
    (1..=3).for_each(|n| turn(&mut without_first, n, "r"));
    assert_eq!(outline(&without_first), "c3!? c3=r");
}

#[test]
fn older_results_are_cut_and_the_newest_stay_whole() {
    let settings =
        HistorySettings { tool_truncate_chars: 3, tool_truncate_keep_last: 2, ..HistorySettings::default() };
    let mut sending = started(settings);
    for n in 1..=4 {
        turn(&mut sending, n, "abcdefg");
    }
    assert_eq!(outline(&sending), "do c1!? c1=abc c2!? c2=abc c3!? c3=abcdefg c4!? c4=abcdefg");
    assert_eq!(sending.moved(), 2);
    let mut all = started(HistorySettings { tool_truncate_keep_last: 0, ..settings });
    turn(&mut all, 1, "ééééé");
    assert_eq!(outline(&all), "do c1!? c1=ééé");
    assert_eq!(all.moved(), 0, "nothing that was sent has changed");
}

#[test]
fn thoughts_are_left_out_where_asked() {
    let mut sending = started(HistorySettings { strip_thinking: true, ..HistorySettings::default() });
    turn(&mut sending, 1, "r");
    assert_eq!(outline(&sending), "do c1? c1=r");
    let reasoned = |message: &Message| matches!(message, Message::Assistant { reasoning: Some(_), .. });
    assert!(sending.messages().iter().any(reasoned), "what is stored stays whole");
}

#[test]
fn no_window_ever_parts_a_call_from_its_results() {
    for most in 1..12 {
        for first in [true, false] {
            let settings = HistorySettings {
                mode: HistoryMode::Tail,
                max_messages: most,
                keep_first: first,
                ..HistorySettings::default()
            };
            let mut sending = started(settings);
            for n in 0..40 {
                turn(&mut sending, n, "r");
                let mut open: Vec<String> = Vec::new();
                for message in sending.request().messages() {
                    match message {
                        Message::Assistant { tool_calls, .. } => {
                            assert!(open.is_empty());
                            open = tool_calls.iter().map(|call| call.id.clone()).collect();
                        }
                        Message::Tool { call_id, .. } => {
                            assert!(
                                open.contains(call_id),
                                "a result without its call: {}",
                                outline(&sending)
                            );
                            open.retain(|id| id != call_id);
                        }
                        Message::User { .. } => {}
                    }
                }
                assert!(open.is_empty(), "a call without its result: {}", outline(&sending));
            }
        }
    }
}
