//! `fusee bench`: jobs with a scripted model, their files, their exit codes, and what survives a kill.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, with_key};

/// A suite of three cases, each asking for a word in a file.
const SUITE: &str = r#"
test = "sh check.sh"
timeout_s = 20

[[case]]
name = "alpha"
prompt = "Write the word alpha to out.txt."
files = "alpha"
tests = ["check.sh"]
reference = "alpha-reference"

[[case]]
name = "beta"
prompt = "Write the word beta to out.txt."
files = "beta"
tests = ["check.sh"]

[[case]]
name = "gamma"
prompt = "Write the word gamma to out.txt."
files = "gamma"
tests = ["check.sh"]
"#;

fn project() -> Project {
    let project =
        Project::new().with("suite/suite.toml", SUITE).with("suite/alpha-reference/out.txt", "alpha\n");
    for word in ["alpha", "beta", "gamma"] {
        project.write(
            &format!("suite/{word}/check.sh"),
            &format!("grep -q {word} out.txt || {{ echo no {word} in $PWD; exit 1; }}\n"),
        );
    }
    project
}

fn write(path: &str, content: &str) -> Line {
    Line::call("write_file", json!({"path": path, "content": content}))
}

/// Solves alpha at once and beta at the second try; gamma never.
fn script(project: &Project) -> String {
    project.script(&[
        write("out.txt", "alpha\n").matching("word alpha").usage(100, 10),
        write("out.txt", "wrong\n").matching("word beta").usage(100, 10),
        write("check.sh", "exit 0\n").matching("word gamma").usage(100, 10),
        write("out.txt", "beta\n").matching("no beta").usage(200, 20),
        Line::text("Done.").usage(120, 5),
        Line::text("Done again.").usage(120, 5),
    ])
}

fn bench<'p>(project: &'p Project, args: &[&str]) -> Command<'p> {
    fusee(project).args(["bench"]).args(args).limit(Duration::from_secs(120))
}

fn results(project: &Project, out: &str) -> Vec<Value> {
    project
        .read(&format!("{out}/results.jsonl"))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn by_case(results: &[Value]) -> BTreeMap<String, &Value> {
    results.iter().map(|result| (result["case"].as_str().unwrap().to_owned(), result)).collect()
}

#[test]
fn a_job_writes_results_that_say_what_happened() {
    let project = project();
    let script = script(&project);
    let done = bench(&project, &["run", "suite", "-m", &script, "--out", "out", "-n", "2"]).run().exits(0);
    assert!(done.stdout.contains("passed 2 of 3: 66.7 %"), "{}", done.stdout);
    assert!(done.stdout.contains(", cost unknown\n"), "{}", done.stdout);
    let results = results(&project, "out");
    assert_eq!(results.len(), 3);
    let cases = by_case(&results);
    for (case, passed, tries, turns) in [("alpha", true, 1, 2), ("beta", true, 2, 4), ("gamma", false, 2, 3)]
    {
        let result = cases[case];
        let found = (&result["passed"], &result["tries"], &result["turns"], &result["attempt"]);
        assert_eq!(found, (&json!(passed), &json!(tries), &json!(turns), &json!(1)), "{result}");
        assert_eq!(result["reward"], json!(f64::from(u8::from(passed))));
        assert_eq!((&result["model"], &result["cause"]), (&json!(script), &Value::Null), "{result}");
        assert!(result["tokens"].as_u64().unwrap() > 0 && result["seconds"].is_number());
        // Every trial is a run of the project.
        let run = result["run"].as_str().unwrap();
        fusee(&project).args(["show", run]).run().exits(0);
        fusee(&project).args(["replay", run]).run().exits(0);
        let trial = format!("out/trials/{case}.1");
        let trajectory: Value =
            serde_json::from_str(&project.read(&format!("{trial}/trajectory.json"))).unwrap();
        assert_eq!(trajectory["schema_version"], "ATIF-v1.8");
        assert_eq!(trajectory["steps"][0]["source"], "user");
    }
    // The second try sees the output of the tests, without paths; protected tests stay as they were.
    let shown =
        fusee(&project).args(["show", cases["beta"]["run"].as_str().unwrap(), "--json"]).run().exits(0);
    let request = shown.stdout.lines().next().unwrap().to_owned();
    assert!(request.contains("The tests fail") && request.contains("no beta in ."), "{request}");
    assert_eq!(project.read("out/trials/gamma.1/patch.diff"), "");
    assert!(project.read("out/trials/alpha.1/patch.diff").contains("+alpha"));
    let preds: Value = serde_json::from_str(&project.read("out/preds.json")).unwrap();
    assert_eq!(preds["alpha"]["instance_id"], "alpha");
    let lock: Value = serde_json::from_str(&project.read("out/lock.json")).unwrap();
    assert_eq!(lock["settings"]["tries"], 2);
    let summary = project.read("out/summary.yaml");
    let names: Vec<&str> =
        summary.lines().map(|line| line.trim_start_matches(['-', ' ']).split(':').next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "dirname",
            "test_cases",
            "model",
            "edit_format",
            "commit_hash",
            "pass_rate_1",
            "pass_rate_2",
            "pass_num_1",
            "pass_num_2",
            "percent_cases_well_formed",
            "error_outputs",
            "num_malformed_responses",
            "num_with_malformed_responses",
            "user_asks",
            "lazy_comments",
            "syntax_errors",
            "indentation_errors",
            "exhausted_context_windows",
            "test_timeouts",
            "total_tests",
            "command",
            "date",
            "versions",
            "seconds_per_case",
            "total_cost",
            "prompt_tokens",
            "completion_tokens",
        ]
    );
    assert!(summary.contains("\n  total_cost: 0.0000\n"), "{summary}");
    assert!(
        summary.contains("pass_rate_1: 33.3\n  pass_rate_2: 66.7\n  pass_num_1: 1\n  pass_num_2: 2\n"),
        "{summary}"
    );
}

