import type { Action } from '../../chromium/computer/computer.ts';
import { errors } from '../../errors.ts';
import type {
  Batch,
  ClickMouse,
  ComputerAction,
  DragMouse,
  MoveMouse,
  PressKey,
  Scroll,
  SetCursor,
  TypeText,
} from './schema.ts';

const longestMs = 10 * 60 * 1000;

/** Translates API requests into actions, with the bounds that the schema leaves open. */
export const actionOf = {
  click_mouse({ x, y, button = 'left', click_type = 'click', num_clicks = 1, hold_keys = [] }: ClickMouse): Action {
    within('num_clicks', num_clicks, 1, 20);
    if (click_type !== 'click' && num_clicks !== 1)
      throw errors.invalid_input({
        detail: `num_clicks is for click_type click; ${click_type} is a single one. Leave num_clicks out.`,
      });
    return { type: 'click', at: { x, y }, button, click: click_type, count: num_clicks, holdKeys: few(hold_keys) };
  },

  move_mouse({ x, y, smooth = true, duration_ms, hold_keys = [] }: MoveMouse): Action {
    refuseIdleDuration(smooth, duration_ms);
    return { type: 'move', to: { x, y }, smooth, durationMs: duration_ms, holdKeys: few(hold_keys) };
  },

  drag_mouse(request: DragMouse): Action {
    const { path, button = 'left', delay = 0, steps_per_segment = 10, step_delay_ms = 50 } = request;
    const { smooth = true, duration_ms, hold_keys = [] } = request;
    refuseIdleDuration(smooth, duration_ms);
    within('the number of points in path', path.length, 2, 1000);
    within('delay', delay, 0, longestMs);
    within('steps_per_segment', steps_per_segment, 1, 10_000);
    within('step_delay_ms', step_delay_ms, 0, longestMs);
    return {
      type: 'drag',
      path: path.map(([x, y]) => ({ x, y })),
      button,
      delayMs: delay,
      stepsPerSegment: steps_per_segment,
      stepDelayMs: step_delay_ms,
      smooth,
      durationMs: duration_ms,
      holdKeys: few(hold_keys),
    };
  },

  scroll({ x, y, delta_x = 0, delta_y = 0, hold_keys = [] }: Scroll): Action {
    within('delta_x', delta_x, -1000, 1000);
    within('delta_y', delta_y, -1000, 1000);
    return { type: 'scroll', at: { x, y }, right: delta_x, down: delta_y, holdKeys: few(hold_keys) };
  },

  type_text({ text, delay = 0 }: TypeText): Action {
    within('delay', delay, 0, longestMs);
    return { type: 'type', text: text.replaceAll('\r\n', '\n'), delayMs: delay };
  },

  press_key({ keys, duration = 0, hold_keys = [] }: PressKey): Action {
    within('duration', duration, 0, longestMs);
    within('the number of keys', keys.length, 1, 100);
    return { type: 'press', keys, durationMs: duration, holdKeys: few(hold_keys) };
  },

  set_cursor: ({ hidden }: SetCursor): Action => ({ type: 'cursor', hidden }),

  sleep: ({ duration_ms }: { duration_ms: number }): Action => ({ type: 'sleep', ms: duration_ms }),
};

export function actionsOf({ actions }: Batch): Action[] {
  return actions.map((action, i) => {
    const members = Object.keys(action).filter((name) => name !== 'type');
    const { type } = action;
    if (members.length !== 1 || members[0] !== type) {
      throw errors.invalid_input({
        detail: `actions.${i} is of type ${type}: it must have the member ${type} and no other of its kind.`,
      });
    }
    return toAction(type, action);
  });
}

function toAction(type: ComputerAction['type'], action: ComputerAction): Action {
  return actionOf[type](action[type] as never);
}

function refuseIdleDuration(smooth: boolean, durationMs: number | undefined) {
  if (!smooth && durationMs !== undefined)
    throw errors.invalid_input({ detail: 'duration_ms is of a smooth movement; leave it out, or smooth: false.' });
}

function within(name: string, value: number, least: number, most: number) {
  if (value < least || value > most) {
    throw errors.invalid_input({ detail: `${name} must be ${least} to ${most}.` });
  }
}

function few(keys: string[]): string[] {
  within('the number of hold_keys', keys.length, 0, 20);
  return keys;
}
