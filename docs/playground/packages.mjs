// Packs wheels with their byte code: `node packages.mjs PYODIDE WHEELS OUT.zip`. A browser then compiles nothing.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , core, wheels, out] = process.argv;
const { loadPyodide } = await import(pathToFileURL(path.resolve(core, "pyodide.mjs")));
const py = await loadPyodide({ indexURL: `${path.resolve(core)}/` });
for (const name of fs.readdirSync(wheels)) {
  if (name.endsWith(".whl")) py.unpackArchive(new Uint8Array(fs.readFileSync(path.join(wheels, name))), "wheel", { extractDir: "/packages" });
}
py.runPython(`
import compileall, pathlib, py_compile, shutil
unused = ("*/tests", "*/*/tests", "*/f2py", "*/*.lib", "*/**/*.pyi", "*/**/*.h", "*/**/*.a", "*/**/*.pxd", "pygments/lexers/[a-z]*.py", "*.dist-info")
for pattern in unused:
    for path in sorted(pathlib.Path("/packages").glob(pattern)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
compileall.compile_dir("/packages", quiet=2, stripdir="/packages", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
shutil.make_archive("/all", "zip", "/packages")
`);
fs.writeFileSync(out, py.FS.readFile("/all.zip"));
