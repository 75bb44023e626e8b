import { expect, test } from 'vitest';
import { memory } from '../../lib/byte-budget.ts';
import { NoPictureMemory, pictureMemory } from './picture-memory.ts';

function sessionOf(project: ReturnType<typeof memory.group>) {
  const session = memory.group();
  memory.join(session, project);
  return session;
}

test('the recordings of all sessions of a project leave memory to the next project, and give theirs back', () => {
  const pictures = pictureMemory(100);
  const [one, other] = [memory.group(), memory.group()];
  const held = Array.from({ length: 7 }, () => pictures.take(sessionOf(one), 10));
  expect(() => pictures.take(sessionOf(one), 10)).toThrow(NoPictureMemory);
  pictures.take(sessionOf(other), 10);
  for (const release of held) release();
  held[0]!();
  const again = Array.from({ length: 6 }, () => pictures.take(sessionOf(one), 10));
  expect(() => pictures.take(sessionOf(one), 10)).toThrow(NoPictureMemory);
  expect(again).toHaveLength(6);
});
