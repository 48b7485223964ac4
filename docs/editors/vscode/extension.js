// Starts `castsim lsp` for .pto and .tpc files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const settings = workspace.getConfiguration("castsim");
  const server = { command: settings.get("command"), args: ["lsp"] };
  client = new LanguageClient("castsim", "castsim", server, {
    documentSelector: [{ language: "pto" }, { language: "tpc" }],
    initializationOptions: { target: settings.get("target") || null, args: settings.get("args") },
  });
  return client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
