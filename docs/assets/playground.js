// The page "Playground": castsim in a worker, by Pyodide, from scripts that docs/playground/build.py writes.
(() => {
  "use strict";
  const place = document.getElementById("playground-app");
  const built = PLAYGROUND_BUILT;
  const node = (tag, text = "", attributes = {}) => {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  if (!built) {
    const words = node("p");
    words.append("This site was built without the playground. ", node("code", "python docs/playground/build.py"), " adds it.");
    place.replaceChildren(words);
    return;
  }

  const choices = node("p", "", { class: "glance-choices" });
  const sample = node("select", "", { id: "playground-sample" }), words = node("input", "", { id: "playground-words", size: 44, spellcheck: "false" });
  const go = node("button", "Run", { type: "button" }), stop = node("button", "Stop", { type: "button", disabled: "" });
  const labelled = (text, field) => { const label = node("label", text + " "); label.append(field); return label; };
  choices.append(labelled("sample", sample), labelled("castsim", words), go, stop);
  const text = node("textarea", "", { rows: 14, spellcheck: "false", "aria-label": "program", wrap: "off" });
  const state = node("p", "", { role: "status" });
  const report = node("pre", "", { tabindex: "0" }), page = node("iframe", "", { title: "page of the run", hidden: "", sandbox: "allow-scripts" });
  if (built.missing.length) {
    const lacks = node("p");
    lacks.append("Missing here: ", ...built.missing.flatMap((name) => [node("code", name), " "]),
      "(not to be had when this site was built). A stand-in computes small programs.");
    place.append(lacks);
  }
  place.append(choices, text, state, report, page);

  const name = () => (sample.value.endsWith(".tpc") ? "program.tpc" : "program.pto");
  const usual = () => `run ${name()} --timing-only`;
  sample.append(...Object.keys(built.samples).map((each) => new Option(each, each)));
  const choose = () => { text.value = built.samples[sample.value]; words.value = usual(); };
  sample.addEventListener("change", choose);

  const packed = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))));
  const unpacked = (value) => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(value), (c) => c.charCodeAt(0))));
  const keep = () => {
    const own = built.samples[sample.value] === text.value ? {} : { text: text.value };
    history.replaceState(null, "", `#${packed({ sample: sample.value, words: words.value, ...own })}`);
  };
  try {
    const kept = unpacked(location.hash.slice(1));
    sample.value = kept.sample in built.samples ? kept.sample : Object.keys(built.samples)[0];
    choose();
    text.value = kept.text ?? text.value;
    words.value = kept.words ?? words.value;
  } catch { choose(); }

  const files = new Map();
  window.PLAYGROUND = { add: (file, data) => files.set(file, Uint8Array.from(atob(data), (c) => c.charCodeAt(0))) };
  const load = (file) => new Promise((done, failed) => {
    if (files.has(file)) { done(); return; }
    const script = node("script", "", { src: `playground/${file}.js` });
    script.addEventListener("load", done);
    script.addEventListener("error", () => failed(new Error(`${file} cannot be loaded`)));
    document.head.append(script);
  });

  // Runs in the worker, behind Pyodide's own script: answers what that fetches from memory.
  const serve = () => {
    let ready;
    self.onmessage = async ({ data }) => {
      try {
        if (data.files) ready = start(data.files);
        const session = await ready;
        if (!data.line) { self.postMessage({ started: true }); return; }
        const result = session.execute(data.line, data.name, data.program);
        const [code, said, html] = result.toJs();
        result.destroy();
        self.postMessage({ code, said, html });
      } catch (error) { self.postMessage({ code: 1, said: String(error), html: "" }); }
    };
    async function start(files) {
      const kinds = { wasm: "application/wasm", json: "application/json" };
      self.fetch = async (asked) => {
        const file = String(asked.url ?? asked).split("/").pop();
        if (!files.has(file)) return new Response("", { status: 404 });
        return new Response(files.get(file), { headers: { "Content-Type": kinds[file.split(".").pop()] ?? "application/octet-stream" } });
      };
      // Pages from disk have no workers that are modules. What Pyodide needs of one is that it imports, as these can.
      self.importScripts = () => { throw new TypeError("this worker imports modules"); };
      const imported = (file) => import(URL.createObjectURL(new Blob([files.get(file)], { type: "text/javascript" })));
      const { loadPyodide } = await imported("pyodide.mjs");
      const { default: createPyodideModule } = await imported("pyodide.asm.mjs");
      const py = await loadPyodide({ indexURL: "https://playground.invalid/", createPyodideModule });
      for (const [file, bytes] of files) {
        if (file.endsWith(".whl")) py.unpackArchive(bytes, "wheel");
        else if (file.endsWith(".py")) py.FS.writeFile(`/home/pyodide/${file}`, bytes);
      }
      return py.pyimport("session");
    }
  };

  let worker, waiting;
  const answer = ({ data }) => waiting(data);
  const ask = (message) => new Promise((done) => { waiting = done; worker.postMessage(message); });
  async function started() {
    if (worker) return;
    for (const [place, file] of built.parts.entries()) {
      state.textContent = `Loading ${place + 1} of ${built.parts.length} parts, ${Math.round(built.bytes / 1e6)} MB in all ...`;
      await load(file);
    }
    worker = new Worker(URL.createObjectURL(new Blob([`(${serve})();`], { type: "text/javascript" })));
    worker.onmessage = answer;
    worker.onerror = (event) => waiting?.({ code: 1, said: event.message, html: "" });
    state.textContent = "Starting Python ...";
    const first = await ask({ files });
    if (!first.started) { worker.terminate(); worker = undefined; throw new Error(first.said); }
  }
  async function run() {
    const begun = performance.now();
    go.disabled = true;
    stop.disabled = false;
    keep();
    report.textContent = "";
    page.hidden = true;
    try {
      await started();
      state.textContent = "Running; the first command also loads castsim ...";
      const { code, said, html } = await ask({ line: words.value, name: name(), program: text.value });
      report.textContent = said;
      if (html) { page.srcdoc = html; page.hidden = false; }
      state.textContent = `Exit code ${code}, ${((performance.now() - begun) / 1000).toFixed(1)} s.`;
    } catch (error) { state.textContent = String(error.message ?? error); }
    go.disabled = false;
    stop.disabled = true;
  }
  go.addEventListener("click", run);
  stop.addEventListener("click", () => {
    worker?.terminate();
    worker = undefined;
    waiting?.({ code: 1, said: "stopped", html: "" });
  });
})();
