// Starts `castsim lsp` for .pto and .tpc files, and `castsim debug --dap` for debug sessions of type castsim.
const { debug, DebugAdapterExecutable, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate(context) {
  const settings = workspace.getConfiguration("castsim");
  const server = { command: settings.get("command"), args: ["lsp"] };
  client = new LanguageClient("castsim", "castsim", server, {
    documentSelector: [{ language: "pto" }, { language: "tpc" }],
    initializationOptions: { target: settings.get("target") || null, args: settings.get("args") },
  });
  context.subscriptions.push(
    debug.registerDebugAdapterDescriptorFactory("castsim", {
      createDebugAdapterDescriptor: (session) =>
        new DebugAdapterExecutable(workspace.getConfiguration("castsim").get("command"), ["debug", "--dap"], {
          cwd: session.workspaceFolder && session.workspaceFolder.uri.fsPath,
        }),
    })
  );
  return client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