#[test]
fn every_trial_sees_its_working_copy_at_the_same_path() {
    let project = project();
    let script = project.script(&[
        Line::call("shell", json!({"command": "pwd; ls -a; cat /workspace/check.sh"})),
        Line::call("read_file", json!({"path": "/workspace/check.sh"})),
        Line::text("Done."),
    ]);
    bench(&project, &["run", "suite", "-m", &script, "--out", "out", "--tries", "1", "-n", "3"])
        .run()
        .exits(0);
    for result in results(&project, "out") {
        let shown = fusee(&project).args(["show", result["run"].as_str().unwrap(), "--json"]).run().exits(0);
        let events: Vec<Value> =
            shown.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let outputs: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_result").collect();
        let pwd = outputs[0]["content"].as_str().unwrap();
        assert!(pwd.starts_with("/workspace\n.\n..\ncheck.sh\ngrep -q"), "{pwd}");
        assert_eq!(outputs[1]["ok"], true, "{}", outputs[1]);
    }
}

#[test]
fn the_demo_runs_offline_and_reports_honest_failures() {
    let project = Project::new();
    let script = project.script(&[Line::text("I give up."), Line::text("I still give up.")]);
    bench(&project, &["check", "demo"]).run().exits(0);
    bench(&project, &["run", "demo", "-m", &script, "--out", "out", "--limit", "3", "--attempts", "2"])
        .run()
        .exits(0);
    let results = results(&project, "out");
    assert_eq!(results.len(), 6);
    assert!(
        results.iter().all(|result| result["passed"] == false && result["cause"].is_null()),
        "{results:#?}"
    );
    let shown = bench(&project, &["show", "out"]).run().exits(0);
    assert!(shown.stdout.contains("pass@2 0.0 %, pass^2 0.0 %"), "{}", shown.stdout);
    let listed = bench(&project, &["list"]).run().exits(0);
    assert_eq!(listed.stdout.lines().count(), 10);
}

