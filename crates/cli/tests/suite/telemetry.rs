//! OpenTelemetry: a collector that is down costs a warning and nothing else, and commands know their trace.
//! `tests/protocol_peers.rs` decodes what is sent.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::ClosedPort;
use serde_json::json;

use crate::support::{fusee, run, run_json};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_collector_that_is_down_costs_one_warning() {
    let project = Project::new();
    let nobody = ClosedPort::reserve();
    let script = project.script(&[Line::text("Done.")]);
    let quiet = run(&project, &script).run().exits(0);
    let traced = run(&project, &script).env("OTEL_EXPORTER_OTLP_ENDPOINT", nobody.base_url()).run().exits(0);
    assert_eq!(traced.stdout, quiet.stdout);
    assert_eq!(traced.stderr.matches("warning: cannot export to").count(), 1, "{}", traced.stderr);
    assert!(!quiet.stderr.contains("export"), "{}", quiet.stderr);
}

#[test]
fn commands_know_the_trace_they_belong_to() {
    let project = Project::new();
    let nobody = ClosedPort::reserve();
    let lines = [Line::call("shell", json!({"command": "echo [$TRACEPARENT]"})), Line::text("Done.")];
    let said = |variables: &[(&str, &str)]| {
        let command = run_json(&project, &project.script(&lines));
        let command = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
        let events = command.run().exits(0).events();
        let content = of_type(&events, "tool_result")[0]["content"].as_str().unwrap().to_owned();
        let (start, end) = (content.find('[').unwrap(), content.find(']').unwrap());
        content[start + 1..end].to_owned()
    };
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", nobody.base_url());
    let endpoint = (endpoint.0, endpoint.1.as_str());
    let own = said(&[endpoint]);
    assert_eq!((own.len(), &own[..3]), (PARENT.len(), "00-"), "{own}");
    let below = said(&[endpoint, ("TRACEPARENT", PARENT)]);
    assert_eq!(below[..36], PARENT[..36], "{below}");
    assert_ne!(below, PARENT);
}

#[test]
fn an_export_needs_an_endpoint() {
    let project = Project::new();
    run(&project, &project.script(&[Line::text("Done.")])).run().exits(0);
    let refused = fusee(&project).args(["runs", "export", "--otlp", "last"]).run().exits(2);
    assert!(refused.stderr.contains("no OpenTelemetry endpoint is set"), "{}", refused.stderr);
}

#[test]
fn the_endpoint_can_be_configured_by_the_user_and_the_environment_overrides_it() {
    let (configured, overriding) = (ClosedPort::reserve(), ClosedPort::reserve());
    let project = Project::new().with("fusee.toml", "otlp_endpoint = \"http://127.0.0.1:1\"\n");
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = format!("otlp_endpoint = \"{}\"\n", configured.base_url());
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let done = || run(&project, &project.script(&[Line::text("Done.")]));
    let said = done().run().exits(0).stderr;
    // A project that is not trusted does not decide where runs are sent.
    assert!(said.contains("`otlp_endpoint` is ignored"), "{said}");
    assert!(said.contains(&format!("cannot export to {}", configured.base_url())), "{said}");
    let said = done().env("OTEL_EXPORTER_OTLP_ENDPOINT", overriding.base_url()).run().exits(0).stderr;
    assert!(said.contains(&format!("cannot export to {}", overriding.base_url())), "{said}");
    let failed = fusee(&project).args(["runs", "export", "--otlp", "last"]).run().exits(1).stderr;
    assert!(failed.contains(&configured.base_url()), "{failed}");
}
