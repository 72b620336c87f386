// Offers `fusee check` as a task, and tells the XML extension, if it is installed, which schema templates have.
const vscode = require("vscode");

const TEMPLATES = "**/.fusee/templates/**/*.xml";

function checkTask(definition) {
  const execution = new vscode.ProcessExecution("fusee", ["check", ...(definition.path ? [definition.path] : [])]);
  const task = new vscode.Task(definition, vscode.TaskScope.Workspace, "check", "fusee", execution, "$fusee");
  task.group = vscode.TaskGroup.Build;
  return task;
}

async function associateTemplates(context) {
  const xml = vscode.extensions.getExtension("redhat.vscode-xml");
  if (!xml) return;
  const api = await xml.activate();
  const schema = vscode.Uri.joinPath(context.extensionUri, "schemas", "task-template-1.0.xsd");
  api.addXMLFileAssociations?.([{ systemId: schema.toString(), pattern: TEMPLATES }]);
}

exports.activate = async (context) => {
  const provider = { provideTasks: () => [checkTask({ type: "fusee" })], resolveTask: (task) => checkTask(task.definition) };
  context.subscriptions.push(vscode.tasks.registerTaskProvider("fusee", provider));
  await associateTemplates(context);
};

exports.deactivate = () => {};
