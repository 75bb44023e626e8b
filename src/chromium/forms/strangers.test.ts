import { createServer } from 'node:http';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { muxServer, portOf, type MuxServer } from '../../../test/support/mux-server.ts';
import { openForms } from './forms.ts';
import type { Forms } from './types.ts';

/** A page that says what the browser remembers of it, and has it remember something. */
const site = createServer((request, response) => {
  response.setHeader('set-cookie', 'known=yes; Path=/').setHeader('content-type', 'text/html');
  response.end(`<p>cookie: ${request.headers.cookie ?? 'none'}</p><p id="stored"></p><label>Name <input oninput="document.title = value"></label><script>
    document.getElementById('stored').textContent = 'stored: ' + (localStorage.getItem('known') ?? 'none');
    localStorage.setItem('known', 'yes');
    </script>`);
});
let server: MuxServer;
let forms: Forms;

beforeAll(async () => {
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  server = await muxServer();
  forms = openForms(server.mux);
});
afterAll(async () => {
  forms?.dispose();
  await server?.stop();
  site.close();
});

async function remembered(pageId: string): Promise<string[]> {
  await forms.settled(pageId, { deadlineMs: 30_000 });
  const { frames } = await forms.snapshot(pageId);
  return frames[0]!.texts.map(({ text }) => text).filter((text) => text.includes(':'));
}

test('a stranger has nothing of the others, and the browser forgets a site', async () => {
  const url = `http://127.0.0.1:${portOf(site)}`;
  const page = await forms.open(url);
  await forms.navigate(page, url);
  expect(await remembered(page)).toEqual(['cookie: known=yes', 'stored: yes']);

  const stranger = await forms.openStranger(url);
  expect(await remembered(stranger)).toEqual(['cookie: none', 'stored: none']);
  await forms.close(stranger);
  expect((await forms.pages()).map(({ pageId }) => pageId)).not.toContain(stranger);

  await forms.forget(page, ['http://other.example'], () => false);
  await forms.navigate(page, url);
  expect(await remembered(page)).toEqual(['cookie: known=yes', 'stored: yes']);
  await forms.forget(page, [url], (host) => host === 'https://127.0.0.1/');
  await forms.navigate(page, url);
  expect(await remembered(page)).toEqual(['cookie: none', 'stored: none']);
});

test('a field that holds a text of this length keeps it, if asked to', async () => {
  const page = await forms.open(`http://127.0.0.1:${portOf(site)}`);
  const look = async () => {
    await forms.settled(page, { deadlineMs: 30_000 });
    return forms.snapshot(page);
  };
  const typed = async (text: string, unlessHeld: boolean) => {
    const { ref } = (await look()).frames[0]!.elements.find(({ tag }) => tag === 'input')!;
    await forms.act(page, { kind: 'type', ref, text, clear: true, allow: () => true, unlessHeld });
    return (await look()).title;
  };
  expect(await typed('Rain', true)).toBe('Rain');
  expect(await typed('Snow', true)).toBe('Rain');
  expect(await typed('Sunshine', true)).toBe('Sunshine');
  expect(await typed('Snow', false)).toBe('Snow');
});
