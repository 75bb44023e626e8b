import { chord, type Key } from '../computer/keys.ts';
import { mustAllowIn } from './allowed.ts';
import type { AttachedPage } from './attached-pages.ts';
import { isGone, pointing, sentences, type PointingDeps } from './mouse.ts';
import type { Referred, References } from './references.ts';
import { FormsError, type Action, type Allow } from './types.ts';

/** Longer texts are put in at once: no person types them. */
const MOST_TYPED = 200;
const MOST_TEXT = 10_000;

/** A key that does not say which: pages know it from phones and input methods. It is sent to the focused element. */
const someKey: Key = { key: 'Unidentified', code: '', keyCode: 229, keysym: 0 };

interface ActDeps extends PointingDeps {
  references: References;
}

/**
 * Acts on a page by the mouse and the keyboard, as a person would. Text is the exception: a key is sent to the focused element
 * of any frame, and a page can move the focus between any two messages: in more than half of 60 attempts a frame got a character. So
 * text is put into the element by a call in its document, which puts it there or nowhere, and keys without a name are pressed around it for pages
 * that listen to keys.
 */
export function actor({ references, ...deps }: ActDeps) {
  const { commands, calls } = deps;
  const { step } = commands.patience;
  const { ask, click } = pointing(deps);

  async function focus(page: AttachedPage, target: Referred): Promise<void> {
    if (await ask(target, 'focused')) return;
    await click(page, target).catch((error: unknown) => {
      // A field under a cookie banner cannot be clicked, but the keyboard still reaches it.
      if (!(error instanceof FormsError && error.fault === 'unreachable' && error.message === sentences.covered))
        throw error;
    });
    if (await ask(target, 'focused')) return;
    if (await ask(target, 'focus')) return;
    throw new FormsError('unreachable', 'The element does not take the focus.');
  }

  async function press(sessionId: string, key: Key, down: boolean, modifiers = 0): Promise<void> {
    const { key: name, code, keyCode, location, text } = key;
    const writes = modifiers & ~8 ? undefined : text;
    await commands.send(step, sessionId, 'Input.dispatchKeyEvent', {
      type: !down ? 'keyUp' : writes === undefined ? 'rawKeyDown' : 'keyDown',
      key: name,
      code,
      windowsVirtualKeyCode: keyCode,
      nativeVirtualKeyCode: keyCode,
      modifiers,
      location: location ?? 0,
      ...(down && writes !== undefined && { text: writes, unmodifiedText: writes }),
    });
  }

  /** Without a text the element is emptied. */
  async function edit({ frame, look, index }: Referred, text?: string): Promise<void> {
    const outcome =
      text === undefined
        ? await calls.call(frame, step, 'empty', look, index)
        : await calls.call(frame, step, 'insert', look, index, text);
    if (outcome === 'stale') throw new FormsError('stale', sentences.stale);
    if (outcome === 'lost')
      throw new FormsError('unreachable', 'The page took the focus away from the element while it was typed into.');
  }

  /** False for an element that takes text. */
  async function put({ frame, look, index }: Referred, text: string): Promise<boolean> {
    const outcome = await calls.call(frame, step, 'put', look, index, text);
    if (outcome === 'text') return false;
    if (outcome === 'unfit')
      throw new FormsError(
        'unfit',
        'The field takes a value of another form, such as 2001-12-31 for a date or 18:30 for a time.',
      );
    if (outcome !== 'done') throw new FormsError(outcome === 'stale' ? 'stale' : 'unreachable', sentences[outcome]);
    return true;
  }

  async function write(target: Referred, text: string): Promise<void> {
    const { sessionId } = target.frame;
    const characters = Array.from(text);
    if (characters.length > MOST_TYPED) return edit(target, text);
    for (const character of characters) {
      await press(sessionId, someKey, true);
      await edit(target, character);
      await press(sessionId, someKey, false);
    }
  }

  async function type(
    page: AttachedPage,
    target: Referred,
    { text, allow, clear, unlessHeld }: { text: string; allow: Allow; clear: boolean; unlessHeld: boolean },
  ): Promise<void> {
    if (text.length > MOST_TEXT) throw new FormsError('unfit', `A text has at most ${MOST_TEXT} characters.`);
    await mustAllowIn(deps, target.frame, allow);
    const held = () => calls.call(target.frame, step, 'holds', target.look, target.index, text.length);
    if (unlessHeld && text !== '' && (await held()) === 'all') return;
    if (text !== '' && (await put(target, text))) return;
    // A page may drop typed text before its scripts have run. A page that focuses its field late may select the text, so that
    // the next key replaces it. In both cases the text is typed again.
    for (let tries = 1; ; tries++) {
      await focus(page, target);
      if (clear || tries > 1) await edit(target);
      await write(target, text);
      const kept = text === '' ? 'all' : await held();
      // A field that reformats typed text may stay shorter.
      if (kept === 'all' || (kept === 'part' && tries === 2)) return;
      if (tries === 2) throw new FormsError('unreachable', 'The element does not keep what is typed into it.');
    }
  }

  async function check(page: AttachedPage, target: Referred, on: boolean): Promise<void> {
    const state = await ask(target, 'checkedness');
    if (state === 'stale') throw new FormsError('stale', sentences.stale);
    if (state === 'unfit') throw new FormsError('unfit', 'The element cannot be checked.');
    if ((state === 'on') === on) return;
    await click(page, target);
  }

  return async function act(page: AttachedPage, action: Action): Promise<void> {
    page.dialogs = [];
    page.traffic.mark();
    switch (action.kind) {
      case 'type':
        return type(page, references.get(action.ref), { clear: false, unlessHeld: false, ...action });
      case 'click':
        return click(page, references.get(action.ref));
      case 'pick': {
        const target = references.get(action.ref);
        await mustAllowIn(deps, target.frame, action.allow);
        return click(page, target);
      }
      case 'check':
        return check(page, references.get(action.ref), action.on);
      case 'choose': {
        const { frame, look, index } = references.get(action.ref);
        await mustAllowIn(deps, frame, action.allow);
        const outcome = await calls.call(frame, step, 'choose', look, index, action.value);
        if (outcome === 'unfit') throw new FormsError('unfit', 'The element has no such option.');
        if (outcome !== 'done') throw new FormsError(outcome === 'stale' ? 'stale' : 'unreachable', sentences[outcome]);
        return;
      }
      case 'press': {
        const keys = chordOf(action.key);
        const target = action.ref === undefined ? undefined : references.get(action.ref);
        if (target) await focus(page, target);
        const sessionId = target?.frame.sessionId ?? page.sessionId;
        const modifiers = keys.reduce((sum, { modifier = 0 }) => sum | modifier, 0);
        for (const key of keys) await press(sessionId, key, true, modifiers).catch(unlessGone(page));
        for (const key of keys.toReversed()) await press(sessionId, key, false, modifiers).catch(unlessGone(page));
      }
    }
  };
}

/** A key may close the page that it was pressed in. */
const unlessGone = (page: AttachedPage) => (error: Error) => {
  if (!page.gone && !isGone(error)) throw error;
};

function chordOf(text: string): Key[] {
  const keys = chord(text);
  if (typeof keys === 'string') throw new FormsError('unfit', 'There is no such key.');
  return keys;
}
