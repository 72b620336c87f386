//! The protocol handler: answers the requests of one client. `calls.rs` performs the tool calls.

use std::sync::Arc;

use fusee::launch::Launcher;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
    UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::calls::ToolCalls;
use crate::runs::Runs;
use crate::task_tools::{TaskTool, task_tools};
use crate::tool_list::fixed_tools;
use crate::{prompts, resources, tasks};

/// Tool calls of one client that are answered at the same time.
const MAX_CALLS: usize = 256;

const INSTRUCTIONS: &str = "\
Fusee runs coding agents durably. Start a task with fusee_run, or with the tool of a template or workflow. A result with \
status `working` is not an error: call fusee_wait with the run id until the status is completed, failed or cancelled. With \
status `waiting`, answer the listed questions with fusee_answer, then call fusee_wait. A run id stays valid after a crash of \
this server.";

/// Answers the requests of MCP clients. Clones share their runs.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) runs: Arc<Runs>,
    pub(crate) calls: Arc<ToolCalls>,
    /// Held while a session over HTTP lasts.
    _session: Option<Arc<OwnedSemaphorePermit>>,
}

impl McpServer {
    /// A server whose runs are started by `launcher`.
    #[must_use]
    pub fn new(launcher: Arc<dyn Launcher>) -> Self {
        let runs = Arc::new(Runs::new(launcher));
        let calls = Arc::new(ToolCalls::new(Arc::clone(&runs), Semaphore::new(MAX_CALLS)));
        Self { runs, calls, _session: None }
    }

    /// The server in a session that counts as open as long as this lasts.
    pub(crate) fn in_session(self, session: OwnedSemaphorePermit) -> Self {
        Self { _session: Some(Arc::new(session)), ..self }
    }

    fn tools(&self) -> Vec<Tool> {
        let launcher = self.runs.launcher();
        // A project whose templates cannot be read has the other tools still; starting one reports the problem.
        let named = task_tools(launcher, launcher.directory()).unwrap_or_default();
        fixed_tools().iter().cloned().chain(named.iter().map(TaskTool::definition)).collect()
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_tasks()
            .build();
        let mut info = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS);
        info.server_info = Implementation::new("fusee", env!("CARGO_PKG_VERSION"));
        info.server_info.title = Some("Fusee".to_owned());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Box::pin(self.calls.call(request, context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(&self.runs, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::update(&self.runs, &request.task_id, &request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(&self.runs, &request.task_id).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.runs).map(ListResourcesResult::with_all_items)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.runs, &request.uri).map(Into::into)
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list(self.runs.launcher()).map(ListPromptsResult::with_all_items)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        prompts::get(self.runs.launcher(), &request.name, &arguments).map(Into::into)
    }
}
