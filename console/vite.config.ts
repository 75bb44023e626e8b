import { defineConfig } from 'vite';

export default defineConfig({
  base: '/console/',
  build: {
    manifest: true,
    target: 'es2022',
    assetsInlineLimit: 0, // the policy of the page allows no data: fonts or scripts
    chunkSizeWarningLimit: 2000, // scripts/console.mjs bounds what the first screen loads
    modulePreload: { polyfill: false },
    // Each file of the components says "use client", which means nothing without a server that renders.
    rolldownOptions: { checks: { moduleLevelDirective: false } },
  },
});
