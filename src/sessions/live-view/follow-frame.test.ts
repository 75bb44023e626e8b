import { expect, test } from 'vitest';
import { silent } from '../../lib/log.ts';
import { followFrames } from './follow-frame.ts';

const size = (width: number) => ({ width, height: 600 });

/** A session with changes that last until `end`, and fail for a width of 900. */
function changing() {
  const [asked, ends]: [number[], (() => void)[]] = [[], []];
  const frames = followFrames(silent);
  const session = { recorded: false };
  return {
    asked,
    session,
    end: () => ends.shift()!(),
    join: () =>
      frames.join(session, {
        change: ({ width }) => {
          asked.push(width);
          return new Promise<void>((resolve, reject) =>
            ends.push(width === 900 ? () => reject(new Error('gone')) : resolve),
          );
        },
        isRecorded: () => session.recorded,
      }),
  };
}

test('changes once at a time, and then to the newest size', async () => {
  const { asked, session, end, join } = changing();
  const { fit } = join();
  for (const width of [700, 710, 720]) fit(size(width));
  expect(asked).toEqual([700]);
  end();
  await expect.poll(() => asked).toEqual([700, 720]);
  fit(size(720));
  end();
  fit(size(900));
  await expect.poll(() => asked).toEqual([700, 720, 900]);
  end();
  await expect.poll(() => (fit(size(900)), asked)).toEqual([700, 720, 900, 900]);
  session.recorded = true;
  end();
  fit(size(800));
  expect(asked).toEqual([700, 720, 900, 900]);
});

test('follows the viewer that changed last, and after it left the one before', async () => {
  const { asked, end, join } = changing();
  const [one, other, watching] = [join(), join(), join()];
  const become = async (...widths: number[]) => {
    await expect.poll(() => asked.splice(0)).toEqual(widths);
    for (const _ of widths) end();
  };
  one.fit(size(700));
  await become(700);
  other.fit(size(800));
  await become(800);
  one.fit(size(700)); // the same window, after another one was followed
  await become(700);
  other.left();
  watching.left(); // had no size
  one.fit(size(710));
  await become(710);
  other.fit(size(800));
  await become(800);
  other.left();
  await become(710);
  one.left();
  expect(asked).toEqual([]);
});
