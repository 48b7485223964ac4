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

  if (built.missing) {
    const words = node("p", `This playground runs no samples. When the site was built, a part was missing: ${built.missing}.`);
    place.replaceChildren(words);
    return;
  }

  const choices = node("p", "", { class: "glance-choices" });
  const sample = node("select", "", { id: "playground-sample" }), words = node("input", "", { id: "playground-words", size: 44, spellcheck: "false" });
  const go = node("button", "Run", { type: "button" }), stop = node("button", "Stop", { type: "button", disabled: "" });
  const labelled = (text, field) => { const label = node("label", text + " "); label.append(field); return label; };
  choices.append(labelled("Sample", sample), labelled("castsim", words), go, stop);
  const text = node("textarea", "", { rows: 14, spellcheck: "false", "aria-label": "Program", wrap: "off" });
  const state = node("p", "", { role: "status" });
  const report = node("pre", "", { tabindex: "0", "aria-label": "Report" }), page = node("iframe", "", { title: "Page of the run", hidden: "", sandbox: "allow-scripts" });
  place.append(choices, text, state, report, page);

  const chosen = () => built.samples[sample.value];
  sample.append(...Object.keys(built.samples).map((each) => new Option(each, each)));
  const show = () => { text.hidden = !chosen().text; };
  const choose = () => { text.value = chosen().text; words.value = chosen().line; show(); };
  sample.addEventListener("change", choose);

  const packed = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))));
  const unpacked = (value) => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(value), (c) => c.charCodeAt(0))));
  const keep = () => {
    const own = chosen().text === text.value ? {} : { text: text.value };
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
  window.PLAYGROUND = {
    add: (file, data) => {
      const characters = atob(data), bytes = new Uint8Array(characters.length);
      for (let i = 0; i < bytes.length; i += 1) bytes[i] = characters.charCodeAt(i);
      files.set(file, bytes);
    },
  };
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
    async function start(parts) {
      const kinds = { js: "text/javascript", wasm: "application/wasm", json: "application/json" };
      const files = new Map();
      await Promise.all([...parts].map(async ([file, bytes]) => {
        const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
        files.set(file, new Blob([await new Response(plain).arrayBuffer()], { type: kinds[file.split(".").pop()] ?? "application/octet-stream" }));
      }));
      self.fetch = async (asked) => {
        const file = files.get(String(asked.url ?? asked).split("/").pop());
        return file ? new Response(file) : new Response("", { status: 404 });
      };
      for (const file of ["pyodide.js", "pyodide.asm.js"]) importScripts(URL.createObjectURL(files.get(file)));
      const py = await loadPyodide({ indexURL: "https://playground.invalid/" });
      py.unpackArchive(await files.get("packages.zip").arrayBuffer(), "zip", { extractDir: "/lib/python3.12/site-packages" });
      py.FS.writeFile("/home/pyodide/session.py", new Uint8Array(await files.get("session.py").arrayBuffer()));
      py.pyimport("importlib").invalidate_caches();
      return py.pyimport("session");
    }
  };

  let worker, waiting;
  const answer = ({ data }) => waiting(data);
  const ask = (message) => new Promise((done) => { waiting = done; worker.postMessage(message); });
  async function started() {
    if (worker) return;
    for (const [place, file] of built.parts.entries()) {
      state.textContent = `Loading part ${place + 1} of ${built.parts.length} (${Math.round(built.bytes / 1e6)} MB in all) ...`;
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
      state.textContent = "Running ...";
      const { code, said, html } = await ask({ line: words.value, name: chosen().file, program: text.value });
      report.textContent = said;
      if (html) { page.srcdoc = html; page.hidden = false; }
      state.textContent = `Exit code ${code} after ${((performance.now() - begun) / 1000).toFixed(1)} s.`;
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
