import { Readable } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { viewerFiles, type SessionFiles } from './viewer-files.ts';
import type { FileMessage } from './viewer-protocol.ts';

/**
 * Files in memory, for faults of a viewer. The real ones are tested in test/acceptance/fs.test.ts. `downloaded` is the download of the
 * session, if any.
 */
function box(
  downloaded?: { size: number; content: readonly Buffer[] },
  downloads: SessionFiles['downloads'] = async () => [],
) {
  const said: FileMessage[] = [];
  const taken: string[] = [];
  let reset = 0;
  let closed = 0;
  const written: string[] = [];
  const files: SessionFiles = {
    async upload(names) {
      return {
        async next() {
          written.push('');
        },
        async bytes(chunk) {
          written[written.length - 1] += String(chunk);
        },
        end: async () => [...names],
        reset: () => (reset += 1),
      };
    },
    downloads,
    async read() {
      if (!downloaded) throw new Error('There is none.');
      const { size, content } = downloaded;
      return { size, content: Readable.from(content), close: () => (closed += 1) };
    },
    explain: (error) => (error as Error).message,
  };
  const viewer = viewerFiles({
    files,
    tell: (message) => said.push(message),
    unsent: () => 0,
    dropAt: () => undefined,
  });
  onTestFinished(() => viewer.close());
  const problems = () => said.flatMap((message) => ('problem' in message ? [message.problem] : []));
  viewer.choose(async (paths) => taken.push(...paths), true);
  const offer = (...sizes: number[]) => {
    const files = sizes.map((size, index) => ({ name: `file${index}`, size }));
    viewer.take({ type: 'offerFiles', chooser: 1, x: 0, y: 0, files });
  };
  const bytes = (text: string) => viewer.take({ type: 'fileBytes', data: Buffer.from(text).toString('base64') });
  return { viewer, said, taken, written, problems, offer, bytes, resets: () => reset, closes: () => closed };
}

describe('the files of a viewer', () => {
  it('are given to the page when the last byte is there', async () => {
    const { offer, bytes, taken, written, problems } = box();
    offer(3, 0, 2);
    bytes('ab');
    bytes('c');
    bytes('de');
    await expect.poll(problems).toEqual(['']);
    expect(written).toEqual(['abc', '', 'de']);
    expect(taken).toEqual(['file0', 'file1', 'file2']);
  });

  it('are refused beyond the bounds, and when nothing waits for them', async () => {
    const { viewer, offer, problems, taken } = box();
    offer(...Array.from({ length: 21 }, () => 1));
    offer(101 * 1024 * 1024);
    viewer.take({ type: 'offerFiles', chooser: 0, x: 1, y: 1, files: [{ name: 'x', size: 1 }] });
    viewer.take({ type: 'offerFiles', chooser: 7, x: 1, y: 1, files: [{ name: 'x', size: 1 }] });
    viewer.take({ type: 'save', name: 'x' });
    await expect.poll(problems).toHaveLength(5);
    expect(problems()).toEqual([
      expect.stringContaining('At most 20 files'),
      expect.stringContaining('At most 20 files with 100 MiB'),
      'The page does not wait for files any more.',
      'The page does not wait for files any more.',
      'There is none.',
    ]);
    expect(taken).toEqual([]);
  });

  it('stop when more comes than was announced, and when the viewer sends ahead', async () => {
    for (const misbehave of [
      (bytes: (text: string) => void) => bytes('more than three'),
      (bytes: (text: string) => void) => Array.from({ length: 20 }, () => bytes('')),
    ]) {
      const { offer, bytes, problems, taken, resets } = box();
      offer(3);
      misbehave(bytes);
      await expect.poll(problems).toEqual([expect.stringMatching(/^More (bytes|parts) than/)]);
      expect(taken).toEqual([]);
      await expect.poll(resets).toBe(1);
    }
  });

  it('are listed one request after the other', async () => {
    const lists: (() => void)[] = [];
    const { viewer, said } = box(
      undefined,
      () => new Promise((resolve) => lists.push(() => resolve([{ name: `of list ${lists.length}`, size: 1 }]))),
    );
    for (let asked = 0; asked < 1000; asked++) viewer.take({ type: 'downloads' });
    const answers = () => said.flatMap((message) => (message.type === 'downloads' ? message.files : []));
    for (const many of [1, 2]) {
      expect(lists).toHaveLength(many);
      lists.at(-1)!();
      await expect.poll(answers).toHaveLength(many);
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(lists).toHaveLength(2);
    viewer.take({ type: 'downloads' });
    expect(lists).toHaveLength(3);
  });

  it('are saved whole, in parts, and only up to a bound, also if there is more than was said', async () => {
    const most = 500 * 1024 * 1024;
    const save = async (size: number, ...content: Buffer[]) => {
      const { viewer, said, problems, closes } = box({ size, content });
      viewer.take({ type: 'save', name: 'film' });
      await expect.poll(problems).toHaveLength(1);
      await expect.poll(closes).toBe(1);
      const parts = said.flatMap((message) =>
        message.type === 'saveBytes' ? [Buffer.from(message.data, 'base64')] : [],
      );
      return { problem: problems()[0], saved: Buffer.concat(parts).toString() };
    };
    const film = Buffer.alloc(500_000, 'corral');
    expect(await save(2 * film.length, film, film)).toEqual({ problem: '', saved: `${String(film)}${String(film)}` });
    const tooLarge = 'film is larger than 500 MiB. GET /browsers/{id}/fs/read_file sends files of any size.';
    expect(await save(most + 1, Buffer.alloc(1))).toEqual({ problem: tooLarge, saved: '' });
    expect(await save(1, Buffer.from('x'), Buffer.alloc(most))).toEqual({ problem: tooLarge, saved: 'x' });
  });
});
