import { expect, test } from 'vitest';
import { silent } from '../../lib/log.ts';
import { followFrame } from './follow-frame.ts';

const size = (width: number) => ({ width, height: 600 });

test('changes once at a time, and then to the newest size', async () => {
  const [asked, ends]: [number[], (() => void)[]] = [[], []];
  let recorded = false;
  const follow = followFrame({
    change: ({ width }) => {
      asked.push(width);
      return new Promise<void>((resolve, reject) =>
        ends.push(width === 900 ? () => reject(new Error('gone')) : resolve),
      );
    },
    isRecorded: () => recorded,
    log: silent,
  });
  for (const width of [700, 710, 720]) follow(size(width));
  expect(asked).toEqual([700]);
  ends.shift()!();
  await expect.poll(() => asked).toEqual([700, 720]);
  follow(size(720));
  ends.shift()!();
  follow(size(900));
  await expect.poll(() => asked).toEqual([700, 720, 900]);
  ends.shift()!();
  await expect.poll(() => (follow(size(900)), asked)).toEqual([700, 720, 900, 900]);
  recorded = true;
  ends.shift()!();
  follow(size(800));
  expect(asked).toEqual([700, 720, 900, 900]);
});
