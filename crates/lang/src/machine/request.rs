//! Task calls, tool calls and limits: builds effects from values on the stack.

use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::{ControlFlow, HandlerKind, Machine, PendingEffect};
use crate::builtin::json::not_json;
use crate::bytecode::{Argument, ArgumentRole, CallSite, LimitKey, SiteTarget};
use crate::catalog::CallableKind;
use crate::defatom::{Atom, OutputFormat};
use crate::effect::{EffectKind, LimitsId, RunLimits, TaskCall, TaskTarget, ToolEffect};
use crate::param::{Param, ParamType};
use crate::runtime_error::UnlocatedError;
use crate::value::{Results, Text, Value, brief, encode};

/// Arguments of a call, grouped by role.
#[derive(Default)]
struct Given {
    inputs: JsonMap<String, Json>,
    settings: JsonMap<String, Json>,
    definition: JsonMap<String, Json>,
}

impl Machine {
    /// Yields the effect of a call site, with its arguments taken from the stack.
    pub(super) fn call_site(&mut self, site: u32) -> Result<ControlFlow, UnlocatedError> {
        let program = self.program.clone();
        let site = &program.sites[site as usize];
        let start = self.stack.len() - site.takes();
        let values = self.stack.get(start..).unwrap_or_default();
        let (kind, waiting) = request(site, values)?;
        self.stack.truncate(start);
        Ok(self.yield_effect(kind, waiting))
    }

    pub(super) fn enter_limits(&mut self, index: u32) -> Result<ControlFlow, UnlocatedError> {
        let program = self.program.clone();
        let keys = &program.limits[index as usize];
        let start = self.stack.len() - keys.len();
        let mut limits = RunLimits::default();
        for (key, value) in keys.iter().zip(self.stack.get(start..).unwrap_or_default()) {
            match key {
                LimitKey::Turns => limits.turns = Some(count("turns", value)?),
                LimitKey::Tokens => limits.tokens = Some(count("tokens", value)?),
                LimitKey::Seconds => limits.seconds = Some(amount("seconds", value)?),
                LimitKey::Usd => limits.usd = Some(amount("usd", value)?),
            }
        }
        self.stack.truncate(start);
        let id = LimitsId(self.next_limits);
        self.next_limits += 1;
        Ok(self.yield_effect(EffectKind::EnterLimits { id, limits }, PendingEffect::EnterLimits(id)))
    }

    pub(super) fn leave_limits(&mut self) -> Option<ControlFlow> {
        match self.handlers.pop()?.kind {
            HandlerKind::Limits { id } => {
                Some(self.yield_effect(EffectKind::LeaveLimits { id }, PendingEffect::LeaveLimits))
            }
            _ => None,
        }
    }
}

/// The effect of a call and how its answer is used.
fn request(site: &CallSite, values: &[Value]) -> Result<(EffectKind, PendingEffect), UnlocatedError> {
    let (computed, values) = match (&site.target, values) {
        (SiteTarget::Computed, [name, values @ ..]) => (Some(name), values),
        (_, values) => (None, values),
    };
    let params: &[Param] = match &site.target {
        SiteTarget::Named(callable) => &callable.params,
        SiteTarget::Atom(atom) => &atom.params,
        _ => &[],
    };
    let mut given = Given::default();
    for (argument, value) in site.arguments.iter().zip(values) {
        take(&mut given, argument, value, params)?;
    }
    let target = match &site.target {
        SiteTarget::Context => return Ok((EffectKind::Context(given.inputs), PendingEffect::Json)),
        SiteTarget::Named(callable) => {
            let name = Text::from(callable.name.as_str());
            if callable.kind == CallableKind::Tool {
                let call = ToolEffect { name: name.clone(), arguments: given.inputs };
                return Ok((EffectKind::Tool(call), PendingEffect::Reply(name)));
            }
            TaskTarget::Named(name)
        }
        SiteTarget::Atom(atom) => {
            check_inputs(atom, &mut given.inputs)?;
            TaskTarget::Atom(atom.clone())
        }
        SiteTarget::Described(text) => TaskTarget::Described(text.clone()),
        SiteTarget::Computed => TaskTarget::Named(computed_name(computed)?),
        SiteTarget::Inline => TaskTarget::Atom(Arc::new(inline(&given)?)),
    };
    // The name is now part of the target.
    given.settings.shift_remove("name");
    let call = TaskCall { target, form: site.form, inputs: given.inputs, settings: given.settings };
    let callee = Text::from(call.callee());
    Ok((EffectKind::Task(Box::new(call)), PendingEffect::Reply(callee)))
}