#[test]
fn the_demo_can_be_solved() {
    let project = Project::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/demo/bus-times/.meta/example.py");
    let solution = fs::read_to_string(folder).unwrap();
    let read = Line::call("read_file", json!({ "path": "bus_times.py" }));
    let script = project.script(&[read, write("bus_times.py", &solution), Line::text("Done.")]);
    bench(&project, &["run", "demo", "-m", &script, "--out", "out", "--keywords", "bus"]).run().exits(0);
    assert_eq!(results(&project, "out")[0]["passed"], true);
}

#[test]
fn a_dry_run_names_the_trials_and_writes_nothing() {
    let project = project();
    let script = script(&project);
    let args =
        ["run", "suite", "-m", &script, "--out", "out", "--dry-run", "--attempts", "2", "--slice", "1:"];
    let done = bench(&project, &args).run().exits(0);
    assert_eq!(done.stdout, "beta.1\ngamma.1\nbeta.2\ngamma.2\n");
    assert!(!project.dir().join("out").exists());
}

#[test]
fn bad_flags_and_suites_exit_with_2() {
    let project = project().with("empty/readme.txt", "nothing");
    let script = script(&project);
    for args in [
        vec!["run", "nowhere", "-m", &script],
        vec!["run", "empty", "-m", &script],
        vec!["run", "suite", "-m", &script, "--keywords", "nothing"],
        vec!["run", "suite", "-m", &script, "--slice", "3:1"],
        vec!["run", "suite", "-m", &script, "--redo", "weather"],
        vec!["run", "suite", "-m", "script:/nowhere.jsonl", "--out", "x"],
        vec!["resume", "empty"],
        vec!["compare", "empty", "empty"],
        vec!["show", "empty"],
    ] {
        let done = bench(&project, &args).run();
        assert_eq!(done.code, Some(2), "{args:?}: {done:#?}");
    }
}

#[test]
fn problems_of_a_suite_are_located_and_the_rest_runs() {
    let project = Project::new();
    let task = "schema_version = \"1.4\"\n[verifier]\ntimeout_sec = 2\n";
    let add = |name: &str, toml: &str, test: &str| {
        project.write(&format!("suite/{name}/task.toml"), toml);
        project.write(&format!("suite/{name}/instruction.md"), "Write 42 to answer.txt.\n");
        project.write(&format!("suite/{name}/environment/Dockerfile"), "FROM debian\nWORKDIR /app\n");
        project.write(&format!("suite/{name}/tests/test.sh"), test);
        project.write(&format!("suite/{name}/solution/solve.sh"), "echo 42 > /app/answer.txt\n");
    };
    let judge = "grep -q 42 /app/answer.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n";
    add("good", task, judge);
    add("broken", "schema_version = \"1.4\"\n[verifier\n", judge);
    add("hangs", task, "sleep 60\n");
    add("nan", task, "echo NaN > /logs/verifier/reward.txt\n");
    add("reference-fails", task, &judge.replace("42", "43"));
    add("reference-hangs", task, judge);
    project.write("suite/reference-hangs/solution/solve.sh", "sleep 60\n");
    add("no-test", task, judge);
    fs::remove_file(project.dir().join("suite/no-test/tests/test.sh")).unwrap();
    let checked = bench(&project, &["check", "suite"]).run().exits(1);
    for line in [
        "ok       good\n",
        "suite/nan: verifier_broken: /logs/verifier/reward.txt: `NaN` is not a finite number\n",
        "suite/reference-fails: the reference solution fails (reward 0)",
        "suite/reference-hangs/solution/solve.sh does not end within 2 s\n",
        "suite/hangs: the tests do not end within 2 s with the reference solution\n",
        "suite/broken/task.toml:2: ",
        "suite/no-test/tests/test.sh: the file does not exist",
    ] {
        assert!(checked.stdout.contains(line), "no `{line}` in\n{}", checked.stdout);
    }
    let script = project
        .script(&[Line::call("shell", json!({"command": "echo 42 > answer.txt; pwd"})), Line::text("Done.")]);
    let done =
        bench(&project, &["run", "suite", "-m", &script, "--out", "out", "--tries", "1"]).run().exits(1);
    assert!(done.stderr.contains("suite/broken/task.toml:2: "), "{}", done.stderr);
    let results = results(&project, "out");
    let cases = by_case(&results);
    assert_eq!((&cases["good"]["passed"], &cases["good"]["cause"]), (&json!(true), &Value::Null));
    assert_eq!((&cases["nan"]["passed"], &cases["nan"]["cause"]), (&json!(false), &json!("verifier_broken")));
    let message = cases["nan"]["message"].as_str().unwrap();
    assert!(message.contains("suite/nan: /logs/verifier/reward.txt: `NaN`"), "{message}");
    assert!(done.stderr.contains(message), "{}", done.stderr);
    assert_eq!((&cases["hangs"]["passed"], &cases["hangs"]["test_timeout"]), (&json!(false), &json!(true)));
    assert_eq!(cases.len(), 5);
}

