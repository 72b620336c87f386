//! Naming runs: short ids, `last`, and the words that other tools use.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::support::{fusee, run};

fn with_runs(names: &[&str]) -> Project {
    let project = Project::new();
    for name in names {
        let model = project.script(&[Line::text(&format!("Answer of {name}."))]);
        fusee(&project).args(["run", name, "--run-id", name, "--model", &model]).run().exits(0);
    }
    project
}

#[test]
fn the_newest_run_is_the_default_and_last_counts_back() {
    let project = with_runs(&["first", "second", "third"]);
    let shows = |arguments: &[&str], answer: &str| {
        let shown = fusee(&project).args(arguments.iter().copied()).run().exits(0).stdout;
        assert!(shown.contains(answer), "{arguments:?}: {shown}");
    };
    shows(&["show"], "Answer of third.");
    shows(&["show", "last"], "Answer of third.");
    shows(&["show", "last~1"], "Answer of second.");
    shows(&["replay"], "Answer of third.");
    shows(&["replay", "last~2"], "Answer of first.");
    shows(&["resume", "last"], "Answer of third.");
    shows(&["show", "sec"], "Answer of second.");
    shows(&["runs", "undo", "--dry-run"], "");
    let missing = fusee(&project).args(["show", "last~3"]).run().exits(2);
    assert!(missing.stderr.contains("no run `last~3`: there are 3 runs here"), "{}", missing.stderr);
}

#[test]
fn lists_show_ids_as_short_as_they_can_be() {
    let ids = ["01a1e34b-0c59-77d6-bf8a-ee7fa834ccf2", "01a1e34b-0c5a-77d6-bf8a-ee7fa834ccf2"];
    let project = with_runs(&ids);
    let listed = fusee(&project).args(["runs"]).run().exits(0).stdout;
    let names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["01a1e34b-0c5a", "01a1e34b-0c59"]);
    for name in names {
        fusee(&project).args(["show", name]).run().exits(0);
    }
}

#[test]
fn words_of_other_tools_point_to_the_right_command() {
    let project = Project::new();
    for (word, here) in
        [("undo", "fusee runs undo"), ("log", "fusee show --log"), ("list", "fusee runs"), ("chat", "fusee")]
    {
        let said = fusee(&project).args([word]).run().exits(2).stderr;
        assert!(said.contains(&format!("tip: use `{here}`")), "{said}");
    }
}

#[test]
fn runs_from_before_the_directory_became_a_project_are_found_and_moved() {
    let project = Project::new();
    std::fs::remove_dir_all(project.dir().join(".fusee")).ok();
    std::fs::remove_dir_all(project.dir().join(".git")).ok();
    let model = project.script(&[Line::text("Done.")]);
    fusee(&project).args(["run", "x", "--run-id", "early", "--model", &model]).run().exits(0);
    std::fs::create_dir(project.dir().join(".fusee")).unwrap();
    // Until they are moved, they and the new ones are in one journal.
    let model = project.script(&[Line::text("Done.")]);
    fusee(&project).args(["run", "y", "--run-id", "late", "--model", &model]).run().exits(0);
    let both = |listed: &str| listed.contains("early") && listed.contains("late");
    let listed = fusee(&project).args(["runs"]).run().exits(0);
    assert!(both(&listed.stdout), "{}", listed.stdout);
    assert!(listed.stderr.contains("`fusee runs move` moves them here"), "{}", listed.stderr);
    fusee(&project).args(["show", "early"]).run().exits(0);
    assert!(!project.dir().join(".fusee/journal.db").exists());
    fusee(&project).args(["runs", "move"]).run().exits(0);
    assert!(project.dir().join(".fusee/journal.db").exists());
    let listed = fusee(&project).args(["runs"]).run().exits(0);
    assert!(both(&listed.stdout) && listed.stderr.is_empty(), "{}{}", listed.stdout, listed.stderr);
    fusee(&project).args(["resume", "early"]).run().exits(0);
    fusee(&project).args(["runs", "move"]).run().exits(2);
}

#[test]
fn the_journal_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = with_runs(&["first"]);
    let modes = || {
        let files = std::fs::read_dir(project.dir().join(".fusee")).unwrap().flatten();
        let journal = files.filter(|file| file.file_name().to_string_lossy().starts_with("journal.db"));
        journal.map(|file| file.metadata().unwrap().permissions().mode() & 0o777).collect::<Vec<_>>()
    };
    assert!(modes().iter().all(|mode| *mode == 0o600), "{:?}", modes());
    // One that an earlier version made is closed by the next run.
    let journal = project.dir().join(".fusee/journal.db");
    std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(0o644)).unwrap();
    let command = Line::call("shell", json!({"command": "true"}));
    let model = project.script(&[command, Line::text("Done.")]);
    fusee(&project).args(["run", "x", "--model", &model]).run().exits(0);
    // Among them a folder, of what was there before the command.
    assert!(modes().iter().all(|mode| *mode == 0o600 || *mode == 0o700), "{:?}", modes());
    assert!(project.dir().join(".fusee/journal.db-looks").is_dir());
}

#[test]
fn workflows_are_listed_with_their_parameters() {
    let project = Project::new().with(
        ".fusee/workflows/count.fusee",
        "(params (folder string :doc \"where\") (deep bool :default false))\n(+ 1 2)\n",
    );
    let listed = fusee(&project).args(["workflows"]).run().exits(0).stdout;
    assert!(listed.contains("count             folder=… [deep=…]\n"), "{listed}");
    assert!(listed.contains("fix-tests         tests=… [rounds=…]\n"), "{listed}");
    let json = fusee(&project).args(["workflows", "--json"]).run().exits(0).stdout;
    let all: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(all[1]["name"], "count");
    assert_eq!(all[1]["parameters"][0]["description"], "where");
}

#[test]
fn a_model_without_a_provider_is_found_by_the_key_that_is_set() {
    let project = Project::new();
    let without = fusee(&project).args(["run", "x", "-m", "gpt-5"]).run().exits(2);
    assert!(without.stderr.contains("no server known for model `gpt-5`"), "{}", without.stderr);
    let resolved = fusee(&project)
        .args(["run", "x", "-m", "gpt-5", "--json"])
        .env("OPENAI_API_KEY", "sk-0123456789")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .env("FUSEE_RETRY_POLICY_MAX_RETRIES", "0")
        .run()
        .exits(4);
    assert_eq!(resolved.events()[0]["model"], "openai:gpt-5");
}

#[test]
fn a_count_of_one_has_a_singular_noun() {
    let project = Project::new();
    let looks = Line::call("list_dir", json!({"path": "."}));
    let limited = run(&project, &project.script(&[looks])).args(["--max-turns", "1"]).run().exits(3);
    assert!(limited.stderr.contains("did not finish within 1 turn\n"), "{}", limited.stderr);
    let missing = fusee(&project).args(["show", "last~1"]).run().exits(2);
    assert!(missing.stderr.contains("no run `last~1`: there is 1 run here"), "{}", missing.stderr);
    let replayed = fusee(&project).args(["replay"]).run().exits(0);
    assert!(replayed.stderr.contains("(1 model request, 1 tool call), "), "{}", replayed.stderr);
}
