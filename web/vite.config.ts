// Two builds of the same components: page.js, one script that runs in a file opened by double click, and widget.js, the
// module that a notebook loads. Both go into the Python package, which ignores them in git and carries them in a wheel.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig(({ mode }) => ({
  plugins: [svelte({ compilerOptions: { css: "external" } })],
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
