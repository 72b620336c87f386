// Offers `fusee check` as a task, and tells the extensions for XML and TOML, if they are installed, which schemas to use.
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

// Even Better TOML takes schemas from its settings only.
async function associateSettings(context) {
  const schema = vscode.Uri.joinPath(context.extensionUri, "schemas", "config.schema.json").toString();
  const settings = vscode.workspace.getConfiguration("evenBetterToml.schema");
  const associations = { ...settings.get("associations"), "^.*/fusee\\.toml$": schema, "^.*/agents/[^/]*\\.toml$": schema };
  await settings.update("associations", associations, vscode.ConfigurationTarget.Global);
}

exports.activate = async (context) => {
  const provider = { provideTasks: () => [checkTask({ type: "fusee" })], resolveTask: (task) => checkTask(task.definition) };
  context.subscriptions.push(vscode.tasks.registerTaskProvider("fusee", provider));
  context.subscriptions.push(vscode.commands.registerCommand("fusee.associateSchema", () => associateSettings(context)));
  await associateTemplates(context);
};

exports.deactivate = () => {};
