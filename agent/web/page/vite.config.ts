import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Built into the Python package, beside the API that serves it. Nothing is inlined: the page's policy forbids it.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2022",
  },
});
