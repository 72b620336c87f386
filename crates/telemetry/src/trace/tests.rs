//! A run's events as spans.

use fusee::journal::event::{TaskStarted, TurnType};

use super::*;

fn record(task: &str, ts_ms: i64, event: Event) -> EventRecord {
    let run: RunId = "r".parse().unwrap();
    EventRecord { seq: ts_ms.cast_unsigned(), ts_ms, run, task: Branch::from(task), event }
}

fn started(parent: Option<&str>) -> Event {
    Event::TaskStarted(TaskStarted {
        submission_id: "r".to_owned(),
        turn_type: TurnType::User,
        timestamp: 0,
        request: "Go.".to_owned(),
        model: "mistral:large".to_owned(),
        sandbox: "off".to_owned(),
        parent: parent.map(str::to_owned),
        continues: None,
    })
}

fn turn(turn_index: u32) -> Event {
    Event::TurnStart {
        turn_index,
        turn_id: format!("t{turn_index}"),
        input_tokens: 100,
        max_turns: None,
        max_input_tokens: None,
    }
}

fn turn_end(turn_index: u32) -> Event {
    Event::TurnComplete {
        turn_index,
        turn_id: format!("t{turn_index}"),
        output_tokens: 7,
        cached_tokens: 3,
        tool_calls: 1,
        duration_ms: 0,
        wait_ms: Some(2),
    }
}

fn end(status: TaskStatus) -> Event {
    Event::TaskComplete(TaskComplete {
        submission_id: "r".to_owned(),
        total_turns: 1,
        total_tokens: 107,
        cached_tokens: 0,
        duration_ms: 0,
        status,
        answer: String::new(),
        cost_usd: None,
        error: None,
    })
}

/// One line per span: indentation by parent, name, times, attributes.
fn drawn(spans: &[TraceSpan]) -> String {
    let depth = |span: &TraceSpan| {
        let (mut depth, mut parent) = (0, span.parent);
        while let Some(above) = parent.and_then(|id| spans.iter().find(|other| other.id == id)) {
            (depth, parent) = (depth + 1, above.parent);
        }
        depth
    };
    let line = |span: &TraceSpan| {
        let texts: Vec<String> = span
            .attributes
            .iter()
            .map(|(name, value)| match value {
                AttributeValue::Text(text) => format!("{name}={text}"),
                AttributeValue::Whole(number) => format!("{name}={number}"),
                other => format!("{name}={other:?}"),
            })
            .collect();
        let (start, end) = (span.start_ms, span.end_ms);
        format!("{}{} {start}-{end} {}\n", "  ".repeat(depth(span)), span.name, texts.join(" "))
    };
    spans.iter().map(line).collect()
}

fn run_of_one_call() -> Vec<EventRecord> {
    let call = Event::ToolCall {
        call_id: "c1".to_owned(),
        name: "shell".to_owned(),
        arguments: json!({"command": "true"}),
    };
    let result = Event::ToolResult(ToolResult {
        call_id: "c1".to_owned(),
        ok: false,
        content: "no".to_owned(),
        truncated: false,
        duration_ms: 4,
        exit_code: Some(1),
        fate: None,
    });
    let retry = Event::Retry { attempt: 1, after_ms: 5, reason: "busy".to_owned() };
    vec![
        record("main", 1, started(None)),
        record("main", 2, turn(0)),
        record("main", 3, retry),
        record("main", 10, call),
        record("main", 14, result),
        record("main", 15, turn_end(0)),
        record("main", 20, end(TaskStatus::Completed)),
    ]
}

fn spans(trace: &mut RunTrace, events: &[EventRecord]) -> Vec<TraceSpan> {
    events.iter().flat_map(|record| trace.apply(record)).collect()
}

fn traced() -> TracedRun {
    TracedRun {
        run: "r".to_owned(),
        workflow: Some("release".to_owned()),
        base_url: Some("https://api.example:8443/v1".to_owned()),
    }
}

