// The page "Casts at a glance": CHIPS, MODES and TILE come from casts.js, which the site's build writes.
(() => {
  "use strict";
  const place = document.getElementById("glance");
  const node = (tag, text, ...children) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  };
  const select = (id, label) => {
    const made = node("select");
    made.id = `glance-${id}`;
    made.addEventListener("change", () => show(id));
    const named = node("label", `${label} `, made);
    named.htmlFor = made.id;
    choices.append(named);
    return made;
  };
  const choices = node("p");
  choices.className = "glance-choices";
  const answer = node("div");
  answer.setAttribute("aria-live", "polite");
  const chip = select("chip", "chip"), from = select("from", "from"), to = select("to", "to");
  place.append(choices, answer);

  const unique = (words) => [...new Set(words)];
  const chosen = () => CHIPS.find((each) => each.name === chip.value);
  const found = (on) => on.casts.find((cast) => cast.src === from.value && cast.dst === to.value);
  const fill = (list, words, wanted) => {
    list.replaceChildren(...words.map((word) => new Option(word, word)));
    list.value = words.includes(wanted) ? wanted : words[0];
  };
  const table = (headings, rows) => {
    const line = (cells, tag) => node("tr", "", ...cells.map((cell) => (cell instanceof Node ? cell : node(tag, cell))));
    const made = node("table", "", node("thead", "", line(headings, "th")), node("tbody", "", ...rows.map((row) => line(row, "td"))));
    const frame = node("div", "", made);
    frame.className = "md-typeset__table";
    const scroll = node("div", "", frame);
    scroll.className = "md-typeset__scrollwrap";
    return scroll;
  };
  const SATURATION = {
    clamps: "numbers beyond the range become the nearest in it",
    on: "numbers beyond the range become the nearest in it",
    off: "see the results",
    "none: inf": "numbers beyond the range become infinities",
    "none: NaN": "numbers beyond the range become NaN",
    "none: low bits": "numbers beyond the range keep their low bits",
    "not needed": "every number of the source is in the range",
  };
  const BASES = {
    silicon: "measured on silicon", "other-silicon": "measured on another chip", "vendor-simulator": "of the vendor's simulator",
    document: "of a document", "vendor-model": "of the vendor's cost model", assumption: "assumed",
  };
  const rests = (time) => `${{ fitted: "fitted to figures ", validated: "confirmed by figures " }[time.fitted] || "by facts "}${BASES[time.basis]}`;
  const special = (cast, wanted) => {
    const row = cast.results.default.find((each) => each[0] === wanted);
    return row ? row[2] : "-";
  };

  function rules(cast) {
    const lines = [];
    if (!cast.default) lines.push("Nothing is rounded: every result is exact.");
    else {
      const usual = cast.default + (MODES[cast.default] ? ` (${MODES[cast.default]})` : "");
      lines.push(!cast.modes.length ? `Rounding: always ${usual}; other modes are ignored.` :
        `Rounding: ${cast.modes.join(", ")}; without a mode ${usual}.${cast.fallback ? ` Any other mode is taken as ${cast.fallback}.` : ""}`);
    }
    const says = SATURATION[cast.saturation];
    lines.push(`Saturation: ${cast.saturation}${says ? ` (${says})` : ""}; can be switched: ${cast.switchable}.`);
    if (cast.scratch) lines.push(`With a tmp tile the cast runs another sequence: ${cast.scratch}.`);
    lines.push(`Cycles of a ${TILE} tile, alone: ${cast.time.cycles.toLocaleString("en")}, bound by ${cast.time.bound}; ${rests(cast.time)}.`);
    return node("ul", "", ...lines.map((line) => node("li", line)));
  }

  function show(changed) {
    const on = chosen();
    if (changed !== "from" && changed !== "to") fill(from, unique(on.casts.map((cast) => cast.src)), from.value || "f32");
    if (changed !== "to") fill(to, on.casts.filter((cast) => cast.src === from.value).map((cast) => cast.dst), to.value);
    const cast = found(on);
    const parts = [node("h2", `${cast.src} -> ${cast.dst} on ${on.name} (${on.title})`), rules(cast)];
    for (const [asked, rows] of Object.entries(cast.results)) {
      const padded = rows.some((row) => row[5]);
      parts.push(node("h3", asked === "default" ? "Results, nothing switched" : `Results, saturation ${asked}`));
      parts.push(table(["input", "its bits", "result", "its bits", "outcome", ...(padded ? ["tiles with"] : [])],
        rows.map((row) => (padded ? row : row.slice(0, 5)))));
    }
    const others = CHIPS.filter((each) => found(each));
    parts.push(node("h3", "The same cast on every chip that has it"));
    parts.push(table(["chip", "rounds", "saturation", "inf gives", "NaN gives", `cycles of ${TILE}`], others.map((each) => {
      const same = found(each);
      return [each.name, same.default || "never", same.saturation, special(same, "inf"), special(same, "nan"), same.time.cycles.toLocaleString("en")];
    })));
    answer.replaceChildren(...parts);
    history.replaceState(null, "", `#${[on.name, cast.src, cast.dst].join(":")}`);
  }

  function fromAddress() {
    const [name, src, dst] = decodeURIComponent(location.hash.slice(1)).split(":");
    fill(chip, CHIPS.map((each) => each.name), CHIPS.some((each) => each.name === name) ? name : "a5");
    fill(from, unique(chosen().casts.map((cast) => cast.src)), src || "f32");
    fill(to, chosen().casts.filter((cast) => cast.src === from.value).map((cast) => cast.dst), dst || "e4m3fn");
    show("to");
  }
  window.addEventListener("hashchange", fromAddress);
  fromAddress();
})();
