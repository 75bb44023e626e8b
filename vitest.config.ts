import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Plugin } from 'vite';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { SlowestFiles } from './test/support/slowest-files.ts';

/** The files that take longest, longest first: begun first, they leave no worker with a long file at the end. Others go by their size. */
const longest = [
  'acceptance/logins-causes',
  'acceptance/console-tasks',
  'acceptance/soak',
  'acceptance/start-and-stop',
  'acceptance/live-view',
  'attacks/growing-work',
  'attacks/starving',
  'acceptance/one-time-codes',
  'acceptance/readme',
  'acceptance/profiles',
  'acceptance/replays',
  'acceptance/pool-nodes',
  'acceptance/nodes',
  'attacks/disk',
  'attacks/memory',
  'browser/launch',
  'store/embedded',
  'acceptance/curl',
  'attacks/bidi-messages',
  'acceptance/session-faults',
  'acceptance/logins-gallery',
  'acceptance/session-nodes',
  'acceptance/deployments',
  'attacks/small-disk',
  'attacks/silence',
  'acceptance/login-apps',
  'acceptance/deployment-nodes',
  'acceptance/sessions',
  'acceptance/live-view-screens',
  'acceptance/profile-faults',
  'acceptance/auth-connections',
  'acceptance/session-life',
  'acceptance/cli',
  'acceptance/fs',
  'acceptance/mcp',
  'acceptance/auth-nodes',
  'acceptance/logins-flow',
  'attacks/cdp-messages',
  'attacks/floods',
  'attacks/passwords',
  'acceptance/pool-belongings',
  'acceptance/console',
  'acceptance/extensions',
  'acceptance/inside-nodes',
  'acceptance/cdp-clients',
  'forms/forms',
  'attacks/project-caps',
  'acceptance/logins-hostile',
  'attacks/large-lists',
  'attacks/docs',
  'acceptance/session-sockets',
  'acceptance/pool-reset',
  'acceptance/playwright',
  'acceptance/pools',
  'acceptance/process',
  'acceptance/proxies',
  'acceptance/hang-ups',
  'acceptance/unasked',
  'acceptance/stealth',
  'attacks/headers',
  'acceptance/doors',
  'acceptance/hosted-login',
  'attacks/descriptors',
  'attacks/slow-text',
  'attacks/telemetry',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = longest.findIndex((name) => moduleId.endsWith(`${name}.test.ts`));
      return found === -1 ? longest.length : found;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b)); // it is stable
  }
}

const root = import.meta.dirname;

/**
 * `npm test` builds first, and the tests that run services then import what was built: the joined service (scripts/join.mjs), or the file
 * of a module that is no part of it. Sources would be fetched from vite and evaluated module by module, some six hundred in each of a
 * hundred processes. Without `npm test` the tests import the sources.
 */
const fromBuild: Plugin = {
  name: 'from-build',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!importer || !source.startsWith('.') || !source.endsWith('.ts')) return undefined;
    const path = relative(join(root, 'src'), resolve(dirname(importer), source));
    if (path.startsWith('..') || path.endsWith('.test.ts') || path.includes('/web/')) return undefined;
    const built = path.replace(/\.ts$/, '.js');
    const joined = join(root, 'dist/joined/modules', built);
    return existsSync(joined) ? joined : join(root, 'dist', built);
  },
};

/** Tests beside their files that start browsers, database servers or other programs: each file gets a process of its own. */
const alone = [
  'src/chromium/bidi/bidi.test.ts',
  'src/chromium/browser/{launch,profile-archive}.test.ts',
  'src/chromium/egress/gateway.chromium.test.ts',
  'src/chromium/forms/forms.test.ts',
  'src/chromium/guest/{guest,unsandboxed}.test.ts',
  'src/chromium/guest/inside/*-watch.test.ts',
  'src/chromium/sandbox/{cgroup,disk-use,memory-watch,outside,owners,process-tree,sandbox,scripts}.test.ts',
  'src/chromium/telemetry/collector.test.ts',
  'src/store/{embedded,binaries,anchor,backup,migrate,tcp}.test.ts',
];

/**
 * Tests in which something has to be quick (the guard of the disk or of memory, the looks of a watch), or that move hundreds of megabytes:
 * with three files at once on two cores, they came late.
 */
const prompt = [
  'test/attacks/{disk,memory,starving,watch-links}.test.ts',
  'test/acceptance/{fs-watch,cdp-clients,session-sockets}.test.ts',
  'src/chromium/guest/inside/*-watch.test.ts',
  'src/chromium/sandbox/memory-watch.test.ts',
];

/** Acceptance tests run the real service and real Chromium. */
const services = {
  extends: true as const,
  plugins: process.env['CORRAL_TEST_BUILD'] ? [fromBuild] : [],
  test: { server: { deps: { external: [/^(?!.*\/node_modules\/).*\/dist\//] } } },
};

export default defineConfig({
  test: {
    globalSetup: ['test/support/vitest.setup.ts'],
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // The tests of a file that run at once spend their time waiting, all of them for the same seconds.
    maxConcurrency: 10,
    // A test and a poll end when what they wait for is there. The bounds are for what never comes; a busy machine takes ten times as long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Dot-free and greppable; every test name is a sentence about the product.
    reporters: ['default', new SlowestFiles()],
    projects: [
      {
        extends: true,
        test: {
          // Unit tests stand beside the file they test. They keep nothing in modules, so the files of a worker share what they import.
          name: 'units',
          include: ['src/**/*.test.ts', 'console/src/**/*.test.ts'],
          exclude: alone,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        ...services,
        test: {
          ...services.test,
          // Each keeps some two thirds of a core busy, and waits for the rest of its time: three fill two cores.
          name: 'services',
          include: ['test/**/*.test.ts', ...alone],
          exclude: [...configDefaults.exclude, ...prompt],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        ...services,
        test: { ...services.test, name: 'prompt', include: prompt, maxWorkers: 2, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
