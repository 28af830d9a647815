// Read formulas from the standard input, one JSON [TeX, whether it is displayed, macros] per line. Write for each a line
// of JSON: its HTML, or why KaTeX cannot typeset it.
const katex = require("./katex.min.js");
const { writeSync } = require("fs");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [tex, displayMode, macros] = JSON.parse(line);
  let answer;
  try {
    answer = { html: katex.renderToString(tex, { displayMode, macros, strict: false }) };
  } catch (error) {
    answer = { error: error.message };
  }
  writeSync(1, `${JSON.stringify(answer)}\n`);
});
