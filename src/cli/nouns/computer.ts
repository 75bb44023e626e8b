import type { Verb } from '../table.ts';

/** `corral browsers computer …` */
export const computer: readonly Verb[] = [
  {
    name: 'click',
    operation: 'clickMouse',
    takes: ['x', 'y'],
    done: 'Clicked.',
    examples: [
      ['my-session 100 200', 'once, left'],
      ['my-session 100 200 --num-clicks 2 --hold-keys Shift', 'twice, with a key held'],
    ],
  },
  {
    name: 'move',
    operation: 'moveMouse',
    takes: ['x', 'y'],
    done: 'Moved.',
    examples: [
      ['my-session 100 200', 'at once'],
      ['my-session 100 200 --smooth --duration-ms 300', 'along a natural path'],
    ],
  },
  {
    name: 'drag',
    operation: 'dragMouse',
    done: 'Dragged.',
    examples: [
      [`my-session --path '[[10,10],[200,200]]'`, 'from one point to another'],
      [`my-session --path '[[10,10],[50,90],[200,200]]' --smooth`, 'through a third point'],
    ],
  },
  {
    name: 'scroll',
    operation: 'scroll',
    takes: ['x', 'y'],
    done: 'Scrolled.',
    examples: [
      ['my-session 100 200 --delta-y 3', 'down'],
      ['my-session 100 200 --delta-y -3', 'up'],
    ],
  },
  {
    name: 'type',
    operation: 'typeText',
    takes: ['text'],
    done: 'Typed.',
    examples: [
      [`my-session 'hello'`, 'into the focused element'],
      [`my-session 'hello' --delay 50`, 'with a pause after each key'],
    ],
  },
  {
    name: 'key',
    operation: 'pressKey',
    takes: ['keys'],
    done: 'Pressed.',
    examples: [
      ['my-session Return', 'one key'],
      ['my-session Ctrl+a Delete', 'one after the other'],
    ],
  },
  {
    name: 'screenshot',
    operation: 'takeScreenshot',
    file: '{}.png',
    options: [['-f, --file <path>', 'the target file; - is stdout']],
    examples: [
      ['my-session', 'to my-session.png'],
      ['my-session --file - > now.png', 'to stdout'],
    ],
  },
  {
    name: 'position',
    operation: 'getMousePosition',
    examples: [
      ['my-session', 'where the pointer is'],
      ['my-session -o json', 'for a program'],
    ],
  },
  {
    name: 'cursor',
    operation: 'setCursor',
    done: 'Set.',
    examples: [
      ['my-session --hidden', 'hide the pointer'],
      ['my-session --no-hidden', 'show it'],
    ],
  },
  {
    name: 'copy',
    operation: 'readClipboard',
    about: 'Print the clipboard of the session.',
    examples: [
      ['my-session', 'its text'],
      ['my-session -o json', 'for a program'],
    ],
  },
  {
    name: 'paste',
    operation: 'writeClipboard',
    takes: ['text'],
    about: 'Put a text into the clipboard of the session.',
    done: 'Written.',
    examples: [
      [`my-session 'hello'`, 'then press Ctrl+v'],
      [`my-session 'hello' -o json`, 'prints null'],
    ],
  },
  {
    name: 'batch',
    operation: 'batchComputerAction',
    done: 'Done.',
    examples: [
      [`my-session --actions '[{"type":"click_mouse","click_mouse":{"x":1,"y":2}}]'`, 'several actions in one request'],
      ['my-session --actions @actions.json', 'from a file'],
    ],
  },
];
