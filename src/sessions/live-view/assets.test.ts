import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { liveViewAsset, liveViewPage, liveViewRefusal, prepareLiveView } from './assets.ts';

const page = { socketPath: 'live/socket', title: 'A session', readOnly: false };

describe('the live view’s files', () => {
  it.each(['screencast', 'display'] as const)(
    'are two for a page of a %s, which a browser keeps for ever',
    async (kind) => {
      const names = [...(await liveViewPage({ ...page, kind })).matchAll(/(?:src|href)="live\/assets\/([^"]+)"/g)];
      expect(names).toHaveLength(2);
      for (const [, name = ''] of names) {
        const plain = await liveViewAsset(name);
        const { 'Cache-Control': cache, 'Content-Type': type } = plain!.headers;
        expect({ cache, type }).toEqual({
          cache: 'public, max-age=31536000, immutable',
          type: `text/${name.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`,
        });
        expect(plain!.headers).not.toHaveProperty('Content-Encoding');
        expect(plain!.body.length).toBeGreaterThan(5000);
        // Nothing is loaded by a file but by the page.
        expect(plain!.body.toString()).not.toMatch(/\bimport\s*["'({]|\bfrom\s*["']|@import/);
      }
    },
  );

  it('are compressed as the browser asks', async () => {
    const { name } = (await prepareLiveView()).get('display')!;
    const plain = await liveViewAsset(name);
    const [br, zipped] = [
      await liveViewAsset(name, 'gzip, deflate, br, zstd'),
      await liveViewAsset(name, 'GZIP;q=0.5'),
    ];
    expect(brotliDecompressSync(br!.body).equals(plain!.body)).toBe(true);
    expect(gunzipSync(zipped!.body).equals(plain!.body)).toBe(true);
    expect([br, zipped].map((asset) => asset!.headers['Content-Encoding'])).toEqual(['br', 'gzip']);
    expect((await liveViewAsset(name, 'br;q=0, gzip; q=0.0'))!.body).toBe(plain!.body);
    expect(plain!.headers['Vary']).toBe('Accept-Encoding');
  });

  it('name the licence of what they contain', async () => {
    expect((await prepareLiveView()).get('display')!.plain.toString()).toContain('/*! Contains noVNC');
  });

  it('are served to a page of another version, and not kept', async () => {
    const other = await liveViewAsset('style.abcdefghijkl.css');
    expect(other!.headers['Cache-Control']).toBe('no-cache');
  });

  it.each([
    '',
    '.',
    'assets.ts',
    'page.html',
    'view.js',
    'style.css',
    'novnc/core/rfb.js',
    '../service.ts',
    '/etc/passwd',
  ])('do not include %j', async (path) => expect(await liveViewAsset(path)).toBeUndefined());
});

describe('the live view’s page', () => {
  it('shows the given message, and nothing else', async () => {
    const shown = await liveViewPage({
      kind: 'screencast',
      socketPath: 'live/socket',
      title: `</title><script>alert("x")</script>'&{{socketPath}}`,
      readOnly: true,
    });
    expect(shown).toContain('data-kind="screencast"');
    expect(shown).toContain('data-socket="live/socket"');
    expect(shown).toContain('data-read-only="true"');
    expect(shown).not.toContain('<script>');
    expect(shown).toContain('&#60;script&#62;alert(&#34;x&#34;)');
    expect(shown).toContain('&#38;{{socketPath}}'); // once filled, it is not filled again
  });
});

describe('the page of a link that shows no session', () => {
  it.each([
    [401, 'unauthorized', 'This link does not work.'],
    [400, 'bad_request', 'This link does not work.'],
    [404, 'not_found', 'This link does not work.'],
    [404, 'session_not_found', 'The session has ended.'],
    [503, 'node_unreachable', 'The session cannot be shown now.'],
  ])('says for %i %s: %s', async (status, code, title) => {
    const page = await liveViewRefusal({ status, code, detail: 'Because of <b>this</b>.' }, '../live/assets/');
    expect(page).toContain('<link rel="stylesheet" href="../live/assets/style.');
    expect(page).toContain(`<h2>${title}</h2>`);
    expect(page).toContain('Because of &#60;b&#62;this&#60;/b&#62;.');
    expect(page).not.toContain('<script');
  });
});