#[test]
fn a_run_is_a_tree_of_spans_with_the_names_of_the_conventions() {
    let mut trace = RunTrace::new(traced(), TraceContext::of_run("r"), false);
    let spans = spans(&mut trace, &run_of_one_call());
    assert_eq!(
        drawn(&spans),
        "    execute_tool shell 10-14 gen_ai.operation.name=execute_tool gen_ai.tool.name=shell \
         gen_ai.tool.type=function gen_ai.tool.call.id=c1 error.type=tool_error\n\
         \x20   chat large 2-10 gen_ai.operation.name=chat gen_ai.provider.name=mistral_ai gen_ai.request.model=large \
         server.address=api.example server.port=8443 gen_ai.conversation.id=r gen_ai.usage.input_tokens=100 \
         gen_ai.usage.output_tokens=7 gen_ai.usage.cache_read.input_tokens=3 \
         gen_ai.response.finish_reasons=Texts([\"tool_call\"]) gen_ai.response.time_to_first_chunk=Number(0.002)\n\
         \x20 invoke_agent fusee 1-20 gen_ai.operation.name=invoke_agent gen_ai.agent.name=fusee \
         gen_ai.conversation.id=r gen_ai.provider.name=mistral_ai gen_ai.request.model=large\n\
         invoke_workflow release 1-20 gen_ai.operation.name=invoke_workflow gen_ai.workflow.name=release\n"
    );
    let chat = spans.iter().find(|span| span.name == "chat large").unwrap();
    assert_eq!(chat.events.len(), 1, "one span for all retries");
}

#[test]
fn a_resumed_run_continues_its_trace() {
    let events = run_of_one_call();
    let whole = spans(&mut RunTrace::new(traced(), TraceContext::of_run("r"), false), &events);
    // Another process reads the journal from the beginning, as a resume does, and takes over in the middle.
    let mut resumed = RunTrace::new(traced(), TraceContext::of_run("r"), false);
    spans(&mut resumed, &events[..4]);
    assert_eq!(spans(&mut resumed, &events[4..]), whole);
}

#[test]
fn content_is_recorded_only_on_request_and_is_bounded() {
    let events = run_of_one_call();
    let quiet = spans(&mut RunTrace::new(traced(), TraceContext::of_run("r"), false), &events);
    assert!(!drawn(&quiet).contains("Go."));
    let output = spans(&mut RunTrace::new(traced(), TraceContext::of_run("r"), true), &events);
    let chat = drawn(&output);
    assert!(
        chat.contains(r#"gen_ai.input.messages=[{"role":"user","parts":[{"type":"text","content":"Go."}]}]"#),
        "{chat}"
    );
    assert!(chat.contains(r#"gen_ai.tool.call.arguments={"command":"true"}"#), "{chat}");
    let reply = r#"gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"shell","arguments":{"command":"true"}}],"finish_reason":"tool_call"}]"#;
    assert!(chat.contains(reply), "{chat}");
    assert!(bounded(&"x".repeat(100_000)).len() < 40_000);
}

#[test]
fn a_subtask_is_below_its_parent_and_the_trace_below_the_one_that_was_passed_in() {
    let context = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
    let run = TracedRun { run: "r".to_owned(), ..TracedRun::default() };
    let events = [
        record("main", 1, started(None)),
        record("main/1", 2, started(Some("main"))),
        record("main/1", 3, end(TaskStatus::Failed)),
        record("main", 4, end(TaskStatus::Cancelled)),
    ];
    let spans = spans(&mut RunTrace::new(run, context, false), &events);
    assert_eq!((spans[0].parent, spans[1].parent), (Some(spans[1].id), context.parent));
    assert_eq!((spans[0].trace, spans[1].trace), (context.trace, context.trace));
    assert_eq!((spans[0].error.as_deref(), spans[1].error.as_deref()), (Some("failed"), Some("cancelled")));
}
