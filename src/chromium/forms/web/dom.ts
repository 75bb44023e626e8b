/**
 * Reads nodes with the getters and methods of the prototypes. Names in the page hide properties of forms and documents in every world:
 * `<input name="parentNode">` hides `parentNode` of its form.
 */
function getter<T extends object, Name extends keyof T>(prototype: T, name: Name): (node: T) => T[Name] {
  const get = Object.getOwnPropertyDescriptor(prototype, name)!.get!;
  return (node) => Reflect.apply(get, node, []) as T[Name];
}

function setter<T extends object, Name extends keyof T>(prototype: T, name: Name): (node: T, value: T[Name]) => void {
  const set = Object.getOwnPropertyDescriptor(prototype, name)!.set!;
  return (node, value) => {
    Reflect.apply(set, node, [value]);
  };
}

type Method = (...args: never[]) => unknown;
function method<T extends Record<Name, Method>, Name extends string>(prototype: T, name: Name) {
  const call = prototype[name];
  return (node: T, ...args: Parameters<T[Name]>) => Reflect.apply(call, node, args) as ReturnType<T[Name]>;
}

const nodeType = getter(Node.prototype, 'nodeType');
export const parentOf = getter(Node.prototype, 'parentNode');
export const firstChildOf = getter(Node.prototype, 'firstChild');
export const nextOf = getter(Node.prototype, 'nextSibling');
export const previousOf = getter(Node.prototype, 'previousSibling');
export const ownerOf = getter(Node.prototype, 'ownerDocument');
export const isConnected = getter(Node.prototype, 'isConnected');
export const rootOf = method(Node.prototype, 'getRootNode');
const textContentOf = getter(Node.prototype, 'textContent');
export const textOf = (node: Node): string => (textContentOf(node) ?? '').slice(0, 5000);

export const tagOf = getter(Element.prototype, 'localName');
export const shadowOf = getter(Element.prototype, 'shadowRoot');
export const slotOf = getter(Element.prototype, 'assignedSlot');
export const previousElementOf = getter(Element.prototype, 'previousElementSibling');
const childCollection = getter(Element.prototype, 'children');
export const childrenOf = (element: Element): Element[] => [...childCollection(element)];
export const attribute = method(Element.prototype, 'getAttribute');
export const hasAttribute = method(Element.prototype, 'hasAttribute');
export const matches = method(Element.prototype, 'matches');
export const rectOf = method(Element.prototype, 'getBoundingClientRect');
export const rectsOf = method(Element.prototype, 'getClientRects');
export const checkVisibility = method(Element.prototype, 'checkVisibility');
export const scrollIntoView = method(Element.prototype, 'scrollIntoView');
export const focusElement = method(HTMLElement.prototype, 'focus');
export const setInputValue = setter(HTMLInputElement.prototype, 'value');

const documentElementOf = getter(Document.prototype, 'documentElement');
export const rootElement = (): Element | null => documentElementOf(document);
const readyStateOf = getter(Document.prototype, 'readyState');
export const readyState = () => readyStateOf(document);
const titleOf = getter(Document.prototype, 'title');
export const pageTitle = () => titleOf(document);
const execCommand = method(Document.prototype, 'execCommand');
export const editDocument = (command: 'insertText' | 'delete', text?: string) =>
  execCommand(document, command, false, text);

/** A document or a shadow tree. */
export type Root = Document | ShadowRoot;
export const isRoot = (node: Node): node is Root => node instanceof Document || node instanceof ShadowRoot;

const inDocument = {
  queryAll: method(Document.prototype, 'querySelectorAll'),
  byId: method(Document.prototype, 'getElementById'),
  atPoint: method(Document.prototype, 'elementFromPoint'),
  active: getter(Document.prototype, 'activeElement'),
};
const inShadow = {
  queryAll: method(DocumentFragment.prototype, 'querySelectorAll'),
  byId: method(DocumentFragment.prototype, 'getElementById'),
  atPoint: method(ShadowRoot.prototype, 'elementFromPoint'),
  active: getter(ShadowRoot.prototype, 'activeElement'),
};
const queryElement = method(Element.prototype, 'querySelectorAll');

export function queryAll(root: Root | Element, selector: string): NodeListOf<Element> {
  if (root instanceof Document) return inDocument.queryAll(root, selector);
  return root instanceof ShadowRoot ? inShadow.queryAll(root, selector) : queryElement(root, selector);
}

export const byId = (root: Root, id: string) =>
  root instanceof Document ? inDocument.byId(root, id) : inShadow.byId(root, id);
export const atPoint = (root: Root, x: number, y: number) =>
  root instanceof Document ? inDocument.atPoint(root, x, y) : inShadow.atPoint(root, x, y);
export const activeIn = (root: Root) => (root instanceof Document ? inDocument.active(root) : inShadow.active(root));

export const isElement = (node: Node): node is Element => nodeType(node) === 1;
export const isText = (node: Node): node is Text => nodeType(node) === 3;

/** By name and not by class: a node that was moved from another document can have the classes of that document. */
export const isInput = (element: Element): element is HTMLInputElement => tagOf(element) === 'input';
export const isTextArea = (element: Element): element is HTMLTextAreaElement => tagOf(element) === 'textarea';
export const isSelect = (element: Element): element is HTMLSelectElement => tagOf(element) === 'select';
export const isButton = (element: Element): element is HTMLButtonElement => tagOf(element) === 'button';
export const isLabel = (element: Element): element is HTMLLabelElement => tagOf(element) === 'label';
export const isAnchor = (element: Element): element is HTMLAnchorElement | SVGAElement => tagOf(element) === 'a';