fn take(
    given: &mut Given,
    argument: &Argument,
    value: &Value,
    params: &[Param],
) -> Result<(), UnlocatedError> {
    let key = argument.key.to_string();
    match argument.role {
        ArgumentRole::Input => {
            let kind =
                params.iter().find(|param| param.name == key).map_or(ParamType::Any, |param| param.kind);
            given.inputs.insert(key, input(value, kind)?);
        }
        ArgumentRole::Inputs => match encode(value, Results::Content).map_err(not_json)? {
            Json::Object(inputs) => given.inputs.extend(inputs),
            _ => {
                return Err(UnlocatedError::invalid(
                    "wrong-type",
                    format!("`inputs` must be a map, not {}", value.kind()),
                ));
            }
        },
        ArgumentRole::Setting if matches!(key.as_str(), "files" | "file_paths") => {
            given.settings.insert("files".to_owned(), Json::Array(files(value)?));
        }
        ArgumentRole::Setting => {
            given.settings.insert(key, encode(value, Results::Content).map_err(not_json)?);
        }
        ArgumentRole::Definition => {
            given.definition.insert(key, encode(value, Results::Content).map_err(not_json)?);
        }
    }
    Ok(())
}

/// Converts a value to an input: a result becomes its content, or its data if the parameter has a data type.
fn input(value: &Value, kind: ParamType) -> Result<Json, UnlocatedError> {
    if let Value::Result(result) = value
        && !matches!(kind, ParamType::Any | ParamType::String)
        && let Some(data) = result.data()?
    {
        return encode(data, Results::Content).map_err(not_json);
    }
    encode(value, Results::Content).map_err(not_json)
}

/// Checks the inputs against the task's declaration and fills in defaults.
fn check_inputs(atom: &Atom, inputs: &mut JsonMap<String, Json>) -> Result<(), UnlocatedError> {
    for param in &atom.params {
        match (inputs.get(&param.name), &param.default) {
            (Some(value), _) if !param.kind.accepts(value) => {
                let message =
                    format!("`{}` of `{}` must be of type {}", param.name, atom.name, param.kind.name());
                return Err(UnlocatedError::invalid("wrong-type", message));
            }
            (None, Some(default)) => {
                inputs.insert(param.name.clone(), default.clone());
            }
            _ => {}
        }
    }
    Ok(())
}

fn computed_name(value: Option<&Value>) -> Result<Text, UnlocatedError> {
    match value {
        Some(Value::Text(name) | Value::Symbol(name)) => Ok(name.clone()),
        other => {
            let other = other.unwrap_or(&Value::Nil);
            let message = format!(
                "the name of a task must be a string or a symbol, not {} {}",
                other.kind(),
                brief(other)
            );
            Err(UnlocatedError::new("wrong-type", message))
        }
    }
}

/// Builds the task defined inline by `atomic-task`.
fn inline(given: &Given) -> Result<Atom, UnlocatedError> {
    let text = |from: &JsonMap<String, Json>, key: &str| match from.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(UnlocatedError::invalid("wrong-type", format!("`{key}` must be a string"))),
    };
    let format = given.definition.get("output_format").filter(|format| !format.is_null());
    let output_format =
        format.map(|format| serde_json::from_value::<OutputFormat>(format.clone())).transpose();
    let output_format = output_format.map_err(|error| {
        UnlocatedError::invalid("wrong-type", format!("invalid `output_format`: {error}"))
    })?;
    Ok(Atom {
        name: text(&given.settings, "name")?.unwrap_or_else(|| "atomic-task".to_owned()),
        description: text(&given.settings, "description")?,
        params: given.inputs.keys().map(|name| Param::required(name.as_str(), ParamType::Any)).collect(),
        instructions: text(&given.definition, "instructions")?.unwrap_or_default(),
        system: text(&given.definition, "system")?,
        subtype: text(&given.settings, "subtype")?,
        model: text(&given.settings, "model")?,
        output_format,
    })
}

fn files(value: &Value) -> Result<Vec<Json>, UnlocatedError> {
    match encode(value, Results::Content).map_err(not_json)? {
        Json::Array(paths) if paths.iter().all(Json::is_string) => Ok(paths),
        path @ Json::String(_) => Ok(vec![path]),
        Json::Null => Ok(Vec::new()),
        _ => Err(UnlocatedError::invalid(
            "wrong-type",
            format!("`files` must be a list of paths, not {}", brief(value)),
        )),
    }
}

fn count(name: &str, value: &Value) -> Result<u64, UnlocatedError> {
    match value {
        Value::Int(count) => u64::try_from(*count).map_err(|_| not_a_limit(name, value)),
        other => Err(not_a_limit(name, other)),
    }
}

fn amount(name: &str, value: &Value) -> Result<f64, UnlocatedError> {
    match value {
        Value::Int(amount @ 0..) => Ok(*amount as f64),
        Value::Float(amount) if *amount >= 0.0 => Ok(*amount),
        other => Err(not_a_limit(name, other)),
    }
}

fn not_a_limit(name: &str, value: &Value) -> UnlocatedError {
    UnlocatedError::new(
        "wrong-type",
        format!("`:{name}` must be a number of 0 or more, not {} {}", value.kind(), brief(value)),
    )
}
