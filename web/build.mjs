/** Builds the script of the page and of the widget, and their style, into the package; `--check` compares instead. */

import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const out = new URL("../src/jointwise/explore/bundle/", import.meta.url);
const common = { bundle: true, minify: true, target: "es2022", charset: "ascii", legalComments: "none", write: false };
const made = await Promise.all([
  build({ ...common, entryPoints: ["src/main.ts"], format: "esm" }),
  build({ ...common, entryPoints: ["src/page/style.css"] }),
]);
const names = ["explore.js", "explore.css"];
let stale = false;
for (const [i, { outputFiles }] of made.entries()) {
  const file = new URL(names[i], out);
  // a script ends where its tag ends, so that must not stand inside it
  const text = outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  if (process.argv.includes("--check")) {
    const old = await readFile(file, "utf8").catch(() => "");
    if (old !== text) {
      console.error(`${names[i]} is not what the sources give: run npm run build in web/.`);
      stale = true;
    }
  } else {
    await writeFile(file, text);
  }
}
process.exit(stale ? 1 : 0);
