import { isField } from './controls.ts';
import { attribute, isElement, isInput, parentOf, previousElementOf, rootOf, tagOf } from './dom.ts';
import { said } from './names.ts';

/** Ids that a framework generates: they differ from one load of the page to the next. */
const generatedId =
  // not linear: an id has at most 80 characters here
  /\d{4,}|^[:_«]|:r\w+:|[0-9a-f]{8,}|^(ember|mui|radix|headlessui|react|ext|gen|yui|cdk|mat-input|input)[-_]?\w*\d+$/i;

const quoted = (value: string) => `"${value.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\a ')}"`;

/** The path from the nearest element with a stable id. */
function pathOf(element: Element): string {
  const steps: string[] = [];
  for (let at: Node | null = element; at && isElement(at) && steps.length < 8; at = parentOf(at)) {
    const tag = tagOf(at);
    const id = attribute(at, 'id');
    if (id && id.length <= 60 && !generatedId.test(id)) {
      steps.unshift(`#${CSS.escape(id)}`);
      break;
    }
    let place = 1;
    for (let other = previousElementOf(at); other && place < 1000; other = previousElementOf(other))
      if (tagOf(other) === tag) place++;
    steps.unshift(`${CSS.escape(tag)}:nth-of-type(${place})`);
  }
  const inShadow = rootOf(element) instanceof ShadowRoot && steps.length < 8 && !steps[0]?.startsWith('#');
  return ((inShadow ? ':host > ' : '') + steps.join(' > ')).slice(0, 400);
}

/** Independent ways to find the element again, the most stable first. */
export function selectorsOf(element: Element, labels: readonly string[], name: string): string[] {
  const list: string[] = [];
  const tag = CSS.escape(tagOf(element));
  const id = attribute(element, 'id');
  if (id && id.length <= 80 && !generatedId.test(id)) list.push(`#${CSS.escape(id)}`);
  const type = isInput(element) ? element.type : undefined;
  const typed = type && type !== 'text' ? `[type=${quoted(type)}]` : '';
  for (const by of ['name', 'data-testid', 'data-test', 'data-qa', 'data-cy', 'formcontrolname']) {
    const value = attribute(element, by);
    if (value && value.length <= 80) list.push(`${tag}[${by}=${quoted(value)}]${by === 'name' ? typed : ''}`);
  }
  const hint = attribute(element, 'autocomplete');
  if (hint && hint.length <= 60 && !/^(on|off)$/i.test(hint)) list.push(`${tag}[autocomplete=${quoted(hint)}]`);
  if (type === 'password') list.push('input[type="password"]');
  const label = isField(element) ? labels[0] || name : '';
  if (label) list.push(`label=${label}`);
  const placeholder = said(element, 'placeholder', 100);
  if (placeholder) list.push(`placeholder=${placeholder}`);
  if (!isField(element) && name) list.push(`text=${name.slice(0, 100)}`);
  const path = pathOf(element);
  if (path && !list.includes(path)) list.push(path);
  return list.slice(0, 8);
}
