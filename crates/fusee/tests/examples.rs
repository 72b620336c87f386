//! Every example runs and prints what it should.

#[path = "../examples/custom_model.rs"]
mod custom_model;
#[path = "../examples/custom_tool.rs"]
mod custom_tool;
#[path = "../examples/one_journal.rs"]
mod one_journal;
#[path = "../examples/template.rs"]
mod template;
#[path = "../examples/typed_answer.rs"]
mod typed_answer;
#[path = "../examples/workflow.rs"]
mod workflow;

#[tokio::test]
async fn a_custom_tool_answers_the_model() {
    let printed = custom_tool::example().await.unwrap();
    assert_eq!(printed, "ok: 4\nerror: there is no article `chair`; there is `lamp`\nFour lamps, no chairs.");
}

#[tokio::test]
async fn a_custom_model_works_with_the_tools() {
    let printed = custom_model::example().await.unwrap();
    assert!(printed.starts_with("The directory contains: "), "{printed}");
    assert!(printed.contains("notes.txt"), "{printed}");
}

#[tokio::test]
async fn a_typed_answer_is_a_value() {
    assert_eq!(typed_answer::example().await.unwrap(), "4 of 5; name the units");
}

#[tokio::test]
async fn many_tasks_share_a_journal() {
    assert_eq!(one_journal::example().await.unwrap(), "100 tasks done, 100 runs in the journal");
}

#[tokio::test]
async fn a_workflow_calls_tools_and_templates() {
    assert_eq!(workflow::example().await.unwrap(), "It is about milk.");
}

#[tokio::test]
async fn a_template_takes_inputs() {
    assert_eq!(template::example().await.unwrap(), "Hello, Ann! Hello, Ann!");
}