#[test]
fn failures_have_a_class_and_can_be_redone() {
    let project = project();
    let looping: Vec<Line> = (0..4).map(|n| write("out.txt", &format!("{n}\n"))).collect();
    let script = project.script(&looping);
    let args = ["run", "suite", "-m", &script, "--out", "out", "--keywords", "alpha", "--max-turns", "2"];
    bench(&project, &args).run().exits(0);
    let first = results(&project, "out");
    assert_eq!((&first[0]["cause"], &first[0]["tries"]), (&json!("budget"), &json!(1)), "{first:#?}");
    // The same command again has nothing to do; other causes neither.
    bench(&project, &args).run().exits(0);
    bench(&project, &["resume", "out", "--redo", "timeout"]).run().exits(0);
    assert_eq!(results(&project, "out"), first);
    bench(&project, &["resume", "out", "--redo", "budget,timeout"]).run().exits(0);
    let again = results(&project, "out");
    assert_eq!(again.len(), 1);
    assert_ne!(again[0]["run"], first[0]["run"]);
    // Another job does not overwrite this one.
    let done = bench(&project, &["run", "suite", "-m", &script, "--out", "out"]).run().exits(2);
    assert!(done.stderr.contains("different settings"), "{}", done.stderr);
}

#[test]
fn comparison_is_what_the_results_say() {
    let project = project();
    let (good, bad) = (script(&project), project.script(&[Line::text("No."), Line::text("No.")]));
    bench(&project, &["run", "suite", "-m", &good, "--out", "a"]).run().exits(0);
    bench(&project, &["run", "suite", "-m", &bad, "--out", "b"]).run().exits(0);
    let compared = bench(&project, &["compare", "a", "b", "--json"]).run().exits(0);
    let found: Value = serde_json::from_str(&compared.stdout).unwrap();
    let (a, b) = (results(&project, "a"), results(&project, "b"));
    let rate = |results: &[Value]| {
        results.iter().filter(|result| result["passed"] == true).count() as f64 / results.len() as f64
    };
    assert_eq!(found["cases"], 3);
    assert!(
        (found["a"].as_f64().unwrap() - rate(&a)).abs() < 1e-12
            && (found["b"].as_f64().unwrap() - rate(&b)).abs() < 1e-12
    );
    assert!((found["difference"].as_f64().unwrap() - (rate(&a) - rate(&b))).abs() < 1e-12);
    assert_eq!(found["p"], 0.5);
    let flipped: Vec<&str> =
        found["flipped"].as_array().unwrap().iter().map(|flip| flip["case"].as_str().unwrap()).collect();
    assert_eq!(flipped, ["alpha", "beta"]);
    assert_eq!((&found["flipped"][0]["a"], &found["flipped"][0]["b"]), (&json!(true), &json!(false)));
    assert!(found["low"].as_f64().unwrap() <= found["difference"].as_f64().unwrap());
    assert!(found["needed"].as_u64().unwrap() > 3);
    let text = bench(&project, &["compare", "a", "b"]).run().exits(0);
    assert!(
        text.stdout.contains("difference +66.7 points")
            && text.stdout.contains("not statistically significant"),
        "{}",
        text.stdout
    );
    // Two variants in one job.
    bench(&project, &["run", "suite", "-m", &good, "-m", &bad, "--out", "both"]).run().exits(0);
    bench(&project, &["compare", "both", "both"]).run().exits(2);
    let same = bench(&project, &["compare", "both@1", "both@2", "--json"]).run().exits(0);
    let same: Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!((&same["a"], &same["p"]), (&found["a"], &found["p"]));
    bench(&project, &["report", "a", "b"]).run().exits(0);
    let page = project.read("a/report.html");
    assert!(page.contains("<svg") && page.contains("paired cases"), "{page}");
    for outside in ["http://", "https://", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "the page refers to {outside}");
    }
}

