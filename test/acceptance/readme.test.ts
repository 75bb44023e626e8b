import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { provideSampleTools } from '../support/proxies.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

const root = join(import.meta.dirname, '../..');
const readme = await readFile(join(root, 'README.md'), 'utf8');

const blocks = (text: string) =>
  [...text.matchAll(/```(ts|sh)\n([\s\S]*?)```/g)].map(([, language, code]) => ({ language: language!, code: code! }));

/** Every example of the README that talks to a service, by language. */
const examples = blocks(readme)
  .filter(({ code }) => code.includes('127.0.0.1:3000'))
  .map((example) => ({ ...example, title: example.code.trim().split('\n')[0]! }));

/** The pages of docs/ that have examples. Each is one program, from top to bottom, after what its reader has by then. */
const docs = [
  'auth-connections',
  'connect',
  'credentials',
  'events',
  'extensions',
  'from-browserless',
  'from-steel',
  'inside',
  'pools',
  'profiles',
  'proxies',
  'telemetry',
  'using-a-session',
];
const BEFORE = `
import fs from 'node:fs';
import http from 'node:http';
import Kernel from '@onkernel/sdk';
import yazl from 'yazl';
const corral = new Kernel({ apiKey: process.env.KEY, baseURL: 'http://127.0.0.1:3000' });
const { session_id: id } = await corral.browsers.create({ headless: true, timeout_seconds: 600 });
const work = async (address) => console.log(address);
const another = { id: '' };
for (const name of ['my-extension', 'another']) {
  const zip = new yazl.ZipFile();
  zip.addBuffer(Buffer.from(JSON.stringify({ name, version: '1', manifest_version: 3 })), 'manifest.json');
  zip.end();
  await new Promise((done) => zip.outputStream.pipe(fs.createWriteStream(name + '.zip')).on('close', done));
}
`;

let pages: Pages;
let service: Service;
beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: `${pages.host},127.0.0.1` });
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

describe('the README', () => {
  test('has examples', () => {
    expect(examples.map(({ language }) => language)).toEqual(['sh', 'ts']);
  });

  // Word for word, but for the addresses: the service's is the test's, and example.com is a page of ours.
  test.each(examples)('$title', async ({ language, code }) => expect(await run(language, code)).toEqual(fine));
});

describe('docs', () => {
  test.each(docs)('%s.md', async (name) => {
    const page = await readFile(join(root, `docs/${name}.md`), 'utf8');
    const program = blocks(page).flatMap(({ language, code }) => (language === 'ts' ? [code] : []));
    expect(program).not.toEqual([]);
    const text = program
      .join('')
      .replace('size: 10', 'size: 1')
      .replace('proxy.example.com', '127.0.0.1')
      .replace('imap.example.com', '127.0.0.1')
      .replace('https://vault.example.com:8200', 'http://127.0.0.1:3128');
    expect(await run('ts', BEFORE + text)).toEqual(fine);
    for (const { language, code } of blocks(page))
      if (language === 'sh' && code.includes('YOUR_KEY')) expect(await run('sh', code)).toEqual(fine);
    for (const { session_id } of (await service.call('GET', '/browsers')).body)
      await service.call('DELETE', `/browsers/${session_id}`);
  });
});

/** Samples of the reference that follow from each other: they find the session by the name that the first one gives it. */
const sampled = [
  'post /browsers',
  'get /browsers',
  'post /browsers/{id}/process/exec',
  'put /browsers/{id}/fs/write_file',
  'post /browsers/{id}/fs/upload',
  'get /browsers/{id}/fs/read_file',
  'get /browsers/{id}/fs/list_files',
  'post /browsers/{id}/playwright/execute',
  'post /browsers/{id}/computer/screenshot',
  'delete /browsers/{id_or_name}',
];

