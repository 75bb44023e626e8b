import type { El, FrameSnapshot, Snapshot, TextBlock } from '../../../src/logins/reading/snapshot.ts';

/**
 * Snapshots by hand, for tests of the reading: parts from top to bottom, each in a row of its own, with the places that a browser
 * would give them.
 */
export type Part = { el: Partial<El> & { tag: string } } | { text: Partial<TextBlock> & { text: string } };

export const heading = (text: string): Part => ({ text: { text, heading: true, tag: 'h1' } });
export const words = (text: string, more: Partial<TextBlock> = {}): Part => ({ text: { text, tag: 'p', ...more } });
export const alert = (text: string, more: Partial<TextBlock> = {}): Part =>
  words(text, { role: 'alert', live: true, classes: 'alert alert-danger', ...more });
export const input = (label: string, more: Partial<El> = {}): Part => ({
  el: { tag: 'input', type: 'text', labels: label === '' ? [] : [label], accessibleName: label, ...more },
});
export const password = (label: string, more: Partial<El> = {}): Part => input(label, { type: 'password', ...more });
export const button = (label: string, more: Partial<El> = {}): Part => ({
  el: { tag: 'button', type: 'submit', accessibleName: label, ...more },
});
export const link = (label: string, href: string, more: Partial<El> = {}): Part => ({
  el: { tag: 'a', accessibleName: label, href: new URL(href, 'https://shop.example').href, ...more },
});
export const checkbox = (label: string, more: Partial<El> = {}): Part =>
  input(label, { type: 'checkbox', checked: false, ...more });
export const radio = (label: string, more: Partial<El> = {}): Part =>
  input(label, { type: 'radio', name: 'choice', checked: false, ...more });
export const select = (label: string, options: string[], more: Partial<El> = {}): Part => ({
  el: {
    tag: 'select',
    labels: label === '' ? [] : [label],
    accessibleName: label,
    options: options.map((option, at) => ({ label: option, value: option, selected: at === 0 })),
    ...more,
  },
});

/** Puts parts into one form of the document. */
export const form = (parts: Part[], formKey = 'f0'): Part[] =>
  parts.map((part) => ('el' in part ? { el: { formKey, ...part.el } } : { text: { formKey, ...part.text } }));

/** Puts parts into a dialog. */
export const dialog = (parts: Part[]): Part[] =>
  parts.map((part) =>
    'el' in part ? { el: { inDialog: true, ...part.el } } : { text: { inDialog: true, ...part.text } },
  );

export function snapshot(
  parts: (Part | Part[])[],
  { frames = [], ...more }: Partial<Omit<Snapshot, 'frames'>> & { frames?: Partial<FrameSnapshot>[] } = {},
): Snapshot {
  const url = more.url ?? 'https://shop.example/';
  const main: FrameSnapshot = { ...frame(parts.flat(), 0), url, origin: new URL(url).origin, main: true };
  return {
    title: '',
    loading: false,
    httpStatus: 200,
    ...more,
    url,
    frames: [main, ...frames.map((one, at) => ({ ...frame([], at + 1), ...one }))],
  };
}

function frame(parts: Part[], number: number): FrameSnapshot {
  const elements: El[] = [];
  const texts: TextBlock[] = [];
  parts.forEach((part, at) => {
    const box = { x: 400, y: 60 + at * 60, width: 320, height: 40 };
    if ('el' in part) {
      elements.push({
        ref: `${number}.${elements.length}`,
        labels: [],
        filled: false,
        required: false,
        disabled: false,
        readonly: false,
        visible: true,
        inViewport: box.y < 800,
        covered: false,
        box,
        near: '',
        inDialog: false,
        classes: '',
        selectors: [`#e${at}`],
        ...part.el,
      });
    } else {
      texts.push({ box, classes: '', inDialog: false, live: false, visible: true, ...part.text });
    }
  });
  return {
    frameId: `frame${number}`,
    url: 'https://shop.example/',
    origin: 'https://shop.example',
    main: false,
    visible: true,
    elements,
    texts,
    truncated: false,
  };
}