#[test]
fn any_run_can_be_exported() {
    let project = Project::new().with("notes.txt", "old\n");
    let script = project.script(&[
        Line::call("read_file", json!({"path": "notes.txt"})).reasoning("Look first."),
        write("notes.txt", "new\n").and_call("write_file", json!("not json")),
        Line::text("Done."),
    ]);
    fusee(&project).args(["run", "Change the notes.", "-m", &script, "--run-id", "one"]).run().exits(0);
    let atif = bench(&project, &["export", "one", "--format", "atif"]).run().exits(0);
    let atif: Value = serde_json::from_str(&atif.stdout).unwrap();
    assert_eq!((&atif["schema_version"], &atif["session_id"]), (&json!("ATIF-v1.8"), &json!("one")));
    let steps = atif["steps"].as_array().unwrap();
    let sources: Vec<&str> = steps.iter().map(|step| step["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["user", "agent", "agent", "agent"]);
    assert_eq!(steps[0]["message"], "Change the notes.");
    assert_eq!(steps[1]["reasoning_content"], "Look first.");
    assert_eq!(steps[1]["tool_calls"][0]["function_name"], "read_file");
    assert_eq!(
        steps[1]["observation"]["results"][0]["source_call_id"],
        steps[1]["tool_calls"][0]["tool_call_id"]
    );
    assert_eq!(steps[3]["message"], "Done.");
    let preds =
        bench(&project, &["export", "one", "--format", "preds", "--instance", "x__y-1"]).run().exits(0);
    let preds: Value = serde_json::from_str(&preds.stdout).unwrap();
    let patch = preds["x__y-1"]["model_patch"].as_str().unwrap();
    assert!(patch.contains("--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-old\n+new\n"), "{patch}");
    assert_eq!(preds["x__y-1"]["model_name_or_path"], json!(script));
}

#[test]
fn an_interrupt_stops_the_job_and_resume_completes_it() {
    let project = project();
    let script = project
        .script(&[write("out.txt", "alpha beta gamma\n").delay_ms(300), Line::text("Done.").delay_ms(300)]);
    let mut running =
        bench(&project, &["run", "suite", "-m", &script, "--out", "out", "-n", "1", "--json"]).start();
    running.wait_for_stdout("result", |out| out.lines().count() == 1);
    running.signal(Signal::INT);
    let stopped = running.wait();
    assert_eq!(stopped.code, Some(130), "{stopped:#?}");
    assert!(stopped.stderr.contains("`fusee bench resume out` continues"), "{}", stopped.stderr);
    let done = bench(&project, &["resume", "out"]).run().exits(0);
    assert!(done.stdout.contains("passed 3 of 3"), "{}", done.stdout);
    is_complete(&project, "out", 3);
}

/// Every trial has one result and one run that ended, and nothing was requested twice.
fn is_complete(project: &Project, out: &str, trials: usize) {
    let results = results(project, out);
    let mut runs: Vec<&str> = results
        .iter()
        .flat_map(|result| result["runs"].as_array().unwrap())
        .map(|run| run.as_str().unwrap())
        .collect();
    runs.sort_unstable();
    let count = runs.len();
    runs.dedup();
    assert_eq!((results.len(), runs.len()), (trials, count), "{results:#?}");
    let listed = fusee(project).args(["runs", "list", "--all", "--json"]).run().exits(0);
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let ended: Vec<&str> = listed
        .iter()
        .filter(|run| run["status"] == "completed")
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    for run in &runs {
        assert!(ended.contains(run), "{run} has not ended: {listed:#?}");
    }
    assert_eq!(ended.len(), runs.len(), "more runs than trials: {listed:#?}");
    for result in &results {
        let case = result["case"].as_str().unwrap();
        assert!(
            project.dir().join(format!("{out}/trials/{case}.{}/trajectory.json", result["attempt"])).exists()
        );
    }
}

/// The job that is killed.
fn start<'p>(project: &'p Project, script: &str) -> Command<'p> {
    bench(project, &["run", "suite", "-m", script, "--out", "out", "-n", "2"])
}

