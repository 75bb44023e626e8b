import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { liveViewAsset, liveViewPage } from './assets.ts';

describe('the live view’s assets', () => {
  it('are all there, and so is everything they import', async () => {
    const seen = new Set<string>();
    async function follow(path: string): Promise<void> {
      if (seen.has(path)) return;
      seen.add(path);
      const asset = await liveViewAsset(path);
      expect({ path, type: asset?.type }).toEqual({ path, type: 'text/javascript; charset=utf-8' });
      for (const [, specifier] of asset!.body.toString().matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
        await follow(new URL(specifier!, `file:///${path}`).pathname.slice(1));
      }
    }
    await follow('view.js');
    expect(seen.size).toBeGreaterThan(30);
    expect((await liveViewAsset('style.css'))?.type).toBe('text/css; charset=utf-8');
    for (const file of readdirSync(import.meta.dirname).filter((file) => /\.(js|css)$/.test(file))) {
      expect(await liveViewAsset(file)).toBeDefined();
    }
  });

  it.each([
    '',
    '.',
    'assets.ts',
    'page.html',
    'novnc/package.json',
    'novnc/core',
    'novnc/core/../package.json',
    'novnc/../../package.json',
    'novnc/core/../../../ws/index.js',
    'novnc/core/%2e%2e/x.js',
    'novnc\\core\\rfb.js',
    '../service.ts',
    '/etc/passwd',
    'constructor',
    'novnc/core/missing.js',
  ])('do not include %j', async (path) => expect(await liveViewAsset(path)).toBeUndefined());
});

describe('the live view’s page', () => {
  it('says what it was told, and nothing it was not', () => {
    const page = liveViewPage({
      kind: 'screencast',
      socketPath: 'live/socket',
      title: `</title><script>alert("x")</script>'&{{socketPath}}`,
      readOnly: true,
    });
    expect(page).toContain('data-kind="screencast"');
    expect(page).toContain('data-socket="live/socket"');
    expect(page).toContain('data-read-only="true"');
    expect(page).toContain('src="live/assets/view.js"');
    expect(page).not.toContain('<script>');
    expect(page).toContain('&#60;script&#62;alert(&#34;x&#34;)');
    expect(page).toContain('&#38;{{socketPath}}'); // once filled, it is not filled again
  });
});
