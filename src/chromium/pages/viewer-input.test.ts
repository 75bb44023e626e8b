import { expect, test } from 'vitest';
import type { InputMessage } from './viewer-protocol.ts';
import type { Shown, Viewer } from './viewer.ts';
import { viewerInput } from './viewer-input.ts';

test('texts that wait for a page that hangs have a bound, and keys after them still wait for their turn', () => {
  const tab = { id: 'T', sessionId: 'S', unanswered: 0, presses: 0, pageWork: 1, backlog: [] } as unknown as Shown;
  const input = viewerInput({ shown: tab, over: false } as unknown as Viewer, 'world', () => {});
  for (let times = 0; times < 20; times++) input.take(tab, { type: 'paste', text: 'x'.repeat(1_000_000) });
  input.take(tab, { type: 'text', text: 'a' });
  input.take(tab, { type: 'copy', cut: false });
  const types = tab.backlog.map(({ type }: InputMessage) => type);
  expect(types).toEqual(['paste', 'paste', 'text', 'copy']);
});
