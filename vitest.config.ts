import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Unit tests stand beside the file they test; acceptance tests run the real service and real Chromium.
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/vitest.setup.ts'],
    pool: 'forks',
    // Two cores: more than two files at once only makes browsers slow and tests flaky.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A poll ends when what it waits for is there. The bound is for what never comes, and a second is no sign of that.
    expect: { poll: { timeout: 30_000 } },
    // Dot-free and greppable; every test name is a sentence about the product.
    reporters: ['default'],
  },
});
