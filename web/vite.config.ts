// Builds of the same components: one script that runs in a file opened by double click, four times with other
// views (panels.js, weights.js, paths.js, page.js: src/bundles), widget.js, the module that a notebook loads, and live.js, which a
// server gives to a browser. All go into the Python package, which ignores them in git and carries them in a wheel.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";
import { licences } from "./licences.mjs";

/** Spell what would end a script element, or hide a part of it, so that it does not: in the strings of the code alone. */
function inline(): Plugin {
  return {
    name: "inline",
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        chunk.code = chunk.code.replaceAll("<!--", "\\x3C!--").replace(/<(?=\/?script)/gi, "\\x3C");
      }
    },
  };
}

/** Leave out what Svelte has for pages that a server made, for components of its older kinds, and for `style:name=` beside a style: we have
 *  none, and the bundler cannot know it of variables that could be set. Its errors are named without the address of the page that explains them. */
function without(): Plugin {
  return {
    name: "without",
    enforce: "pre",
    transform(code, id) {
      if (/svelte\/src\/internal\/(client|shared)\/(errors|warnings)\.js$/.test(id)) return code.replaceAll("https://svelte.dev/e/", "svelte ");
      if (id.endsWith(".svelte") && /\sstyle:[\w-]+[=\s>]/.test(code.replace(/<style>.*<\/style>/s, ""))) this.error(`${id}: style:name= is left out here; write style="name:…"`);
      const styles = /\bif \((next_)?styles\) \{/;
      if (/svelte\/src\/internal\/(client\/dom\/elements\/style|shared\/attributes)\.js$/.test(id)) {
        if (!styles.test(code)) this.error(`${id}: Svelte is another than this was written for`);
        return code.replace(styles, "if (false) {");
      }
      if (!/svelte\/src\/internal\/(client\/dom\/hydration|flags\/index)\.js$/.test(id)) return null;
      const never = /\bexport let (hydrating|\w+_mode_flag) = false;/g;
      if (!never.test(code)) this.error(`${id}: Svelte is another than this was written for`);
      return code.replace(never, "export const $1 = false;").replace(/^\t(hydrating|\w+_mode_flag) = \w+;$/gm, "");
    },
  };
}

const ENTRIES: Record<string, string> = {
  page: "src/bundles/page.ts",
  panels: "src/bundles/panels.ts",
  weights: "src/bundles/weights.ts",
  paths: "src/bundles/paths.ts",
  widget: "src/widget.ts",
  live: "src/live/live.ts",
};

export default defineConfig(({ mode }) => ({
  plugins: [svelte({ compilerOptions: { runes: true, discloseVersion: false, css: "external", cssHash: ({ hash, css }) => `rg${hash(css).slice(0, 4)}` } }), without(), inline(), licences()], // a short name: it stands in every element
  build: {
    outDir: "../src/regard/web/built",
    emptyOutDir: mode === "page",
    target: ["chrome111", "firefox115", "safari16.4"], // DecompressionStream, and colours mixed in CSS
    cssCodeSplit: false,
    lib: {
      entry: ENTRIES[mode]!,
      formats: [mode === "widget" ? ("es" as const) : ("iife" as const)],
      name: "regardPage",
      fileName: () => `${mode}.js`,
      cssFileName: mode,
    },
    rolldownOptions: {
      output: { minify: true }, // blanks too, which a library's module keeps else
      treeshake: { moduleSideEffects: [{ test: /svelte.*\/custom-element\.js$/, sideEffects: false }] }, // we have none
    },
  },
}));
