/**
 * Elements of the page, through open shadow roots. They are told apart by their names and not by their classes: a node that comes from
 * another document may have the classes of that one.
 */
export function focusedElement(): Element | null {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element;
}

export function elementAt(x: number, y: number): Element | null {
  let element = document.elementFromPoint(x, y);
  for (let inner; (inner = element?.shadowRoot?.elementFromPoint(x, y)) && inner !== element;) element = inner;
  return element;
}

export const isSelect = (element: Element | null): element is HTMLSelectElement => element?.localName === 'select';
export const isInput = (element: Element | null): element is HTMLInputElement => element?.localName === 'input';
export const isTextArea = (element: Element | null): element is HTMLTextAreaElement =>
  element?.localName === 'textarea';
export const isGroup = (element: Element | null): element is HTMLOptGroupElement => element?.localName === 'optgroup';
