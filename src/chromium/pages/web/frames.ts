import { elementAt, focusedElement } from './elements.ts';

const frame = (element: Element | null) => (element && /^i?frame$/i.test(element.localName) ? element : undefined);

export const focusedFrameElement = () => frame(focusedElement());

export const frameElementAt = (x: number, y: number) => frame(elementAt(x, y));

export function cornerOf(frame: Element): [left: number, top: number] {
  const box = frame.getBoundingClientRect();
  const style = getComputedStyle(frame);
  return [
    box.left + frame.clientLeft + parseFloat(style.paddingLeft),
    box.top + frame.clientTop + parseFloat(style.paddingTop),
  ];
}
