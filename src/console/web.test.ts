import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { consoleWeb, frameOrigins } from './web.ts';

const folder = mkdtempSync(join(tmpdir(), 'corral-console-'));
mkdirSync(join(folder, 'assets'));
writeFileSync(join(folder, 'index.html'), '<meta property="csp-nonce" nonce="{{nonce}}">');
writeFileSync(join(folder, 'secret.js'), 'no');
writeFileSync(join(folder, 'assets/main-abc.js'), 'plain');
writeFileSync(join(folder, 'assets/main-abc.js.br'), 'brotli');
writeFileSync(join(folder, 'assets/main-abc.js.gz'), 'gzip');
writeFileSync(join(folder, 'assets/notes.txt'), 'no');
afterAll(() => rmSync(folder, { recursive: true }));

const web = consoleWeb({ folder, frames: () => ['https://node-b.example'] });

test('the page has a nonce of its own each time, runs its own files only, and is framed by no site', async () => {
  const [first, second] = [await web.page(), await web.page()];
  const nonce = /nonce="([^"]+)"/.exec(String(first!.body))?.[1];
  expect(nonce).toMatch(/^[\w+/=]{20,}$/);
  expect(String(second!.body)).not.toContain(nonce);
  const policy = first!.headers['Content-Security-Policy']!;
  expect(policy).toContain(`style-src 'self' 'nonce-${nonce}'`);
  expect(policy).toContain("script-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("frame-src 'self' https://node-b.example;");
  expect(policy).not.toContain('unsafe');
  expect(first!.headers['Cache-Control']).toBe('no-store');
});

test.each([
  ['br, gzip', 'br', 'brotli'],
  ['gzip;q=0.5', 'gzip', 'gzip'],
  ['br;q=0, gzip', 'gzip', 'gzip'],
  ['', undefined, 'plain'],
])('a client that accepts "%s" gets %s', async (accepted, coding, body) => {
  const found = await web.asset('main-abc.js', accepted);
  expect(String(found!.body)).toBe(body);
  expect(found!.headers['Content-Encoding']).toBe(coding);
  expect(found!.headers['Cache-Control']).toContain('immutable');
});

test.each([
  '../index.html',
  '../secret.js',
  '..%2fsecret.js',
  'main-xyz.js',
  'notes.txt',
  'main-abc.js.br',
  '',
  '.',
  'a\0.js',
])('nothing is served as %j', async (name) => {
  expect(await web.asset(name, 'br')).toBeUndefined();
});

test('a service without a built console has no page', async () => {
  const none = consoleWeb({ folder: join(folder, 'nowhere'), frames: () => [] });
  expect(await none.page()).toBeUndefined();
  expect(await none.asset('main-abc.js')).toBeUndefined();
});

test('of an address only its origin is allowed, and nothing that would end the directive', () => {
  const urls = ['https://a.example/path', 'https://*.sessions.example:8443', '', 'http://x;script-src *', 'ftp://y'];
  expect(frameOrigins(urls)).toEqual(['https://a.example', 'https://*.sessions.example:8443', 'http://x']);
});
