import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Unit tests stand beside the file they test; acceptance tests run the real service and real Chromium.
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    // Two cores: more than two files at once only makes browsers slow and tests flaky.
    maxWorkers: 2,
    // CI machines are shared: one that stood still for a while gets a second chance, and the report shows that it took it.
    retry: process.env['CI'] ? 1 : 0,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Dot-free and greppable; every test name is a sentence about the product.
    reporters: ['default'],
  },
});