describe('the samples of /docs', () => {
  let provided = false;
  // An installation may have to wait for another one.
  beforeAll(async () => void (provided = await provideSampleTools()), 600_000);

  test.each(['TypeScript', 'Python', 'curl'])('in %s do their work as they stand', async (label) => {
    expect(provided).toBe(true);
    const { paths } = (await (await fetch(`${service.url}/docs/reference.json`)).json()) as {
      paths: Record<string, Record<string, { 'x-codeSamples': { label: string; source: string }[] }>>;
    };
    const cwd = await mkdtemp(join(tmpdir(), 'corral-samples-'));
    try {
      await symlink(join(root, 'node_modules'), join(cwd, 'node_modules'));
      await writeFile(join(cwd, 'notes.txt'), 'a note');
      const env = { KERNEL_API_KEY: service.key };
      for (const name of sampled) {
        const [method, path] = name.split(' ') as [string, string];
        const { source } = paths[path]![method]!['x-codeSamples'].find((sample) => sample.label === label)!;
        const text = source.replaceAll('https://example.com', pages.url);
        await writeFile(join(cwd, 'sample.mjs'), text);
        const [command, args] = {
          TypeScript: [process.execPath, ['sample.mjs']] as const,
          Python: ['/usr/bin/python3', ['-c', text]] as const,
          curl: ['sh', ['-ec', text]] as const,
        }[label]!;
        expect(await finish(command, [...args], cwd, env), name).toEqual(fine);
      }
      expect((await readdir(cwd)).sort()).toEqual(['node_modules', 'notes.txt', 'sample.mjs', 'screenshot.png']);
    } finally {
      await rm(cwd, { recursive: true, force: true });
    }
  });
});

describe('examples', () => {
  const programs = readdirSync(join(root, 'examples')).filter((file) => file.endsWith('.mjs') && file !== 'client.mjs');
  test('are all listed', async () => {
    const list = await readFile(join(root, 'examples/README.md'), 'utf8');
    expect(programs.filter((file) => !list.includes(`(${file})`))).toEqual([]);
    expect(programs).toHaveLength(5);
  });

  test.each(programs)('%s', async (file) =>
    expect(await finish(process.execPath, [join(root, 'examples', file), pages.url])).toEqual(fine),
  );
});

describe('every page', () => {
  const names = [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'CHANGELOG.md',
    'examples/README.md',
  ];
  for (const file of readdirSync(join(root, 'docs'))) if (file.endsWith('.md')) names.push(`docs/${file}`);
  test.each(names)('%s has no link to a file that is not there', async (name) => {
    const text = await readFile(join(root, name), 'utf8');
    const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target]) => target!);
    expect(targets.filter((target) => !existsSync(join(root, dirname(name), target)))).toEqual([]);
  });

  test('ARCHITECTURE.md has no path of a file that is not there', async () => {
    const text = await readFile(join(root, 'ARCHITECTURE.md'), 'utf8');
    const paths = [...text.matchAll(/`(?!dist\/)([\w-]+(?:\/[\w.-]+)+\.(?:ts|tsx|mjs|sql|js|html|md))`/g)].map(
      ([, path]) => path!,
    );
    expect(paths.length).toBeGreaterThan(100);
    expect(paths.filter((path) => !['src', '.'].some((from) => existsSync(join(root, from, path))))).toEqual([]);
  });
});

const fine = { exit: 0, trouble: '' };

async function run(language: string, code: string): Promise<{ exit: number; trouble: string }> {
  const text = code
    .replaceAll('//127.0.0.1:3000', service.url.replace('http:', ''))
    .replaceAll('https://example.com', pages.url)
    .replaceAll('YOUR_KEY', service.key);
  const file = join(root, `readme-example-${process.pid}-${Math.random().toString(36).slice(2)}.mjs`);
  const cwd = await mkdtemp(join(tmpdir(), 'corral-docs-'));
  if (language === 'ts') await writeFile(file, text);
  try {
    const [command, args] = language === 'ts' ? [process.execPath, [file]] : ['sh', ['-ec', text]];
    return await finish(command, args, cwd);
  } finally {
    await rm(file, { force: true });
    await rm(cwd, { recursive: true, force: true });
  }
}

async function finish(
  command: string,
  args: string[],
  cwd = root,
  variables: Record<string, string> = { KEY: service.key, CORRAL_URL: service.url },
): Promise<{ exit: number; trouble: string }> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...variables } });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const [exit] = (await once(child, 'close')) as [number];
  return { exit, trouble: exit !== 0 || /"code":|rror:/.test(output) ? output : '' };
}
