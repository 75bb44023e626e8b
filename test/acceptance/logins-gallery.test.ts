import { afterAll, beforeAll, expect, test } from 'vitest';
import { openForms } from '../../src/chromium/forms/forms.ts';
import type { Forms, Snapshot } from '../../src/chromium/forms/types.ts';
import { read } from '../../src/logins/reading/read.ts';
import type { Reading } from '../../src/logins/reading/types.ts';
import { brief } from '../support/logins/brief.ts';
import { person, type GalleryPage } from '../support/logins/gallery/page.ts';
import { galleryPages, startGallery, type Gallery } from '../support/logins/gallery/site.ts';
import { muxServer, type MuxServer } from '../support/mux-server.ts';

let gallery: Gallery;
let server: MuxServer;
let forms: Forms;

beforeAll(async () => {
  gallery = await startGallery();
  server = await muxServer();
  forms = openForms(server.mux);
});

afterAll(async () => {
  forms?.dispose();
  await server?.stop();
  await gallery?.close();
});

/** Works through a list in a few pages of the one browser at once. */
async function inPages<T, R>(list: readonly T[], work: (page: string, one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = [...list.entries()];
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      const page = await forms.open(`${gallery.url}/nothing-here-en`);
      for (let next = queue.shift(); next !== undefined; next = queue.shift())
        results[next[0]] = await work(page, next[1]);
      await forms.close(page);
    }),
  );
  return results;
}

async function visit(page: string, path: string): Promise<Snapshot> {
  await forms.navigate(page, gallery.url + path);
  return look(page);
}

async function look(page: string): Promise<Snapshot> {
  await forms.settled(page, { deadlineMs: 30_000 });
  return forms.snapshot(page);
}

const context = { domain: '127.0.0.1' };

test('every screen of the gallery is classified correctly', { timeout: 300_000 }, async () => {
  const screens = galleryPages.flatMap((page) =>
    Object.entries(page.screens).map(([name, screen]) => ({ page, name, screen })),
  );
  const rows = await inPages(screens, async (tab, { page, name, screen }) => {
    const snapshot = await visit(tab, `/${page.name}/${name}`);
    const reading = read(snapshot, {
      ...context,
      ...(screen.submitted === undefined ? {} : { submitted: screen.submitted }),
    });
    return { where: `${page.name}/${name}`, expected: screen.reads, found: brief(reading), evidence: reading.evidence };
  });

  const missed = rows.filter(({ expected, found }) => expected !== found);
  console.log(
    `Readings of the gallery: ${rows.length - missed.length} of ${rows.length} screens of ${galleryPages.length} pages.`,
  );
  expect(missed).toEqual([]);
});

/** Types wrong values into a form that takes a name and a password, and sends it. */
async function refuse(tab: string, reading: Reading): Promise<void> {
  for (const { ref, act } of reading.next) if (act === 'check') await forms.act(tab, { kind: 'check', ref, on: true });
  for (const field of reading.fields) {
    if (field.type === 'identifier') {
      const text = field.legacyType === 'email' ? person.email : person.username;
      await forms.act(tab, { kind: 'type', ref: field.ref, text, allow: () => true });
    }
    if (field.type === 'password')
      await forms.act(tab, { kind: 'type', ref: field.ref, text: 'wrong', allow: () => true });
  }
  if (reading.submit !== undefined) await forms.act(tab, { kind: 'click', ref: reading.submit.ref });
  else await forms.act(tab, { kind: 'press', key: 'Enter' });
}

test('every page says in its own way that the password is wrong, and is understood', { timeout: 300_000 }, async () => {
  const candidates = galleryPages.flatMap((page) =>
    Object.entries(page.screens)
      .filter(
        ([, { reads, after }]) =>
          /^login .*identifier:.*password:password(?: \(\w+\))*(?: >accept!)?$/.test(reads) && after === undefined,
      )
      .slice(0, 1)
      .map(([name]) => ({ page, name })),
  );
  const rows = await inPages(candidates, (tab, { page, name }) => wrongPassword(tab, page, name));

  const missed = rows.filter(({ expected, found }) => expected !== found);
  console.log(`Refusals of the gallery: ${rows.length - missed.length} of ${rows.length} pages.`);
  expect(missed).toEqual([]);
});

async function wrongPassword(tab: string, page: GalleryPage, name: string) {
  const before = await visit(tab, `/${page.name}/${name}`);
  await refuse(tab, read(before, context));
  const reading = read(await look(tab), { ...context, before, submitted: ['identifier', 'password'] });
  const found =
    reading.error === undefined ? reading.kind : `${reading.error.kind}${reading.error.fresh ? ' new' : ''}`;
  return { where: `${page.name}/${name}`, expected: `${page.outcome.wrong} new`, found, evidence: reading.evidence };
}
