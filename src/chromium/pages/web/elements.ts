/**
 * Elements of the page, including those in open shadow roots. The code compares element names and not classes: a node that was moved from
 * another document can have the classes of that document.
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
