// Builds one HTML document with script and style inside. The policy names their hashes, so that nothing else can run; the
// document is embedded compressed. Written for `cargo xtask web`, which checks that the committed result is current.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/// The document, compressed. Versions of node compress differently: what is there stays if it holds the same.
const compressed = (html) => {
  const file = new URL("dist/index.html.gz", import.meta.url);
  const known = existsSync(file) ? readFileSync(file) : undefined;
  return known && gunzipSync(known).toString() === html ? known : gzipSync(html, { level: 9 });
};

const single = {
  name: "single-document",
  enforce: "post",
  generateBundle(_, bundle) {
    const page = bundle["index.html"];
    const scripts = [];
    const styles = [];
    for (const [name, part] of Object.entries(bundle)) {
      if (part.type === "chunk") {
        // A closing tag inside a string of the script would end it.
        scripts.push(part.code.replaceAll("</script", "<\\/script").trim());
        delete bundle[name];
      } else if (name.endsWith(".css")) {
        styles.push(String(part.source).trim());
        delete bundle[name];
      }
    }
    if (scripts.length !== 1 || styles.length !== 1) throw new Error("expected one script and one style");
    let html = String(page.source)
      .replace(/\s*<script type="module"[^>]*><\/script>/g, "")
      .replace(/\s*<link rel="stylesheet"[^>]*>/g, "")
      .replace(/\n\s*/g, "\n");
    html = html.replace("</head>", () => `<style>${styles[0]}</style>\n</head>`);
    html = html.replace("</body>", () => `<script type="module">${scripts[0]}</script>\n</body>`);
    const policy = [
      "default-src 'none'",
      `script-src ${hash(scripts[0])}`,
      `style-src ${hash(styles[0])}`,
      "img-src data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ].join("; ");
    delete bundle["index.html"];
    this.emitFile({ type: "asset", fileName: "policy.txt", source: policy + "\n" });
    this.emitFile({ type: "asset", fileName: "index.html.gz", source: compressed(html) });
  },
};

export default {
  plugins: [single],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: false, cssCodeSplit: false, emptyOutDir: false },
};
