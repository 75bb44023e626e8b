import { MOST_ELEMENTS, MOST_FRAME_CHARACTERS, MOST_TEXTS } from '../bounds.ts';
import type { Look, SeenElement, SeenText } from '../page-calls.ts';
import { deadline, MOST_MS } from './bounds.ts';
import { isEditable, isField } from './controls.ts';
import { boxOf, describe, type Surroundings } from './description.ts';
import { attribute, hasAttribute, isLabel, pageTitle, readyState, rectOf, rootElement, tagOf } from './dom.ts';
import { keep } from './kept.ts';
import { collapsed, said } from './names.ts';
import { isLive, survey, type Run } from './survey.ts';
import { above, closest, deepActive, remembered } from './tree.ts';
import { isClipped, isShown, isSized, isVisible, styleOf } from './visibility.ts';

const dialogClass = /(^|[\s_-])(modal|dialog|popup|pop-up|lightbox|overlay|drawer)([\s_-]|$)/i;

function isDialog(element: Element): boolean {
  if (tagOf(element) === 'dialog') return hasAttribute(element, 'open');
  const role = attribute(element, 'role');
  if (role === 'dialog' || role === 'alertdialog' || attribute(element, 'aria-modal') === 'true') return true;
  if (!dialogClass.test(attribute(element, 'class') ?? '')) return false;
  return /^(fixed|absolute)$/.test(styleOf(element).position);
}

const isHeading = (element: Element) => /^h[1-6]$/.test(tagOf(element)) || attribute(element, 'role') === 'heading';

/** What a person sees comes first, of that fields and then buttons; hidden elements come last. */
function rankOf(element: Element, visible: boolean): number {
  if (!visible) return 3;
  if (isField(element) || isEditable(element)) return 0;
  const tag = tagOf(element);
  return tag === 'input' || tag === 'button' || attribute(element, 'role') === 'button' ? 1 : 2;
}

/** Reads the document as a person sees it and as assistive technology reads it, and keeps its elements under the number. */
export function look(number: number): Look {
  const isLate = deadline(MOST_MS * 2);
  const { controls, runs, truncated } = survey();
  const around: Surroundings = { formKeys: new Map(), inDialog: remembered(isDialog), active: deepActive() };
  const described = describeAll(controls, around, isLate);
  keep(
    number,
    described.elements.map(({ element }) => element),
  );
  const texts = readTexts(runs, around, isLate);
  const root = rootElement();
  return {
    url: location.href.slice(0, 2000),
    origin: globalThis.origin.slice(0, 300),
    title: pageTitle().slice(0, 300),
    lang: (root && said(root, 'lang', 40)) || undefined,
    state: readyState(),
    elements: described.elements.map(({ facts }) => facts),
    texts,
    truncated: truncated || isLate() || described.full || controls.length > MOST_ELEMENTS || runs.length > MOST_TEXTS,
  };
}

/** In the order of the document. */
function describeAll(controls: readonly Element[], around: Surroundings, isLate: () => boolean) {
  const chosen = controls
    .map((element, at) => {
      const visible = !isLate() && isVisible(element);
      return { element, at, visible, rank: rankOf(element, visible) };
    })
    .sort((a, b) => a.rank - b.rank || a.at - b.at)
    .slice(0, MOST_ELEMENTS);
  const elements: { element: Element; facts: SeenElement; at: number }[] = [];
  let characters = 0;
  for (const { element, visible, at } of chosen) {
    if (isLate() || characters > MOST_FRAME_CHARACTERS) break;
    try {
      const facts = describe(element, visible, around);
      characters += JSON.stringify(facts).length;
      elements.push({ element, facts, at });
    } catch {
      // An element that cannot be described is left out, such as an `input` of another XML namespace.
    }
  }
  elements.sort((a, b) => a.at - b.at);
  return { elements, full: characters > MOST_FRAME_CHARACTERS };
}

function readTexts(runs: readonly Run[], around: Surroundings, isLate: () => boolean): SeenText[] {
  const inLive = remembered(isLive);
  const seen = runs.map((run) => {
    const rect = rectOf(run.element);
    const visible = !isLate() && isShown(run.element) && isSized(rect) && !isClipped(run.element);
    return { ...run, rect, visible };
  });
  let shownRoom = MOST_TEXTS;
  let hiddenRoom = Math.max(0, MOST_TEXTS - seen.filter(({ visible }) => visible).length);
  return seen
    .filter(({ visible }) => (visible ? shownRoom-- > 0 : hiddenRoom-- > 0))
    .map(({ element, text, rect, visible }) => {
      const form = closest(element, (at) => tagOf(at) === 'form');
      const live = inLive(element);
      const liveElement = live ? closest(element, isLive) : undefined;
      return {
        text,
        box: boxOf(rect),
        tag: tagOf(element).slice(0, 40),
        role: said(element, 'role') || (liveElement && said(liveElement, 'role')) || undefined,
        classes: classesAround(element),
        id: said(element, 'id'),
        inDialog: around.inDialog(element),
        live,
        visible,
        formKey: form && around.formKeys.get(form),
        heading: closest(element, isHeading) ? true : undefined,
        label: closest(element, isLabel) ? true : undefined,
      };
    });
}

function classesAround(element: Element): string {
  let classes = '';
  let at: Element | undefined = element;
  for (let level = 0; at && level < 4; at = above(at), level++) classes += ` ${attribute(at, 'class') ?? ''}`;
  return collapsed(classes, 200);
}
