import type { El, FrameSnapshot } from '../reading/snapshot.ts';
import { shownAddress } from './addresses.ts';
import type { Flow, Look } from './flow.ts';
import type { Explained, ExplainedPage } from './types.ts';

const mostOfFrame = 120;
const mostFrames = 6;
const mostText = 200;

/** Records one look and what was decided. Everything that was typed in this flow is taken out of it. */
export async function explain(
  flow: Flow,
  state: string,
  decision: string,
  look: Look | undefined = flow.look,
): Promise<void> {
  const note = JSON.stringify([state, decision, look?.reading.kind, look?.snapshot.url]);
  if (note === flow.lastNote) return;
  flow.lastNote = note;
  flow.input.record(shortened(await flow.scrub.deep(explained(flow, state, decision, look))));
}

/** Texts are cut when nothing secret is in them any more: a part of a secret would not be found. */
const shortened = (note: Explained): Explained => ({
  ...note,
  title: note.title.slice(0, mostText),
  page: note.page && {
    ...note.page,
    frames: note.page.frames.map((frame) => ({
      ...frame,
      texts: frame.texts.map((one) => ({ ...one, text: one.text.slice(0, mostText) })),
    })),
  },
});

function explained(flow: Flow, state: string, decision: string, look: Look | undefined): Explained {
  const head = { at: new Date(flow.now()).toISOString(), state, decision };
  if (!look) return { ...head, url: '', title: '', evidence: [], fields: [], choices: [], next: [] };
  const { snapshot, reading } = look;
  const shown = (url: string) => shownAddress(url, flow.scrub.text);
  return {
    ...head,
    url: shown(snapshot.url),
    title: snapshot.title,
    kind: reading.kind,
    evidence: reading.evidence.slice(0, 40),
    error: reading.error?.text,
    fields: reading.fields.map(({ id, type, key, label, required, filled }) => ({
      id,
      type,
      key,
      label,
      required,
      filled,
    })),
    choices: reading.choices.slice(0, 40).map(({ id, type, label }) => ({ id, type, label })),
    next: reading.next.slice(0, 20).map(({ why, label }) => ({ why, label })),
    // A page that shows a new secret is not kept.
    page: reading.kind === 'enrol_totp' || reading.totpSecret !== undefined ? undefined : pageOf(snapshot, shown),
  };
}

type Shown = (url: string) => string;

function pageOf({ lang, httpStatus, frames }: Look['snapshot'], shown: Shown): ExplainedPage {
  return { lang, httpStatus, frames: frames.slice(0, mostFrames).map((frame) => frameOf(frame, shown)) };
}

function frameOf({ url, main, elements, texts }: FrameSnapshot, shown: Shown): ExplainedPage['frames'][number] {
  return {
    url: shown(url),
    main,
    elements: elements
      .filter(({ visible }) => visible)
      .slice(0, mostOfFrame)
      .map((element) => elementOf(element, shown)),
    texts: texts
      .filter(({ visible }) => visible)
      .slice(0, mostOfFrame)
      .map(({ text, tag, live }) => ({ text, tag, live })),
  };
}

/** What the reading goes by, without the options' values and with addresses cut to their paths. */
function elementOf(element: El, shown: Shown): Record<string, string | number | boolean | string[]> {
  const { tag, type, name, id, autocomplete, role, accessibleName, placeholder, inputmode, maxlength, href } = element;
  const given = {
    tag,
    type,
    name,
    id,
    autocomplete,
    role,
    accessibleName,
    placeholder,
    inputmode,
    maxlength,
    labels: element.labels.length > 0 ? [...element.labels] : undefined,
    href: href === undefined ? undefined : shown(href),
    options: element.options?.slice(0, 20).map(({ label }) => label),
    near: element.near || undefined,
    classes: element.classes || undefined,
    filled: element.filled || undefined,
    checked: element.checked,
    required: element.required || undefined,
    disabled: element.disabled || undefined,
    covered: element.covered,
    inDialog: element.inDialog || undefined,
  };
  return Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
