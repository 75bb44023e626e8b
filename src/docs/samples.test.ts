import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Kernel from '@onkernel/sdk';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { examples } from './examples.ts';
import { pageReference } from './reference.ts';
import type { Sample } from './samples.ts';

const root = join(import.meta.dirname, '../..');
const document = JSON.parse(await readFile(join(root, 'openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: object }> } }>>;
};
const origin = 'http://127.0.0.1:3000';
const shown = pageReference(document, origin) as {
  paths: Record<string, Record<string, { tags: string[]; summary: string; 'x-codeSamples': Sample[] }>>;
  tags: { name: string }[];
};
const operations = Object.entries(shown.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method, path, name: `${method} ${path}`, ...operation })),
);
const sourceIn = (language: string, { 'x-codeSamples': samples }: (typeof operations)[number]) =>
  samples.find(({ label }) => label === language)!.source;

test('every example is one of an operation', () => {
  expect(Object.keys(examples).filter((name) => !operations.some((operation) => operation.name === name))).toEqual([]);
});

test('every operation is in a chapter, and browsers come first', () => {
  const chapters = shown.tags.map(({ name }) => name);
  expect(chapters[0]).toBe('browsers');
  expect(operations.filter(({ tags }) => !chapters.includes(tags[0]!)).map(({ name }) => name)).toEqual([]);
});

test('every example of a body is valid for its operation', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'reference', ...document });
  const wrong = Object.entries(examples).flatMap(([name, { body = {} }]) => {
    const [method, path] = name.split(' ') as [string, string];
    if (!document.paths[path]![method]!.requestBody?.content['application/json']) return [];
    const pointer = `#/paths/${path.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')}`;
    const check = ajv.compile({ $ref: `reference${pointer}/${method}/requestBody/content/application~1json/schema` });
    return check(body) ? [] : [`${name}: ${ajv.errorsText(check.errors)}`];
  });
  expect(wrong).toEqual([]);
});

describe('a sample in TypeScript', () => {
  test('fits the types of the SDK, for every operation', async () => {
    const folder = await mkdtemp(join(root, 'node_modules', '.samples-')); // where the compiler finds the SDK
    try {
      for (const [index, operation] of operations.entries())
        await writeFile(join(folder, `${index}.ts`), `// ${operation.name}\n${sourceIn('TypeScript', operation)}`);
      const compilerOptions = {
        module: 'nodenext',
        target: 'es2022',
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        types: ['node'],
        moduleDetection: 'force',
      };
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
      const compiler = join(root, 'node_modules', '.bin', 'tsc');
      const failed = await promisify(execFile)(compiler, ['-p', folder]).catch((error: { stdout: string }) => error);
      expect(failed.stdout).toBe('');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  /** Runs a sample with a server that accepts everything, and returns the request. */
  async function sentBy(source: string, answerType: string): Promise<string[]> {
    const sent: string[] = [];
    const fetch = async (input: string | URL | Request, init?: RequestInit) => {
      const url = new URL(input instanceof Request ? input.url : input);
      if (url.protocol === 'data:') return new Response(''); // the SDK finds out whether forms work here
      sent.push(`${init?.method ?? 'GET'} ${url.pathname}`.toLowerCase());
      return new Response(answerType === 'text/event-stream' ? '' : '[]', { headers: { 'Content-Type': answerType } });
    };
    const client = new Kernel({ apiKey: 'a-key', baseURL: origin, fetch });
    const run = source.slice(source.indexOf('\n', source.indexOf('new Kernel')));
    const AsyncFunction = (async () => {}).constructor as new (
      ...words: string[]
    ) => (...given: unknown[]) => Promise<void>;
    const blob = () => new Blob(['text']);
    const given = {
      client,
      console: { log: () => {} },
      process: { env: new Proxy({}, { get: (_, name) => String(name) }) },
      createReadStream: (name: string) => new File(['text'], name),
      openAsBlob: async () => blob(),
      writeFile: async () => {},
    };
    const code = run.replaceAll('!', '').replaceAll(/<(Response|AsyncIterable<object>)>/g, '');
    await new AsyncFunction(...Object.keys(given), code)(...Object.values(given));
    return sent;
  }

  test('sends the request of its operation', async () => {
    const wrong: string[] = [];
    for (const operation of operations) {
      // The type of an operation has only what samples are made of.
      const { responses } = operation as unknown as { responses: Record<string, { content?: object }> };
      const good = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
      const [type = 'application/json'] = Object.keys(good?.content ?? {});
      const [sent] = await sentBy(sourceIn('TypeScript', operation), type);
      const wanted = new RegExp(`^${operation.method} ${operation.path.replace(/\{\w+\}/g, '[^/]+')}$`);
      if (!wanted.test(sent ?? '')) wrong.push(`${operation.name}: ${sent ?? 'nothing'}`);
    }
    expect(wrong).toEqual([]);
  });
});

test('the shell can parse the shell sample of every operation', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'corral-samples-'));
  try {
    const script = join(folder, 'all.sh');
    await writeFile(script, operations.map((operation) => sourceIn('curl', operation)).join('\n'));
    const { stderr } = await promisify(execFile)('sh', ['-n', script]);
    expect(stderr).toBe('');
  } finally {
    await rm(folder, { recursive: true });
  }
  const secret = operations.find(({ name }) => name === 'post /credentials')!;
  expect(sourceIn('curl', secret)).toContain(`"password":"'"$SHOP_PASSWORD"'"`);
});
