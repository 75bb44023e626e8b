import { execFileSync } from 'node:child_process';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { oneOwner } from '../sandbox/owners.ts';
import { MOST_PIXELS, startEncoder } from './encoder.ts';
import { recordedSize } from './frames.ts';

test.each([
  [
    { width: 16_000, height: 16_000 },
    { width: 2880, height: 2880 },
  ],
  [
    { width: 16_384, height: 800 },
    { width: 13_033, height: 636 },
  ],
  [
    { width: 3840, height: 2160 },
    { width: 3840, height: 2160 },
  ],
  [
    { width: 801, height: 600 },
    { width: 801, height: 600 },
  ],
  [
    { width: 0, height: 600 },
    { width: 0, height: 600 },
  ],
])('a page of %j is recorded in %j', (page, video) => {
  expect(recordedSize(page)).toEqual(video);
  expect(video.width * video.height).toBeLessThanOrEqual(MOST_PIXELS);
});

const jpeg = (size: string) =>
  execFileSync('ffmpeg', [
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    `color=red:s=${size}`,
    '-frames:v',
    '1',
    '-f',
    'mjpeg',
    '-',
  ]);

test('a picture with more pixels than a recording may have is not decoded', async () => {
  const owners = oneOwner({ uid: process.getuid!(), gid: process.getgid!(), name: 'test' });
  const options = { pictures: 'jpeg', size: { width: 320, height: 200 }, framerate: 10 } as const;
  const [small, large] = ['320x200', '4000x2160'].map(jpeg);
  const encode = async (pictures: Buffer[]) => {
    const encoder = startEncoder(options, { sandboxed: false, owners });
    for (const picture of pictures) encoder.feed(picture);
    encoder.end();
    const [video, { lastWords }] = await Promise.all([buffer(encoder.output), encoder.exited]);
    return { video, lastWords: lastWords.join('\n') };
  };
  const refused = await encode([large!, large!]);
  expect(refused.lastWords).toContain('exceeds specified max pixel count');
  expect(refused.video.includes('moof')).toBe(false);
  const others = await encode([small!, large!, small!, small!]);
  expect(others.video.includes('moof')).toBe(true);
});