#[test]
fn a_killed_job_is_completed_by_resume_without_repeating_a_trial() {
    let killer = KillInjector::build();
    let undisturbed = project();
    let first = script(&undisturbed);
    let (command, trace) = killer.watch(start(&undisturbed, &first));
    command.run().exits(0);
    is_complete(&undisturbed, "out", 3);
    let writes = trace.count();
    assert!(writes >= 12, "only {writes} journal writes were seen: {}", trace.letters());
    // Every third write, each at another moment; the sweep over all of them is the one of single runs.
    for (number, at) in (1..=writes).step_by(3).enumerate() {
        let when = [KillTime::After, KillTime::Before, KillTime::Torn][number % 3];
        let project = project();
        let script = script(&project);
        let killed = killer.kill_at(start(&project, &script), at, when).run();
        let resumed = match project.dir().join("out/lock.json").exists() {
            true => bench(&project, &["resume", "out"]).run(),
            false => start(&project, &script).run(),
        };
        assert_eq!(resumed.code, Some(0), "killed {when:?} write {at}: {killed:#?}\n{resumed:#?}");
        let cases: Vec<(String, bool, u64)> = results(&project, "out")
            .iter()
            .map(|result| {
                let case = result["case"].as_str().unwrap().to_owned();
                (case, result["passed"].as_bool().unwrap(), result["tries"].as_u64().unwrap())
            })
            .collect();
        let expected = [("alpha", true, 1), ("beta", true, 2), ("gamma", false, 2)];
        let expected = expected.map(|(case, passed, tries)| (case.to_owned(), passed, tries));
        assert_eq!(cases, expected, "killed {when:?} write {at}");
        is_complete(&project, "out", 3);
    }
}

#[test]
fn trials_wait_for_their_models_at_the_same_time() {
    const TRIALS: usize = 40;
    let project = Project::new().with("suite/files/note.txt", "a note\n");
    let cases: String = (0..TRIALS)
        .map(|n| format!("[[case]]\nname = \"c{n}\"\nprompt = \"Look.\"\nfiles = \"files\"\n"))
        .collect();
    project.write("suite/suite.toml", &format!("test = \"true\"\n{cases}"));
    let server = RendezvousServer::start(TRIALS);
    let args = ["run", "suite", "-m", "openai:scripted", "--api", "chat", "--out", "out", "-n", "40"];
    with_key(bench(&project, &args).args(["--base-url", &server.base_url])).run().exits(0);
    let results = results(&project, "out");
    assert_eq!(results.len(), TRIALS);
    assert!(results.iter().all(|result| result["passed"] == true));
}

/// A model server that answers no request before this many wait for an answer.
struct RendezvousServer {
    base_url: String,
}

impl RendezvousServer {
    fn start(requests: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let all = Arc::new(Barrier::new(requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                std::thread::spawn(move || answer(stream, &all));
            }
        });
        Self { base_url }
    }
}

/// Reads one request and answers it: a model request when all are there, anything else at once.
fn answer(stream: TcpStream, all: &Barrier) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let reply = if head.starts_with("POST") {
        all.wait();
        let text = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Done."}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {text}\n\ndata: {end}\n\ndata: [DONE]\n\n"
        )
    } else {
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
    };
    let mut stream = stream;
    stream.write_all(reply.as_bytes()).unwrap();
}
