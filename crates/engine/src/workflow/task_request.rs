//! Requests of a program's task calls. A task that the program defines (`defatom`) becomes a template, so that the
//! task system runs every task in the same way.

use fusee_lang::{Atom, CallForm, ParamType, TaskCall, TaskTarget};
use fusee_text::placeholder::{FORMS, PlaceholderSyntax, TextPart, parse};
use serde_json::{Map, Value as Json};

use crate::agent::SPAWN_SUBTASK;
use crate::task_system::{
    ContextOverrides, HistoryConfig, Reason, SubtaskRequest, TaskError, TemplateOrigin,
};
use crate::template::{InputType, Template, TemplateInput};

/// Builds the request of a call, and its template if the program has it.
pub(super) fn requested(call: &TaskCall) -> Result<(SubtaskRequest, TemplateOrigin), TaskError> {
    let mut request = request(call)?;
    let template = match &call.target {
        TaskTarget::Named(_) => return Ok((request, TemplateOrigin::Registry)),
        TaskTarget::Described(words) => {
            // `TYPE:SUBTYPE` identifies a template like a name does.
            let identifier = words.starts_with("atomic:") && !words.contains(char::is_whitespace);
            request.name = identifier.then(|| words.clone());
            request.description = request.description.or_else(|| (!identifier).then(|| words.clone()));
            return Ok((request, TemplateOrigin::Registry));
        }
        TaskTarget::Atom(atom) => {
            request.model = request.model.or_else(|| atom.model.clone());
            template(atom, &request.inputs)?
        }
    };
    // Such a task is part of the program, which alone decides what runs next.
    let template = Template { blocked_tools: vec![SPAWN_SUBTASK.to_owned()], ..template };
    Ok((request, TemplateOrigin::Value(Box::new(template))))
}

/// Builds the template of a task that the program defines.
fn template(atom: &Atom, given: &Map<String, Json>) -> Result<Template, TaskError> {
    let texts = [Some(&atom.instructions), atom.system.as_ref(), atom.description.as_ref()];
    for part in texts.into_iter().flatten().flat_map(|text| parse(text, PlaceholderSyntax::Braces)) {
        // Only texts that are computed get this far; the compiler checks the others.
        if let TextPart::Malformed { text, .. } = part {
            let message = format!("`{}` has an invalid placeholder `{text}`: {FORMS}", atom.name);
            return Err(TaskError::invalid(Reason::InputValidationFailure, message));
        }
    }
    let inputs = atom.params.iter().filter(|param| param.required || given.contains_key(&param.name));
    let inputs = inputs.map(|param| TemplateInput {
        name: param.name.clone(),
        kind: input_type(param.kind),
        // A nil that was passed is a value: it is rendered as nothing.
        default: given.get(&param.name).filter(|value| value.is_null()).cloned(),
        description: param.doc.clone(),
    });
    Ok(Template {
        name: atom.name.clone(),
        subtype: atom.subtype.clone(),
        description: atom.description.clone().unwrap_or_default(),
        instructions: Some(atom.instructions.clone()),
        system: atom.system.clone(),
        inputs: inputs.collect(),
        output_format: atom.output_format.clone(),
        context_management: context_management(atom)?,
        ..Template::default()
    })
}

fn context_management(atom: &Atom) -> Result<ContextOverrides, TaskError> {
    serde_json::from_value(Json::Object(atom.context_management.clone())).map_err(|error| {
        let message = format!("invalid `context_management` of `{}`: {error}", atom.name);
        TaskError::invalid(Reason::ConfigurationError, message)
    })
}

/// A text input of a template accepts any value, like an untyped parameter.
fn input_type(kind: ParamType) -> InputType {
    match kind {
        ParamType::Any | ParamType::String => InputType::String,
        ParamType::Number => InputType::Number,
        ParamType::Boolean => InputType::Boolean,
        ParamType::Array => InputType::Array,
        ParamType::Object => InputType::Object,
    }
}

/// Builds the request from the inputs and settings of a call.
fn request(call: &TaskCall) -> Result<SubtaskRequest, TaskError> {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), call.callee().into());
    fields.insert("inputs".to_owned(), Json::Object(call.inputs.clone()));
    if call.form == CallForm::Spawn && matches!(call.target, TaskTarget::Named(_)) {
        fields.insert("subtype".to_owned(), "subtask".into());
    }
    for (key, value) in call.settings.iter().filter(|(_, value)| !value.is_null()) {
        let (key, value) = match key.as_str() {
            "files" => ("file_paths", value.clone()),
            // Any value can be passed as context; one that does not have the form of a context is shown as
            // text.
            "context" if value.is_string() || value.get("parts").is_some() => {
                ("inherited_context", value.clone())
            }
            "context" => ("inherited_context", value.to_string().into()),
            other => (other, value.clone()),
        };
        fields.insert(key.to_owned(), value);
    }
    // How a task relates to the conversation is a setting of the program, not an input of the task.
    let history = fields.get("history_config").cloned().map(serde_json::from_value::<HistoryConfig>);
    if let Some(Err(error)) = history {
        let message = format!("invalid `history_config`: {error}");
        return Err(TaskError::failure(Reason::ConfigurationError, message));
    }
    serde_json::from_value(Json::Object(fields)).map_err(|error| {
        let message = format!("invalid call of `{}`: {error}", call.callee());
        TaskError::failure(Reason::InputValidationFailure, message)
    })
}
