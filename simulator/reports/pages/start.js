// Builds the page from its data. Sections far below are drawn when they come near, so that the page is there at once.

page.build = () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { result } = data;
  Object.defineProperty(data, "result", { get: () => page.plain(result), enumerable: true });
  page.data = data;
  Object.assign(TONES, data.tones);
  SERIES.push(...data.series);
  page.paintTones();
  page.onTheme(page.paintTones);
  document.querySelector("h1").textContent = data.title;
  document.querySelector(".subtitle").textContent = data.subtitle;
  const theme = document.getElementById("theme");
  theme.addEventListener("click", () => page.nextTheme(theme));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const draw of page.themed) draw(); });
  const main = document.querySelector("main");
  const nav = document.querySelector("nav");
  for (const section of data.sections) {
    const found = page.make("section");
    found.id = section.name;
    const head = page.make("h2", "", section.title);
    head.id = `${section.name}-title`;
    found.setAttribute("aria-labelledby", head.id);
    page.add(found, head);
    for (const block of section.blocks) page.add(found, page.blocks[block.kind](block, section));
    page.add(main, found);
    const link = page.make("a", "", section.title);
    link.href = `#${section.name}`;
    page.add(nav, link);
  }
  page.startSearch();
  addEventListener("resize", () => { for (const resize of page.sized) resize(); });
  addEventListener("hashchange", page.followAddress);
  page.followAddress();
  document.documentElement.dataset.ready = "yes";
};

page.build();
