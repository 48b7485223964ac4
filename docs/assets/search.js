// Dashes before a word exclude it from a search; whoever looks for an option means the option.
for (const kind of ["input", "keyup"]) {
  document.addEventListener(kind, ({ target }) => {
    if (target.name === "query" && /(^|\s)-+\w/.test(target.value)) target.value = target.value.replace(/(^|\s)-+(?=\w)/g, "$1");
  }, true);
}
