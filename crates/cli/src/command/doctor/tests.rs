//! The doctor's verdicts.

use fusee::engine::model::connection::provider::Provider;

use super::*;
use crate::config::Value;
use crate::model_selection::discovery::{DiscoveredModels, LocalServer};
use crate::process::environment::Environment;

fn judged(found: &DiscoveredModels, model: Option<&str>) -> models::ModelChecks {
    let environment = Environment::from_variables(&[], "/");
    let flags = model.map(|name| ("model", Value::Text(name.to_owned()))).into_iter().collect();
    models::check_models(found, &Config::gather(None, &environment, flags).unwrap(), &environment)
}

#[test]
fn without_a_model_no_task_can_run_and_the_next_step_is_named() {
    let models = judged(&DiscoveredModels::default(), None);
    assert!(!models.usable);
    assert!(models.next.iter().any(|step| step.contains("--base-url")), "{:?}", models.next);
    let names: Vec<&str> = models.findings.iter().map(|finding| finding.name.as_str()).collect();
    for source in
        ["ollama", "llama.cpp", "lmstudio", "vllm", "openai", "anthropic", "openrouter", "script", "replay"]
    {
        assert!(names.contains(&source), "{source} is missing in {names:?}");
    }
}

#[test]
fn a_local_server_or_a_key_is_enough() {
    let ollama = Provider::named("ollama").unwrap();
    let server =
        LocalServer { provider: ollama, base_url: ollama.base_url.to_owned(), models: vec!["q".into()] };
    let found = DiscoveredModels { keys: Vec::new(), servers: vec![server] };
    let models = judged(&found, None);
    assert!(models.usable);
    assert_eq!(models.next, ["fusee run 'your task' (uses ollama:q)"]);
    let found = DiscoveredModels { keys: vec![Provider::named("openai").unwrap()], servers: Vec::new() };
    assert_eq!(judged(&found, None).next, ["fusee run -m openai:MODEL 'your task'"]);
}

#[test]
fn a_model_that_did_not_answer_is_not_suggested() {
    let ollama = Provider::named("ollama").unwrap();
    let models = vec!["broken".to_owned(), "fine".to_owned()];
    let server = LocalServer { provider: ollama, base_url: ollama.base_url.to_owned(), models };
    let found = DiscoveredModels { keys: Vec::new(), servers: vec![server] };
    let probed = |fine| {
        [("ollama:broken", CheckState::Broken), ("ollama:fine", fine)]
            .map(|(name, state)| DoctorCheck::new(name, state, ""))
    };
    let mut models = judged(&found, None);
    assert_eq!(models.next, ["fusee run -m ollama:broken 'your task'"]);
    models.leave_out_broken(&found, &probed(CheckState::Ready));
    assert_eq!(
        (models.usable, models.next.as_slice()),
        (true, &["fusee run 'your task' (uses ollama:fine)".to_owned()][..])
    );
    models.leave_out_broken(&found, &probed(CheckState::Broken));
    assert!(!models.usable && models.next[0].starts_with("start a server"), "{:?}", models.next);
}

#[test]
fn a_configured_model_that_cannot_be_used_is_what_counts() {
    let models = judged(&DiscoveredModels::default(), Some("openai:gpt"));
    assert!(!models.usable);
    assert_eq!(models.findings[0].state, CheckState::Broken);
    assert!(models.findings[0].detail.contains("OPENAI_API_KEY is not set"), "{}", models.findings[0].detail);
    assert!(judged(&DiscoveredModels::default(), Some("ollama:q")).usable);
}

#[test]
fn a_broken_journal_stops_everything() {
    let models = models::ModelChecks { findings: Vec::new(), usable: true, next: Vec::new() };
    let broken = DoctorCheck::new("content", CheckState::Broken, "page 3 is damaged");
    let report = DoctorReport::new(models, Vec::new(), vec![broken], Vec::new());
    assert!(!report.ok);
    assert_eq!(report.next, ["content: page 3 is damaged"]);
}

#[test]
fn details_stay_in_their_column_beside_long_names() {
    let ready = |name: &str| DoctorCheck::new(name, CheckState::Ready, "DETAIL");
    let names = ["ollama", "größe:ä", "llama.cpp:unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF:Q4_K_M"];
    let models = models::ModelChecks { findings: names.map(ready).to_vec(), usable: true, next: Vec::new() };
    let report = DoctorReport::new(models, vec![ready("namespaces")], Vec::new(), Vec::new());
    let text: Vec<String> = report.lines().iter().map(|line| line.paint(false)).collect();
    let column = |line: &&String| line.find("DETAIL").map(|at| line[..at].chars().count());
    let columns: Vec<usize> = text.iter().filter_map(|line| column(&line)).collect();
    assert_eq!(columns, [17, 17, 17, 17], "{}", text.join("\n"));
}
