import type { El, FrameSnapshot } from '../reading/snapshot.ts';
import { shownAddress } from './addresses.ts';
import type { Flow } from './context.ts';
import type { Explained, ExplainedPage, Look } from './types.ts';

const mostOfFrame = 120;
const mostFrames = 6;
const mostText = 200;

/** Records one look and the decision, without the values that were typed in this flow. */
export async function explain(
  flow: Flow,
  state: string,
  decision: string,
  look: Look | undefined = flow.page.look,
): Promise<void> {
  const note = JSON.stringify([state, decision, look?.reading.kind, look?.snapshot.url]);
  if (flow.page.isNew(note))
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
  const { tag, type, name, id, autocomplete, role, accessibleName, placeholder, inputmode, maxlength } = element;
  const { labels, href, options, checked, covered, near, classes, filled, required, disabled, inDialog } = element;
  const own = { tag, type, name, id, autocomplete, role, accessibleName, placeholder, inputmode, maxlength };
  const given = {
    ...own,
    checked,
    covered,
    labels: labels.length > 0 ? [...labels] : undefined,
    href: href === undefined ? undefined : shown(href),
    options: options?.slice(0, 20).map(({ label }) => label),
  };
  return Object.fromEntries([
    ...Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ...Object.entries({ near, classes, filled, required, disabled, inDialog }).filter(([, value]) => value),
  ]);
}
