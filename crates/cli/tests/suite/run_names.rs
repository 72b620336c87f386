//! Naming runs: short ids, `last`, and the words that other tools use.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;

use crate::support::fusee;

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
