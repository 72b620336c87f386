//! Background jobs: started, polled, killed, and ended with their run.

use std::sync::Arc;

use fusee_tools::{ToolOutput, Workspace};
use serde_json::json;

use crate::stage::{NONE, Stage, Test, call, eventually, processes_with};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("a_job_is_looked_at_until_it_ends", a_job_is_looked_at_until_it_ends),
    ("a_job_is_ended_on_request", a_job_is_ended_on_request),
    ("a_job_that_fails_at_once_is_told_at_once", a_job_that_fails_at_once_is_told_at_once),
    ("jobs_end_with_their_workspace", jobs_end_with_their_workspace),
    ("jobs_are_bounded", jobs_are_bounded),
    ("a_job_outlives_the_cancelling_of_its_call", a_job_outlives_the_cancelling_of_its_call),
];

fn name_in(output: &ToolOutput) -> String {
    let name = output.content.strip_prefix("Started as ").and_then(|rest| rest.split('.').next());
    name.unwrap_or_else(|| panic!("{}", output.content)).to_owned()
}

fn a_job_is_looked_at_until_it_ends(stage: &Stage) {
    stage.runtime.block_on(async {
        let command = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 4";
        let job = name_in(&stage.call("shell", json!({"command": command, "background": true})).await);
        let poll = || stage.call("shell_poll", json!({ "job": job }));
        assert_eq!(poll().await, ToolOutput::done(format!("one\n[{job} is running]")));
        assert_eq!(poll().await, ToolOutput::done(format!("(no new output)\n[{job} is running]")));
        std::fs::write(stage.path("go"), "").unwrap();
        let mut last = poll().await;
        while last.content.ends_with("is running]") {
            assert!(last.content.starts_with("two\n"), "{}", last.content);
            last = poll().await;
        }
        assert_eq!((last.ok, last.exit_code), (false, Some(4)));
        assert!(last.content.ends_with("[exit code 4]"));
        // The result is still available.
        assert_eq!(poll().await.content, "(no output)\n[exit code 4]");
    });
}

fn a_job_is_ended_on_request(stage: &Stage) {
    let mark = stage.mark("asked");
    stage.runtime.block_on(async {
        let command = format!("echo begun; setsid sleep {mark}");
        let job = name_in(&stage.call("shell", json!({"command": command, "background": true})).await);
        let near = stage.call("shell_kill", json!({"job": &job[..job.len() - 1]})).await;
        assert_eq!(near.content, format!("There is no job `{}`. Did you mean {job}?", &job[..job.len() - 1]));
        let killed = stage.call("shell_kill", json!({ "job": job })).await;
        assert!(killed.ok);
        assert_eq!(
            killed.content,
            format!("begun\n[cancelled; it was ended with everything it had started]\n[{job} (`{command}`) is over]")
        );
        assert_eq!(processes_with(&mark), NONE);
    });
}

fn a_job_that_fails_at_once_is_told_at_once(stage: &Stage) {
    let output = stage.run(json!({"command": "no_such_server --port 80", "background": true}));
    assert_eq!(output.exit_code, Some(127));
}

fn jobs_end_with_their_workspace(stage: &Stage) {
    let mark = stage.mark("workspace");
    stage.runtime.block_on(async {
        let mut context = stage.context.clone();
        context.workspace = Arc::new(Workspace::open(stage.context.workspace.root()).unwrap());
        let arguments = json!({"command": format!("setsid sleep {mark}"), "background": true});
        let job = name_in(&call(&stage.toolbox, "shell", arguments, &context).await);
        assert!(!processes_with(&mark).is_empty());
        let elsewhere = stage.call("shell_poll", json!({ "job": job })).await;
        assert_eq!(
            elsewhere.content,
            format!("There is no job `{job}`: none runs. Jobs end when a run is interrupted or over.")
        );
        drop(context);
        while !processes_with(&mark).is_empty() {
            tokio::task::yield_now().await;
        }
    });
}

fn jobs_are_bounded(stage: &Stage) {
    stage.runtime.block_on(async {
        let mut context = stage.context.clone();
        for number in 0..16 {
            context.call_id = format!("call_{number}");
            let arguments = json!({"command": "sleep 777003", "background": true});
            name_in(&call(&stage.toolbox, "shell", arguments, &context).await);
        }
        context.call_id = "one_more".to_owned();
        let refused =
            call(&stage.toolbox, "shell", json!({"command": "sleep 777003", "background": true}), &context)
                .await;
        assert_eq!(refused.content, "There are 16 jobs running already. End one with shell_kill first.");
    });
}

fn a_job_outlives_the_cancelling_of_its_call(stage: &Stage) {
    let mark = stage.mark("outlives");
    let output = stage.run(json!({"command": format!("sleep {mark}"), "background": true}));
    let job = name_in(&output);
    stage.context.cancel.cancel();
    stage.runtime.block_on(async {
        let mut context = stage.context.clone();
        context.cancel = tokio_util::sync::CancellationToken::new();
        let poll = call(&stage.toolbox, "shell_poll", json!({ "job": job }), &context).await;
        assert!(poll.content.ends_with("is running]"), "{}", poll.content);
        call(&stage.toolbox, "shell_kill", json!({ "job": job }), &context).await;
    });
    eventually(|| processes_with(&mark).is_empty());
}
