import { Type, type Static } from 'typebox';
import { named, oneOf } from '../../api/schema.ts';

/** Unknown fields are refused in every body here: a misspelt option would cause a wrong click. */
const strict = { additionalProperties: false } as const;

const HoldKeys = Type.Optional(
  Type.Array(Type.String({ maxLength: 100 }), { description: 'Held down meanwhile, such as Shift or Ctrl.' }),
);
const X = Type.Integer({ description: 'From the left of the screen; headless: of the page.' });
const Y = Type.Integer({ description: 'From the top.' });

export const ClickMouse = named(
  'ClickMouseRequest',
  Type.Object(
    {
      x: X,
      y: Y,
      button: Type.Optional(
        oneOf(['left', 'right', 'middle', 'back', 'forward'], { description: 'left when left out.' }),
      ),
      click_type: Type.Optional(oneOf(['down', 'up', 'click'], { description: 'click when left out.' })),
      num_clicks: Type.Optional(Type.Integer({ default: 1, description: '1 to 20.' })),
      hold_keys: HoldKeys,
    },
    strict,
  ),
);

export const MoveMouse = named(
  'MoveMouseRequest',
  Type.Object(
    {
      x: X,
      y: Y,
      smooth: Type.Optional(Type.Boolean({ default: true, description: 'Along a natural curve.' })),
      duration_ms: Type.Optional(
        Type.Integer({ minimum: 50, maximum: 5000, description: 'Derived from the distance when left out.' }),
      ),
      hold_keys: HoldKeys,
    },
    strict,
  ),
);

export const DragMouse = named(
  'DragMouseRequest',
  Type.Object(
    {
      path: Type.Array(
        Type.Unsafe<[number, number]>({ type: 'array', minItems: 2, maxItems: 2, items: { type: 'integer' } }),
        { minItems: 2, description: 'At least two points, each [x, y]; at most 1000.' },
      ),
      button: Type.Optional(oneOf(['left', 'middle', 'right'], { description: 'left when left out.' })),
      delay: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: 'Milliseconds between pressing and moving.' }),
      ),
      steps_per_segment: Type.Optional(Type.Integer({ minimum: 1, default: 10, description: 'Without smooth.' })),
      step_delay_ms: Type.Optional(Type.Integer({ minimum: 0, default: 50, description: 'Without smooth.' })),
      smooth: Type.Optional(Type.Boolean({ default: true })),
      duration_ms: Type.Optional(
        Type.Integer({ minimum: 50, maximum: 10_000, description: 'Of the whole path; with smooth.' }),
      ),
      hold_keys: HoldKeys,
    },
    strict,
  ),
);

export const Scroll = named(
  'ScrollRequest',
  Type.Object(
    {
      x: X,
      y: Y,
      delta_x: Type.Optional(
        Type.Integer({ default: 0, description: 'Notches of the wheel, to the right if positive.' }),
      ),
      delta_y: Type.Optional(
        Type.Integer({
          default: 0,
          description: 'Notches of the wheel, down if positive; sent before the horizontal ones.',
        }),
      ),
      hold_keys: HoldKeys,
    },
    strict,
  ),
);

export const TypeText = named(
  'TypeTextRequest',
  Type.Object(
    {
      text: Type.String(),
      delay: Type.Optional(Type.Integer({ minimum: 0, default: 0, description: 'Milliseconds between characters.' })),
    },
    strict,
  ),
);

export const PressKey = named(
  'PressKeyRequest',
  Type.Object(
    {
      keys: Type.Array(Type.String({ maxLength: 100 }), {
        description: 'X11 keysyms, characters, or chords such as Ctrl+t; tapped one after the other.',
      }),
      duration: Type.Optional(
        Type.Integer({
          minimum: 0,
          default: 0,
          description: 'If not 0, the time in milliseconds for which all keys are held down.',
        }),
      ),
      hold_keys: HoldKeys,
    },
    strict,
  ),
);

const Region = named(
  'ScreenshotRegion',
  Type.Object({ x: X, y: Y, width: Type.Integer(), height: Type.Integer() }, strict),
);
export const Screenshot = named('ScreenshotRequest', Type.Object({ region: Type.Optional(Region) }, strict));

export const SetCursor = named(
  'SetCursorRequest',
  Type.Object(
    {
      hidden: Type.Boolean({
        description: 'Whether screenshots hide the pointer. Those of headless sessions always do.',
      }),
    },
    strict,
  ),
);

const Sleep = named('SleepAction', Type.Object({ duration_ms: Type.Integer({ minimum: 0, maximum: 30_000 }) }, strict));

const ActionTypes = [
  'click_mouse',
  'move_mouse',
  'type_text',
  'press_key',
  'scroll',
  'drag_mouse',
  'set_cursor',
  'sleep',
] as const;

export const ComputerAction = named(
  'ComputerAction',
  Type.Object(
    {
      type: oneOf(ActionTypes, {
        description: 'The field of this name has the parameters; the other fields must be left out.',
      }),
      click_mouse: Type.Optional(ClickMouse),
      move_mouse: Type.Optional(MoveMouse),
      type_text: Type.Optional(TypeText),
      press_key: Type.Optional(PressKey),
      scroll: Type.Optional(Scroll),
      drag_mouse: Type.Optional(DragMouse),
      set_cursor: Type.Optional(SetCursor),
      sleep: Type.Optional(Sleep),
    },
    strict,
  ),
);

export const Batch = named(
  'BatchComputerActionRequest',
  Type.Object({ actions: Type.Array(ComputerAction, { minItems: 1, maxItems: 100 }) }, strict),
);

export const Nothing = Type.Object({}, strict);
export const Ok = named('OkResponse', Type.Object({ ok: Type.Boolean({ default: true }) }, strict));
export const MousePosition = named(
  'MousePositionResponse',
  Type.Object({ x: Type.Integer(), y: Type.Integer() }, strict),
);
export const ClipboardContent = named('ClipboardContent', Type.Object({ text: Type.String() }, strict));
export const WriteClipboard = named('WriteClipboardRequest', Type.Object({ text: Type.String() }, strict));

export type ClickMouse = Static<typeof ClickMouse>;
export type MoveMouse = Static<typeof MoveMouse>;
export type DragMouse = Static<typeof DragMouse>;
export type Scroll = Static<typeof Scroll>;
export type TypeText = Static<typeof TypeText>;
export type PressKey = Static<typeof PressKey>;
export type SetCursor = Static<typeof SetCursor>;
export type ComputerAction = Static<typeof ComputerAction>;
export type Batch = Static<typeof Batch>;
