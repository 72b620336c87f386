//! Commands of an embedded agent run in the sandbox. The fork server starts before any thread.
#![expect(clippy::expect_used, reason = "a test panics when it fails")]

use fusee::{Agent, Event, ForkServer, SandboxMode, SandboxOptions};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let fork_server = fusee::init().expect("a fork server");
    let sandboxed = fork_server.clone();
    let trials = vec![
        Trial::test("a_command_runs_in_the_sandbox", move || in_the_sandbox(sandboxed)),
        Trial::test("without_a_fork_server_commands_are_refused", without_fork_server),
        Trial::test("commands_get_the_display_of_the_agent", {
            let fork_server = fork_server.clone();
            move || with_a_display(fork_server)
        }),
        Trial::test("a_sandbox_that_is_off_is_what_the_events_say", move || off(fork_server)),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// The start event's sandbox, whether the command's call succeeded, and its output.
fn run_command(configure: impl FnOnce(fusee::AgentBuilder) -> fusee::AgentBuilder) -> (String, bool, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("script.jsonl");
    let lines = "{\"tool_calls\":[{\"name\":\"shell\",\"arguments\":{\"command\":\"echo out $DISPLAY; id -u > made.txt\"}}]}\n{\"text\":\"Done.\"}\n";
    std::fs::write(&script, lines).expect("a script");
    let agent = Agent::builder(format!("script:{}", script.display())).workspace(directory.path());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let agent = configure(agent).build().expect("an agent");
        let mut run = agent.start("run it").await.expect("it starts");
        let (mut sandbox, mut result) = (String::new(), None);
        while let Some(event) = run.next().await {
            match event {
                Event::TaskStarted(started) => sandbox = started.sandbox,
                Event::ToolResult(called) => result = Some((called.ok, called.content)),
                _ => {}
            }
        }
        let (ok, content) = result.expect("a result");
        assert_eq!(ok, directory.path().join("made.txt").exists(), "{content}");
        (sandbox, ok, content)
    })
}

fn in_the_sandbox(fork_server: ForkServer) -> Result<(), libtest_mimic::Failed> {
    let variables = [("PATH".into(), "/usr/bin:/bin".into())];
    let (sandbox, ok, content) = run_command(|agent| agent.commands(fork_server, variables));
    if sandbox == "none" {
        // This system has no sandbox; then the command must not have run.
        assert!(!ok, "{content}");
        return Ok(());
    }
    assert!(sandbox.starts_with("namespaces") || sandbox.starts_with("landlock"), "{sandbox}");
    assert!(ok && content.contains("out"), "{content}");
    Ok(())
}

fn without_fork_server() -> Result<(), libtest_mimic::Failed> {
    let (sandbox, ok, _) = run_command(|agent| agent);
    assert_eq!((sandbox.as_str(), ok), ("none", false));
    Ok(())
}

fn off(fork_server: ForkServer) -> Result<(), libtest_mimic::Failed> {
    let (sandbox, ok, content) = run_command(|agent| {
        let variables = [("PATH".into(), "/usr/bin:/bin".into())];
        agent.commands(fork_server, variables).sandbox(SandboxMode::Off, SandboxOptions::default())
    });
    assert_eq!((sandbox.as_str(), ok), ("off", true), "{content}");
    Ok(())
}

fn with_a_display(fork_server: ForkServer) -> Result<(), libtest_mimic::Failed> {
    let (_, ok, content) = run_command(|agent| {
        let variables = [("PATH".into(), "/usr/bin:/bin".into())];
        let agent = agent.commands(fork_server, variables).computer(":4000000");
        agent.sandbox(SandboxMode::Off, SandboxOptions::default())
    });
    assert!(ok && content.starts_with("out :4000000\n"), "{content}");
    Ok(())
}
