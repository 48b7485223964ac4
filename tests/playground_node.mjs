// Commands under Pyodide in node: `node playground_node.mjs FOLDER REQUESTS.json`, of the built playground; prints JSON.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , folder, requests] = process.argv;
const core = fs.mkdtempSync(path.join(os.tmpdir(), "pyodide-"));
const files = new Map();
globalThis.PLAYGROUND = { add: (name, data) => files.set(name, new Uint8Array(Buffer.from(data, "base64"))) };
const { parts, missing } = new Function(`${fs.readFileSync(path.join(folder, "manifest.js"))}; return PLAYGROUND_BUILT;`)();
for (const name of parts) new Function(fs.readFileSync(path.join(folder, `${name}.js`), "utf8"))();
for (const [name, bytes] of files) if (/^(pyodide|python_stdlib)/.test(name)) fs.writeFileSync(path.join(core, name), bytes);

const { loadPyodide } = await import(pathToFileURL(path.join(core, "pyodide.mjs")));
const py = await loadPyodide({ indexURL: `${core}/` });
for (const [name, bytes] of files) {
  if (name.endsWith(".whl")) py.unpackArchive(bytes, "wheel");
  else if (name.endsWith(".py")) py.FS.writeFile(`/home/pyodide/${name}`, bytes);
}
const session = py.pyimport("session");
const results = JSON.parse(fs.readFileSync(requests)).map(([line, name, text]) => session.execute(line, name, text).toJs());
fs.rmSync(core, { recursive: true });
console.log(JSON.stringify({ missing, results }));
