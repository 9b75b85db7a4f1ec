// Two builds of the same components: page.js, one script that runs in a file opened by double click, and widget.js, the
// module that a notebook loads. Both go into the Python package, which ignores them in git and carries them in a wheel.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

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

export default defineConfig(({ mode }) => ({
  plugins: [svelte({ compilerOptions: { css: "external" } }), inline()],
  build: {
    outDir: "../src/regard/web/built",
    emptyOutDir: mode === "page",
    target: ["chrome111", "firefox115", "safari16.4"], // DecompressionStream, and colours mixed in CSS
    cssCodeSplit: false,
    lib: {
      entry: mode === "page" ? "src/page.ts" : "src/widget.ts",
      formats: [mode === "page" ? ("iife" as const) : ("es" as const)],
      name: "regardPage",
      fileName: () => `${mode}.js`,
      cssFileName: mode,
    },
  },
}));
