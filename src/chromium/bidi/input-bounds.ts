import { ActionDispatcher } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/input/ActionDispatcher.js';
import type { ActionOption } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/input/ActionOption.js';
import { InputState } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/input/InputState.js';
import { InvalidArgumentException } from 'chromium-bidi/out/Default/gen/src/protocol/protocol.js';

/** Sources of input of one tab. */
const MOST_SOURCES = 100;
/** The mapper notes every key and button that is pressed, to release it later, and keeps the note when it is released. */
const MOST_NOTES = 1000;
/** Actions that are begun in one turn of the event loop. */
const PIECE = 100;

const known = new WeakMap<InputState, Set<string>>();
const { getOrCreate } = InputState.prototype;
const dispatch = ActionDispatcher.prototype.dispatchTickActions;

/** The mapper has no options for these limits. */
export function boundInput(): void {
  // Each list of actions of a command passes this function.
  InputState.prototype.getOrCreate = function getOrCreateBounded(this: InputState, ...args: [string, never]) {
    const ids = known.get(this) ?? new Set();
    if (!ids.has(args[0]) && ids.size >= MOST_SOURCES)
      throw new InvalidArgumentException(
        `A tab has at most ${MOST_SOURCES} sources of input. Remove them with input.releaseActions first.`,
      );
    known.set(this, ids.add(args[0]));
    if (this.cancelList.length > MOST_NOTES) this.cancelList = lastOfEach(this.cancelList);
    return getOrCreate.apply(this, args);
  } as typeof getOrCreate;

  // All that is to be released comes as the actions of one tick.
  ActionDispatcher.prototype.dispatchTickActions = async function dispatchInPieces(this: ActionDispatcher, actions) {
    for (let at = 0; at === 0 || at < actions.length; at += PIECE)
      await dispatch.call(this, actions.slice(at, at + PIECE));
  };
}

/** The last note of each key and button: the second release of one does nothing. */
function lastOfEach(notes: readonly ActionOption[]): ActionOption[] {
  const last = new Map<string, ActionOption>();
  for (const note of notes) {
    const { id, action } = note;
    const released = 'value' in action ? action.value : 'button' in action && action.button;
    const key = JSON.stringify([id, action.type, released]);
    last.delete(key);
    last.set(key, note);
  }
  return [...last.values()].slice(-MOST_NOTES);
}
