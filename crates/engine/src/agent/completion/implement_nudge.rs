//! Prompts a model to implement the change in staged work under a grammar. When the phase that changes files
//! begins, the runtime repeats what fails and what was requested: by then the request is far back, behind
//! files and a plan, and small models follow what they read last.

use fusee_journal::RunAborted;

use super::runtime_actions::RuntimeActions;
use super::verification::Verification;

/// A request longer than this is not repeated.
const SHORT_CHARACTERS: usize = 1_000;

/// Final instruction of the prompt. A model that has to say what is wrong finds it more often.
const SAY_WRONG: &str = "In `thought`, say first what is wrong in the code.";
const SAY_CHANGE: &str = "In `thought`, say first what has to change.";

/// Prompts once, when the phase that changes files has begun and nothing has changed yet.
pub(crate) async fn nudge(
    runtime: &mut RuntimeActions<'_, '_>,
    verification: &mut Verification,
) -> Result<(), RunAborted> {
    if runtime.files.listed().is_some() && runtime.flow.take_nudge() {
        let failure = verification.initial_failure(runtime).await?;
        let text = nudge_text(failure.as_deref(), runtime.run.task.request.trim());
        runtime.conversation.say(runtime.run, &text);
    }
    Ok(())
}

fn nudge_text(failure: Option<&str>, request: &str) -> String {
    let last = if failure.is_some() { SAY_WRONG } else { SAY_CHANGE };
    let asked = if request.chars().nth(SHORT_CHARACTERS).is_some() {
        format!("Now make the change that was asked for at the beginning. {last}")
    } else if request.contains('\n') || !request.ends_with(['.', '!', '?']) {
        format!("Now make the change.\n\n{request}\n\n{last}")
    } else {
        format!("Now make the change. {request} {last}")
    };
    failure.map_or_else(|| asked.clone(), |failure| format!("{failure}\n\n{asked}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_stands_after_the_failure_and_before_what_to_say() {
        assert_eq!(
            nudge_text(Some("`make test` does not pass yet:\n\n1 failed"), "Fix a.py."),
            "`make test` does not pass yet:\n\n1 failed\n\nNow make the change. Fix a.py. In `thought`, say first what is \
             wrong in the code."
        );
        assert_eq!(
            nudge_text(None, "add to a.py:\n```\nx = 1\n```"),
            "Now make the change.\n\nadd to a.py:\n```\nx = 1\n```\n\nIn `thought`, say first what has to change."
        );
        let long = nudge_text(None, &"word ".repeat(1_000));
        assert!(long.len() < 200, "{long}");
    }
}
