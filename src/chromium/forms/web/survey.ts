import { MOST_TEXT } from '../bounds.ts';
import { deadline, MOST_DEPTH, MOST_MS, MOST_NODES } from './bounds.ts';
import { observe } from './changes.ts';
import { isControl, isEditable, silentTags } from './controls.ts';
import { attribute, isElement, isText, queryAll, rootElement, shadowOf, tagOf, textOf } from './dom.ts';
import { collapsed, firstOf, textIn } from './names.ts';
import { below } from './tree.ts';
import { isShown, styleOf } from './visibility.ts';

const MOST_CONTROLS = 4000;
const MOST_RUNS = 3000;

/** A run of text, which may go through inline elements, and the block that it is in. */
export interface Run {
  element: Element;
  text: string;
}

/** Whether an element is inside of one with the pointer's hand, or inside of a control. */
interface Around {
  pointer: boolean;
  control: boolean;
}

export const isLive = (element: Element) =>
  /^(alert|status|log|alertdialog)$/.test(attribute(element, 'role') ?? '') ||
  /^(polite|assertive)$/.test(attribute(element, 'aria-live') ?? '');

const hasPointer = (element: Element) => styleOf(element).cursor === 'pointer';

/** One walk over the document as it is drawn: controls, and runs of text. */
export function survey(): { controls: Element[]; runs: Run[]; truncated: boolean } {
  const isLate = deadline(MOST_MS);
  const controls: Element[] = [];
  const runs: Run[] = [];
  let nodes = 0;
  let truncated = false;

  function visit(element: Element, around: Around, depth: number): void {
    if (++nodes > MOST_NODES || depth > MOST_DEPTH || isLate()) {
      truncated = true;
      return;
    }
    const tag = tagOf(element);
    const shadow = shadowOf(element);
    if (shadow) observe(shadow);
    const isSilent = silentTags.has(tag);
    let isOne = isControl(element);
    if (isSilent && !isOne) return;
    const pointer = hasPointer(element);
    isOne ||= pointer && !around.pointer && !around.control && isClickable(element, tag);
    if (isOne && controls.length < MOST_CONTROLS) controls.push(element);
    if (isSilent || isEditable(element)) return;
    readRuns(element, { pointer, control: around.control || isOne }, depth, isOne && tag !== 'label');
  }

  /** `isNamed`: the element is a link or a button: its text is its name and no separate run. */
  function readRuns(element: Element, inside: Around, depth: number, isNamed: boolean): void {
    let run = { text: '', own: false };
    const flush = () => {
      const text = collapsed(run.text, MOST_TEXT);
      if (text && run.own && runs.length < MOST_RUNS) runs.push({ element, text });
      run = { text: '', own: false };
    };
    const add = (text: string, own: boolean) => {
      if (run.text.length < 2000) run.text += text;
      run.own ||= own && !isNamed && !inside.control;
    };
    for (const child of below(element)) {
      if (isText(child)) add(firstOf(child.data), /\S/.test(child.data));
      else if (!isElement(child)) continue;
      else if (tagOf(child) === 'br') run.text += ' ';
      else if (isInline(child)) {
        add(run.text.length < 2000 ? inlineText(child) : '', !isControl(child) && /\S/.test(textOf(child)));
        collect(child, inside);
      } else {
        flush();
        visit(child, inside, depth + 1);
      }
    }
    flush();
  }

  /** Controls inside of a run of text. */
  function collect(element: Element, around: Around): void {
    if (++nodes > MOST_NODES) {
      truncated = true;
      return;
    }
    const isOne =
      isControl(element) || (!around.control && !around.pointer && hasPointer(element) && tagOf(element) !== 'label');
    if (isOne && controls.length < MOST_CONTROLS) controls.push(element);
    if (silentTags.has(tagOf(element))) return;
    const inside = { pointer: around.pointer, control: around.control || isOne };
    for (const child of below(element)) if (isElement(child)) collect(child, inside);
  }

  const root = rootElement();
  if (root) visit(root, { pointer: false, control: false }, 0);
  return { controls, runs, truncated };
}

/** An element with the pointer's hand is a control by itself, unless a control is inside of it. */
const isClickable = (element: Element, tag: string) =>
  tag !== 'label' &&
  tag !== 'option' &&
  tag !== 'html' &&
  tag !== 'body' &&
  queryAll(element, 'a[href],button,input,select,textarea').length === 0;

function isInline(element: Element): boolean {
  const tag = tagOf(element);
  return (
    !silentTags.has(tag) &&
    tag !== 'label' &&
    /^(inline|contents)$/.test(styleOf(element).display) &&
    !isLive(element) &&
    isShown(element) &&
    !hasBlocks(element)
  );
}

function hasBlocks(element: Element, depth = 0): boolean {
  if (depth > 20) return true;
  const children = below(element).filter(isElement);
  return (
    children.length > 20 ||
    children.some(
      (child) =>
        !/^(inline|inline-block|inline-flex|none|contents)$/.test(styleOf(child).display) ||
        hasBlocks(child, depth + 1),
    )
  );
}

/** The text of an inline element, with a space where the page shows one. */
function inlineText(element: Element): string {
  const text = textIn(element, { most: MOST_TEXT });
  if (text === '') return ' ';
  const whole = textOf(element);
  const { marginLeft, marginRight } = styleOf(element);
  const before = Number.parseFloat(marginLeft) > 0 || /^\s/.test(whole) ? ' ' : '';
  const after = Number.parseFloat(marginRight) > 0 || /\s$/.test(whole) ? ' ' : '';
  return before + text + after;
}
