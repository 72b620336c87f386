//! One attempt to get a reply from anything that answers a conversation, a server or an in-process model. How
//! tool calls are requested depends on the model's profile, not on where it runs. The transport is
//! [`crate::http`] or the local model.

use crate::profile::ToolFormat;
use crate::schema_calls::{self, SchemaRequest};
use crate::text_calls::{self, Holdback};
use crate::wire::stream::DeltaSink;
use crate::{Conversation, Dialect, ModelError, Reply, ReplyDelta, RequestOptions};

/// Requests a reply using the tool call format of the dialect.
pub(crate) async fn attempt(
    server: &dyn SchemaRequest,
    dialect: Dialect,
    conversation: &Conversation,
    options: &RequestOptions,
    sink: &mut DeltaSink<'_>,
) -> Result<Reply, ModelError> {
    let traits = dialect.traits;
    if traits.tool_format == ToolFormat::Schema {
        return schema_calls::ask(server, conversation, options, sink).await;
    }
    let mut reply = if traits.text_calls || traits.tool_format == ToolFormat::Text {
        exchange_with_text_calls(server, conversation, options, sink).await?
    } else {
        server.exchange(conversation, None, options, sink).await?
    };
    if traits.one_call {
        reply.tool_calls.truncate(1);
    }
    Ok(reply)
}

/// One exchange in which tool calls may arrive as text.
async fn exchange_with_text_calls(
    server: &dyn SchemaRequest,
    conversation: &Conversation,
    options: &RequestOptions,
    sink: &mut DeltaSink<'_>,
) -> Result<Reply, ModelError> {
    let mut holding = Holdback::default();
    let mut held = |delta: ReplyDelta<'_>| match delta {
        ReplyDelta::Text(piece) => holding.take(piece, &mut |text| sink(ReplyDelta::Text(text))),
        other => sink(other),
    };
    let mut reply = server.exchange(conversation, None, options, &mut held).await?;
    let known = |name: &str| conversation.tools().iter().any(|tool| tool.name == name);
    let native = reply.tool_calls.len();
    text_calls::extract_calls(&mut reply, &known, conversation.messages().len());
    holding.release(&reply.text, &mut |text| sink(ReplyDelta::Text(text)));
    for (index, call) in reply.tool_calls.iter().enumerate().skip(native) {
        sink(ReplyDelta::ToolCall { index, name: &call.name });
        sink(ReplyDelta::ToolArguments { index, fragment: &call.arguments });
    }
    Ok(reply)
}
