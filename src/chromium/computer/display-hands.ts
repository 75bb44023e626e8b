import type net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { memory, type Group } from '../../lib/byte-budget.ts';
import { turns } from '../../lib/turns.ts';
import type { Clipboard } from '../pages/clipboard.ts';
import { isTypeable } from '../display/characters.ts';
import { connectDisplay, type DisplayClient } from './display-client.ts';
import type { Hands } from './hands.ts';
import { characterKey, keyNamed } from './keys.ts';
import { encodePng } from './png.ts';

/** Bits of an RFB pointer event. TigerVNC takes seven bits, of which four are the wheel. */
const bits = { left: 1, middle: 2, right: 4 };
/** The other buttons are sent as key chords with the same effect. */
const chordFor = { back: keysyms('Alt', 'Left'), forward: keysyms('Alt', 'Right') };
const wheelBits = { up: 8, down: 16, left: 32, right: 64 };
/** The time for the browser to read a text from the clipboard before the previous content is restored. */
const PASTED_MS = 150;
/** The pause between two notches of the wheel. A browser merges simultaneous ones. */
const NOTCH_MS = 5;

/**
 * Input at the display of a headful session: the whole screen, native menus, dialogs and the address bar included. A display does not report when
 * Chromium has received an input, so an action ends when the display has it.
 */
export function displayHands(connect: () => net.Socket, clipboard: Clipboard, group: Group): Hands {
  let connecting: Promise<DisplayClient> | undefined;
  let pressed = 0;
  let shown = true;

  /** One shared connection, made when it is first needed. */
  function display(): Promise<DisplayClient> {
    connecting ??= connectDisplay(connect, () => (connecting = undefined)).then(async (client) => {
      if (!shown) client.showPointer(false);
      await client.settled(); // by then the display has sent the pointer's position
      return client;
    });
    connecting.catch(() => (connecting = undefined));
    return connecting;
  }

  async function point(mask: number) {
    const client = await display();
    const { x, y } = client.pointer;
    await client.point(mask, x, y);
  }

  async function tap(...keysyms: number[]) {
    const client = await display();
    for (const keysym of keysyms) await client.key(keysym, true);
    for (const keysym of keysyms.toReversed()) await client.key(keysym, false);
  }

  /** Text without keys is pasted. The clipboard's previous text is restored afterwards. */
  async function paste(text: string) {
    const before = await clipboard.read().catch(() => '');
    await clipboard.write(text);
    await tap(...keysyms('Control', 'v'));
    await (await display()).settled();
    await sleep(PASTED_MS);
    await clipboard.write(before).catch(() => {});
  }

  return {
    screen: async () => (await display()).size,
    async pointer() {
      const client = await display();
      await client.settled();
      return client.pointer;
    },

    async move({ x, y }) {
      await (await display()).point(pressed, x, y);
    },

    async button(button, down) {
      if (button === 'back' || button === 'forward') return void (down || (await tap(...chordFor[button])));
      pressed = down ? pressed | bits[button] : pressed & ~bits[button];
      await point(pressed);
    },

    async wheel(right, down) {
      const bit = down !== 0 ? wheelBits[down > 0 ? 'down' : 'up'] : wheelBits[right > 0 ? 'right' : 'left'];
      for (let left = Math.abs(down || right); left > 0; left--) {
        await point(pressed | bit);
        await point(pressed);
        await sleep(NOTCH_MS);
      }
    },

    async key({ keysym }, down) {
      await (await display()).key(keysym, down);
    },

    async write(text) {
      const turn = turns();
      let untyped = '';
      for (const character of text) {
        if (!isTypeable(character)) {
          untyped += character;
          await turn();
          continue;
        }
        if (untyped !== '') await paste(untyped);
        untyped = '';
        await tap(characterKey(character).keysym);
      }
      if (untyped !== '') await paste(untyped);
    },

    async screenshot(region) {
      const client = await display();
      const { width, height } = region ?? client.size;
      return memory.during(group, width * height * 4, async () => encodePng(await client.capture(region)));
    },

    async showPointer(wanted) {
      shown = wanted;
      (await display()).showPointer(wanted);
    },

    settled: async () => (await display()).settled(),
  };
}

function keysyms(...names: string[]): number[] {
  return names.map((name) => keyNamed(name)!.keysym);
}
