import type { FormsCalls } from '../page-calls.ts';
import { deadline, MOST_MS } from './bounds.ts';
import { matches, queryAll, type Root } from './dom.ts';
import { keep } from './kept.ts';
import { collapsed, labelsOf, nameOf, said } from './names.ts';
import { survey } from './survey.ts';
import { eachRoot } from './tree.ts';
import { isVisible } from './visibility.ts';

const isUsable = (element: Element) => isVisible(element) && !matches(element, ':disabled');

export const find: FormsCalls['find'] = (number, selectors) => {
  const isLate = deadline(MOST_MS * 2);
  const roots: Root[] = [];
  eachRoot((root) => roots.push(root));
  let controls: Element[] | undefined;
  const usableControls = () => (controls ??= survey().controls.filter((element) => !isLate() && isUsable(element)));

  function elementsOf(selector: string): Element[] {
    const [, kind, words = ''] = /^(label|placeholder|text)=(.*)$/s.exec(selector) ?? [];
    if (kind === undefined) return roots.flatMap((root) => [...queryAll(root, selector)].slice(0, 50)).filter(isUsable);
    const wanted = collapsed(words, 200).toLowerCase();
    const isWanted = (text: string | undefined) =>
      !!text && text.toLowerCase().slice(0, wanted.length === 100 ? 100 : 200) === wanted;
    return usableControls().filter((element) => {
      if (kind === 'placeholder') return isWanted(said(element, 'placeholder', 100));
      const labels = labelsOf(element);
      return (kind === 'label' && labels.some(isWanted)) || isWanted(nameOf(element, labels));
    });
  }

  const found = selectors.map((selector) => {
    try {
      return elementsOf(selector);
    } catch {
      return []; // not a selector
    }
  });
  keep(
    number,
    found.map((elements) => elements[0]),
  );
  return found.map(({ length }) => Math.min(2, length));
};
