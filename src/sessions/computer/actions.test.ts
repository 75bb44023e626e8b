import { expect, test } from 'vitest';
import { actionOf } from './actions.ts';

const at = { x: 1, y: 1 };
const path: [number, number][] = [
  [1, 1],
  [9, 9],
];

test.each([
  ['num_clicks', () => actionOf.click_mouse({ ...at, click_type: 'down', num_clicks: 2 })],
  ['num_clicks', () => actionOf.click_mouse({ ...at, click_type: 'up', num_clicks: 3 })],
  ['duration_ms', () => actionOf.move_mouse({ ...at, smooth: false, duration_ms: 100 })],
  ['duration_ms', () => actionOf.drag_mouse({ path, smooth: false, duration_ms: 100 })],
])('%s is refused where another field makes it meaningless', (field, action) => {
  expect(action).toThrow(expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining(field) }));
});

test('what the schema fills in is never refused', () => {
  expect(actionOf.click_mouse({ ...at, click_type: 'down', num_clicks: 1 })).toMatchObject({ count: 1 });
  expect(actionOf.move_mouse({ ...at, smooth: true, duration_ms: 100 })).toMatchObject({ durationMs: 100 });
  expect(actionOf.drag_mouse({ path, smooth: true, steps_per_segment: 10, step_delay_ms: 50 })).toMatchObject({
    smooth: true,
  });
});
