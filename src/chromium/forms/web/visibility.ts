import { attribute, checkVisibility, childrenOf, isInput, isLabel, isTextArea, rectOf, rectsOf } from './dom.ts';
import { closest, deepAt, isWithin } from './tree.ts';

interface Point {
  x: number;
  y: number;
}

export const styleOf = (element: Element) => getComputedStyle(element);

export const isShown = (element: Element) =>
  checkVisibility(element, { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });

export const isSized = ({ width, height, right, bottom }: DOMRect) =>
  width > 1 && height > 1 && right + scrollX > 0 && bottom + scrollY > 0;

/** Cut to nothing for the eye, as text for screen readers is. */
export function isClipped(element: Element): boolean {
  const { clip, clipPath } = styleOf(element);
  return /^rect\((0|1)px,? (0|1)px,? (0|1)px,? (0|1)px\)$/.test(clip) || /^inset\((50|100)%/.test(clipPath);
}

/** The middle of the part of it that is in the viewport. */
export function middleOf(element: Element): Point | undefined {
  const rect = [...rectsOf(element)].find(({ width, height }) => width > 1 && height > 1) ?? rectOf(element);
  const left = Math.max(0, rect.left);
  const right = Math.min(innerWidth, rect.right);
  const top = Math.max(0, rect.top);
  const bottom = Math.min(innerHeight, rect.bottom);
  if (right - left < 1 || bottom - top < 1) return undefined;
  return { x: (left + right) / 2, y: (top + bottom) / 2 };
}

/** An input without opacity that a click reaches: a one-time code is often drawn over one. */
function isTransparentInput(element: Element): boolean {
  if (!isInput(element) && !isTextArea(element)) return false;
  if (attribute(element, 'tabindex') === '-1' || attribute(element, 'aria-hidden') === 'true') return false;
  if (!checkVisibility(element, { visibilityProperty: true, contentVisibilityAuto: true })) return false;
  const at = middleOf(element);
  return at !== undefined && deepAt(at.x, at.y) === element;
}

export function isVisible(element: Element): boolean {
  // A link around a picture or a block has no size of its own.
  const hasSize =
    isSized(rectOf(element)) ||
    [...rectsOf(element)].some(isSized) ||
    childrenOf(element)
      .slice(0, 3)
      .some((child) => isSized(rectOf(child)));
  if (!hasSize) return false;
  return isShown(element) ? !isClipped(element) : isTransparentInput(element);
}

/** Whether a click on `hit` is a click on the element: it is inside or around it, or its label. */
function belongs(hit: Element, element: Element): boolean {
  if (isWithin(hit, element) || isWithin(element, hit)) return true;
  const label = closest(hit, isLabel);
  return label !== undefined && isLabel(label) && (label.control === element || isWithin(element, label));
}

/** Whether another element lies on top of its middle. Undefined where the viewport has no element. */
export function isCovered(element: Element): boolean | undefined {
  const at = middleOf(element);
  const hit = at && deepAt(at.x, at.y);
  return hit ? !belongs(hit, element) : undefined;
}
