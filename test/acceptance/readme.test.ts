import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

const root = join(import.meta.dirname, '../..');
const readme = await readFile(join(root, 'README.md'), 'utf8');

/** Every example of the README that talks to a service, by language. */
const examples = [...readme.matchAll(/```(ts|sh)\n([\s\S]*?)```/g)]
  .map(([, language, code]) => ({ language: language!, code: code!, title: code!.trim().split('\n')[0]! }))
  .filter(({ code }) => code.includes('127.0.0.1:3000'));

let pages: Pages;
let service: Service;
beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

describe('the README', () => {
  test('has examples', () => {
    expect(examples.map(({ language }) => language)).toEqual(['sh', 'ts', 'ts', 'ts']);
  });

  // Word for word, but for the addresses: the service's is the test's, and example.com is a page of ours.
  test.each(examples)('$title', async ({ language, code }) => {
    const text = code.replaceAll('http://127.0.0.1:3000', service.url).replaceAll('https://example.com', pages.url);
    const file = join(root, `readme-example-${process.pid}-${Math.random().toString(36).slice(2)}.mjs`);
    if (language === 'ts') await writeFile(file, text);
    try {
      const [command, args] = language === 'ts' ? [process.execPath, [file]] : ['sh', ['-ec', text]];
      const child = spawn(command, args, { cwd: root, env: { ...process.env, KEY: service.key } });
      let output = '';
      child.stdout.on('data', (chunk) => (output += chunk));
      child.stderr.on('data', (chunk) => (output += chunk));
      const [exit] = (await once(child, 'close')) as [number];
      expect(exit, output).toBe(0);
      expect(output).not.toMatch(/"code":|rror:/);
    } finally {
      await rm(file, { force: true });
    }
  });
});
