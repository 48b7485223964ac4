// Python code under Pyodide in node, beside the packages of a built playground: `node playground_node.mjs FOLDER CODE.py`.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";

const [, , folder, code] = process.argv;
const core = fs.mkdtempSync(path.join(os.tmpdir(), "pyodide-"));
globalThis.PLAYGROUND = { add: (name, data) => fs.writeFileSync(path.join(core, name), gunzipSync(Buffer.from(data, "base64"))) };
for (const name of fs.readdirSync(folder)) if (name !== "manifest.js") new Function(fs.readFileSync(path.join(folder, name), "utf8"))();

const { loadPyodide } = createRequire(import.meta.url)(path.join(core, "pyodide.js"));
const py = await loadPyodide({ indexURL: `${core}/` });
const bytes = (name) => new Uint8Array(fs.readFileSync(path.join(core, name)));
py.unpackArchive(bytes("packages.zip"), "zip", { extractDir: "/lib/python3.12/site-packages" });
py.FS.writeFile("/home/pyodide/session.py", bytes("session.py"));
py.pyimport("importlib").invalidate_caches();
py.runPython(fs.readFileSync(code, "utf8"));
fs.rmSync(core, { recursive: true });
